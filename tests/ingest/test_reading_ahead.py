"""The reader of a Redis stream has batches under way: each is taken once, through any failure."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from hinged_service.errors import Unavailable
from hinged_service.ingest import redis_stream
from hinged_service.ingest.progress import Reporter
from hinged_service.ingest.redis_stream import Rules, bring_stream
from hinged_service.ingest.redis_stream_client import ForeignStream
from hinged_service.ingest.signals import Stop
from hinged_service.ingest.stream_entries import Reading
from hinged_service.ingest.writer import Feeder, Tally
from tests.support.engine import Worker, event, fold_of, spec, worker
from tests.support.redis_server import RedisServer

BATCH, COUNT = 5, 60
KEY, GROUP = "theirs", "g"

Step = Callable[["Slowly", int], Awaitable[None]]


class Slowly(Feeder):
    """A feeder that does something else before every batch; the first is number 0."""

    def __init__(self, one: Worker, before: Step) -> None:
        self.lines: list[str] = []
        super().__init__(one.registry, one.lifecycle, "m", Stop(), self.lines.append, Tally())
        self._before = before
        self._number = -1

    async def feed(self, records: Any, source: str, start: str, end: str) -> str:
        self._number += 1
        self.place = source, start
        await self._before(self, self._number)
        return await super().feed(records, source, start, end)


async def bring(server: RedisServer, claim_s: float, before: Step) -> None:
    """Learn `COUNT` entries of a stream of that server, and see that nothing is left to do."""
    async with worker(server.url) as one:
        feeder = Slowly(one, before)
        await feeder.prepare(spec())
        rules = Rules(KEY, Reading("event", "id"), "start", claim_s, drain=True)
        stream = ForeignStream(server.url, KEY, GROUP, "me")
        with Reporter(feeder.tally) as reporter:
            await bring_stream(stream, rules, feeder, reporter)
        left = {task.get_coro().__qualname__ for task in asyncio.all_tasks()}  # type: ignore[union-attr]
        assert not [name for name in left if "_Reader" in name]
    with server.client() as client:
        learned = fold_of(client)
        assert learned["events"] == COUNT
        assert client.xpending(KEY, GROUP)["pending"] == 0


@pytest.fixture
def theirs(own_server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> RedisServer:
    """A server with the stream, read in small batches."""
    monkeypatch.setattr(redis_stream, "_BATCH", BATCH)
    with own_server.client() as client:
        for number in range(COUNT):
            client.xadd(KEY, {"event": json.dumps(event(number))}, id=f"{number + 1}-0")
    return own_server


@pytest.mark.parametrize(("claim_s", "most"), [(60.0, 3 * BATCH), (0.6, 2 * BATCH)])
def test_it_reads_less_far_ahead_where_others_might_claim_what_waits(
    theirs: RedisServer, claim_s: float, most: int
) -> None:
    waiting: list[int] = []

    async def before(_: Feeder, number: int) -> None:
        await asyncio.sleep(0.15)
        with theirs.client() as client:
            waiting.append(client.xpending(KEY, GROUP)["pending"])

    asyncio.run(bring(theirs, claim_s, before))
    assert len(waiting) == COUNT // BATCH
    assert max(waiting[2:]) == most


def test_a_batch_that_another_reader_fed_in_part_is_continued(theirs: RedisServer) -> None:
    async def before(feeder: Slowly, number: int) -> None:
        if number == 3:
            source, start = feeder.place
            first = int(start.partition("-")[0])
            entries = [
                (f"{n + 1}-0", {b"event": json.dumps(event(n)).encode()})
                for n in range(first, first + 2)
            ]
            part = Reading("event", "id").all(entries, await feeder.state())
            assert await Feeder.feed(feeder, part, source, start, entries[-1][0]) == entries[-1][0]

    asyncio.run(bring(theirs, 60.0, before))


def test_the_source_may_fail_between_two_batches(
    theirs: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = redis_stream._Reader._check
    failed: list[str] = []

    async def failing(reader: redis_stream._Reader) -> None:
        if reader._offset and not failed:
            failed.append(reader._offset)
            raise Unavailable("The Redis of the source does not answer.")
        await check(reader)

    async def before(_: Feeder, number: int) -> None:
        pass

    monkeypatch.setattr(redis_stream._Reader, "_check", failing)
    asyncio.run(bring(theirs, 60.0, before))
    assert failed
