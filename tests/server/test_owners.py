"""Owners: the choice, and calls between workers that come, go, fall silent or differ."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import socket
import stat
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from hinged_service.server.owners import Owners, owner_of
from hinged_service.server.peers import Link, Lost, PeerAnswer, PeerCall, Serving
from hinged_service.settings import Settings

STREAMS = [f"stream-{n}" for n in range(2_000)]
PATIENCE_MS = 200


def test_the_owner_is_the_worker_with_the_highest_hash() -> None:
    def height(worker: str) -> str:
        return hashlib.blake2b(f"{worker} mail".encode(), digest_size=8).hexdigest()

    assert owner_of("mail", "abc") == sorted("abc", key=height)[-1]


def test_a_worker_that_goes_leaves_the_other_streams_where_they_are() -> None:
    before = {stream: owner_of(stream, "abcd") for stream in STREAMS}
    after = {stream: owner_of(stream, "abc") for stream in STREAMS}
    assert {s for s in STREAMS if before[s] != after[s]} == {s for s in STREAMS if before[s] == "d"}
    assert min(Counter(before.values()).values()) > len(STREAMS) / 4 * 0.85


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A directory in which paths of sockets are short enough."""
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


def settings(**others: object) -> Settings:
    return Settings(append_timeout_ms=PATIENCE_MS, **others)  # type: ignore[arg-type]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - a look costs less than an event
            await asyncio.sleep(0.01)


def echo(call: PeerCall, peer: Serving) -> None:
    peer.answer(PeerAnswer(call.number, 200, [(b"a", b"b")], call.model.encode() + call.body))


def ignore(call: PeerCall, peer: Serving) -> None: ...


@contextlib.asynccontextmanager
async def workers(
    folder: Path, *takes: Callable[[PeerCall, Serving], None], others: tuple[Settings, ...] = ()
) -> AsyncIterator[list[Owners]]:
    """Workers that share a directory."""
    made = [
        Owners(folder, one, take)
        for take, one in zip(takes, others or (settings(),) * len(takes), strict=True)
    ]
    try:
        for worker in made:
            assert await worker.start()
        yield made
    finally:
        for worker in made:
            worker.leave()
            await worker.aclose()


def links(worker: Owners) -> list[Link]:
    """Return the other workers that own any stream."""
    found = {id(link): link for link in map(worker.of, STREAMS) if link is not None}
    return list(found.values())


async def asked(link: Link, body: bytes) -> PeerAnswer:
    answer: asyncio.Future[PeerAnswer] = asyncio.get_running_loop().create_future()
    link.call("m", "uid", b"", body, answer)
    return await asyncio.wait_for(answer, 30)


async def test_workers_that_share_a_directory_agree_and_answer_each_other(tmp_path: Path) -> None:
    async with workers(tmp_path, echo, echo) as (first, second):
        await until(lambda: bool(links(first) and links(second)))
        mine = {stream for stream in STREAMS if first.of(stream) is None}
        assert mine == {stream for stream in STREAMS if second.of(stream) is not None}
        (link,) = links(first)
        bodies = [bytes([65 + n]) * size for n, size in enumerate((0, 3, 70_000, 2**20, 5))]
        frame_answer = await asyncio.gather(*(asked(link, body) for body in bodies))
        assert [one.body for one in frame_answer] == [b"m" + body for body in bodies]
        assert {(one.status, *one.headers) for one in frame_answer} == {(200, (b"a", b"b"))}


async def test_only_the_user_may_reach_the_socket(tmp_path: Path) -> None:
    async with workers(tmp_path, echo):
        folder = tmp_path / "workers"
        (file,) = folder.iterdir()
        assert [stat.S_IMODE(path.stat().st_mode) for path in (folder, file)] == [0o700, 0o600]


async def test_workers_with_other_settings_are_not_called(tmp_path: Path) -> None:
    other = settings(max_body_bytes=2**20)
    async with workers(tmp_path, echo, echo, others=(settings(), other)) as (first, second):
        await until(lambda: bool(first._links and second._links))
        await until(lambda: all(link.name for link in second._links.values()))
        assert not links(first)
        assert not links(second)


async def test_a_silent_worker_loses_its_calls_and_its_streams(tmp_path: Path) -> None:
    """A socket that greets once and never reads again, as of a process that stands still."""
    async with workers(tmp_path, echo) as (first,):
        silent = socket.socket(socket.AF_UNIX)
        silent.bind(str(tmp_path / "workers" / "silent"))
        silent.listen()
        await until(lambda: bool(first._links))
        accepted, _ = silent.accept()
        accepted.sendall(greeting_of(first))
        await until(lambda: bool(links(first)))
        (link,) = links(first)
        with pytest.raises(Lost):
            await asked(link, b"")
        assert not links(first)
        accepted.close()
        silent.close()


def greeting_of(worker: Owners) -> bytes:
    """Return what another worker with the same settings would say."""
    frame = msgspec.msgpack.encode(("silent", worker._greeting.group))
    return len(frame).to_bytes(4, "big") + frame


async def test_a_slow_answer_is_waited_for(tmp_path: Path) -> None:
    calls: list[tuple[PeerCall, Serving]] = []

    def keep(call: PeerCall, peer: Serving) -> None:
        calls.append((call, peer))

    async with workers(tmp_path, echo, keep) as (first, _):
        await until(lambda: bool(links(first)))
        (link,) = links(first)
        asking = asyncio.ensure_future(asked(link, b""))
        await asyncio.wait([asking], timeout=3 * PATIENCE_MS / 1000)
        assert not asking.done()
        ((call, peer),) = calls
        echo(call, peer)
        assert (await asking).status == 200


async def test_a_worker_that_stood_still_itself_asks_before_it_gives_up(tmp_path: Path) -> None:
    calls: list[tuple[PeerCall, Serving]] = []

    def keep(call: PeerCall, peer: Serving) -> None:
        calls.append((call, peer))

    async with workers(tmp_path, echo, keep) as (first, _):
        await until(lambda: bool(links(first)))
        asking = asyncio.ensure_future(asked(links(first)[0], b""))
        await until(lambda: bool(calls))
        time.sleep(2 * PATIENCE_MS / 1000)  # noqa: ASYNC251 - the loop has to stand still
        await asyncio.wait([asking], timeout=PATIENCE_MS / 1000)
        assert not asking.done()
        echo(*calls[0])
        assert (await asking).status == 200


async def test_a_worker_that_leaves_gets_no_calls_and_answers_those_it_has(tmp_path: Path) -> None:
    calls: list[tuple[PeerCall, Serving]] = []

    def keep(call: PeerCall, peer: Serving) -> None:
        calls.append((call, peer))

    async with workers(tmp_path, echo, keep) as (first, second):
        await until(lambda: bool(links(first)))
        asking = asyncio.ensure_future(asked(links(first)[0], b""))
        await until(lambda: bool(calls))
        second.leave()
        await until(lambda: not links(first))
        echo(*calls[0])
        assert (await asking).status == 200
        assert len(list((tmp_path / "workers").iterdir())) == 1


async def test_the_socket_of_a_dead_worker_is_removed(tmp_path: Path) -> None:
    async with workers(tmp_path, echo) as (first,):
        dead = socket.socket(socket.AF_UNIX)
        dead.bind(str(tmp_path / "workers" / "dead"))
        dead.close()
        await until(lambda: not (tmp_path / "workers" / "dead").exists())
        assert not links(first)


async def test_a_worker_alone_owns_all(tmp_path: Path) -> None:
    alone = Owners(None, settings(), echo)
    assert not await alone.start()
    assert not links(alone)
    shared = tmp_path / "shared"
    (shared / "workers").mkdir(parents=True)
    (shared / "workers").chmod(0o770)  # others might answer in its place
    assert not await Owners(shared, settings(), echo).start()
    too_long = tmp_path / ("long" * 30)
    too_long.mkdir()
    assert not await Owners(too_long, settings(), echo).start()
