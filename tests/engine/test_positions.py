"""A replica never goes on from a position that the log does not hold with this very chain."""

import asyncio
import contextlib
import hashlib
from pathlib import Path
from typing import Any

import pytest
import redis

import hinged
from hinged_service.engine.catch_up import LogFollower
from hinged_service.errors import Conflict, ServiceError, Unavailable
from hinged_service.wire.position import Position
from tests.support.engine import (
    Script,
    connected,
    event,
    everything,
    fold_of,
    replica_state,
    stored_state,
    stream_from_tomorrow,
    until,
    worker,
)
from tests.support.machine_clock import Clock
from tests.support.plain_fold import fold_log
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer


async def test_a_failover_that_keeps_the_first_entry_of_three(
    own_server: RedisServer, tmp_path: Path
) -> None:
    """The replica is ahead; other entries then land on the very ids that were lost."""
    async with worker(own_server.url) as ahead, worker(own_server.url) as other:
        with own_server.client() as client:
            stream_from_tomorrow(client)
        await ahead.create("m")
        await ahead.learn("m", event(1))
        own_server.copy_data(tmp_path / "copy")
        await ahead.learn("m", event(2, y=True, id=None))
        lost = await ahead.learn("m", event(3))
        own_server.set_back(tmp_path / "copy")

        await other.learn("m", event(7))
        instead = await other.learn("m", event(8, y=True))
        assert instead.position.id == lost.position.id
        learned = await ahead.learn("m", event(3))
        assert learned.outcomes[0] is not None, "what the log lost counts when sent again"
        with own_server.client() as client:
            plain = fold_of(client)
            assert plain["events"] == 4
            assert await ahead.state("m") == await other.state("m") == plain
            await ahead.save_for_sure("m")
            assert stored_state(client) == plain
        with pytest.raises(Conflict):
            await (await other.open("m")).freshness.wait_for_position(lost.position)


def rewrite_log(server: RedisServer, stream: str, kept: int) -> None:
    """Give the log another past under the very same entry ids, after `kept` entries."""
    log, meta = f"hinged:{{{stream}}}:log", f"hinged:{{{stream}}}:meta"
    with server.client() as client:
        entries: Any = client.xrange(log)
        client.delete(log)
        before = ""
        chain = ""
        for number, (entry_id, fields) in enumerate(entries):
            if number >= kept:
                fields["events"] = fields["events"].replace("true", "false")
                payload = hashlib.sha1(fields["events"].encode()).hexdigest()
                text = chain + before + fields["from"] + payload + fields["skip"]
                fields["chain"] = hashlib.sha1(text.encode()).hexdigest()
            client.xadd(log, fields, id=entry_id)
            before, chain = entry_id, fields["chain"]
        client.hset(meta, mapping={"last": before, "chain": chain})


@pytest.mark.parametrize("through", ["learn", "read", "snapshot"])
async def test_a_past_of_the_same_entry_ids_is_told_by_its_chain(
    redis_url: str, shared_server: RedisServer, through: str
) -> None:
    async with worker(redis_url) as one:
        await one.create("m")
        for n in range(1, 4):
            await one.learn("m", event(n, y=True))
        live_model = await one.open("m")
        before = replica_state(live_model)
        rewrite_log(shared_server, "m", kept=2)
        with shared_server.client() as client:
            assert fold_of(client) != before
            if through == "snapshot":
                stored = everything(client)
                await live_model.save()
                assert everything(client) == stored, "it persists nothing that the log lost"
                await until(lambda: replica_state(live_model) == fold_of(client))
            elif through == "learn":
                learned = await one.learn("m", event(4))
                assert learned.outcomes[0] is not None
            else:
                await one.read("m")
            assert replica_state(await one.open("m")) == fold_of(client)


async def test_entries_after_a_rollback_that_land_on_the_same_ids(
    redis_url: str, shared_server: RedisServer
) -> None:
    """The last entry has the id that the replica stands at: nothing to read, yet all is wrong."""
    async with worker(redis_url) as one:
        await one.create("m")
        await one.learn("m", event(1, y=True))
        await one.learn("m", event(2, y=True))
        await one.save("m")
        await one.learn("m", event(3, y=True))
        rewrite_log(shared_server, "m", kept=3)
        with shared_server.client() as client:
            assert await one.state("m") == fold_of(client)
            await one.learn("m", event(4))
            await one.save_for_sure("m")
            assert stored_state(client) == fold_of(client)


async def test_a_batch_sent_again_after_a_rollback_may_land_on_its_old_id(
    own_server: RedisServer, own_proxy: Proxy, tmp_path: Path
) -> None:
    """Its answer was lost with the server, which comes back without it but with another entry."""
    patient = worker(own_proxy.url, append_timeout_ms=5_000)
    async with patient as one, worker(own_server.url) as two:
        with own_server.client() as client:
            stream_from_tomorrow(client)
        await one.create("m")
        await one.learn("m", event(1))
        own_server.copy_data(tmp_path / "copy")
        await one.learn("m", event(2, id=None))
        own_proxy.drop_replies = 1
        learning = asyncio.ensure_future(one.learn("m", event(3, id=None), event(4)))
        await until(lambda: own_proxy.dropped == 1)
        own_server.set_back(tmp_path / "copy")
        await two.learn("m", event(5))
        learned = await learning
        assert None not in learned.outcomes
        with own_server.client() as client:
            assert fold_of(client)["events"] == 4
            assert await one.state("m") == await two.state("m") == fold_of(client)


def test_a_stream_created_again_is_another_stream(redis_url: str, db: redis.Redis) -> None:
    """The genesis is seeded at random: even the same events make another chain."""

    async def chain() -> str:
        async with connected(redis_url) as connection:
            script = Script(connection)
            await script.register()
            reply = await script.append([event(1)], sequence=1)
            assert reply.position is not None
            return reply.position.chain

    chains = set()
    for _ in range(2):
        chains.add(asyncio.run(chain()))
        db.flushall()
    assert len(chains) == 2


async def test_a_chain_covers_all_that_an_entry_says(redis_url: str, db: redis.Redis) -> None:
    """Payload, producer and sequence."""
    async with connected(redis_url) as connection:
        chains: set[str] = set()
        for batch, producer, sequence in (
            ([event(1), event(2)], "p", 1),
            ([event(1), event(2)], "p", 2),
            ([event(1), event(2)], "q", 1),
            ([event(1), event(3)], "p", 1),
            ([event(1, id=None), event(2)], "p", 1),
        ):
            db.flushall()
            uid = "0" * 32
            genesis: Any = db.xadd("hinged:{s}:log", {"chain": uid}, id="1-1")
            db.hset("hinged:{s}:followers", "m", f"{genesis} {uid}")
            meta: Any = {"last": genesis, "chain": uid, "bytes": 0, "count": 0}
            meta |= {"generation": 0, "generation_start": 0, "generation_ids": 0}
            db.hset("hinged:{s}:meta", mapping=meta | {"seen_ms": 10**15, "seen_ids": 10**6})
            reply = await Script(connection).append(
                batch, producer=producer, sequence=sequence, position=Position("1-1", uid)
            )
            assert reply.position is not None
            chains.add(reply.position.chain)
        assert len(chains) == 5


async def test_a_replica_behind_the_start_of_the_log_loads_the_snapshot(
    redis_url: str, shared_server: RedisServer
) -> None:
    async with (
        worker(redis_url, retention_bytes=0) as busy,
        worker(redis_url, retention_bytes=0) as quiet,
    ):
        await busy.create("m")
        await quiet.learn("m", event(0))
        old = (await quiet.open("m")).position
        for n in range(1, 20):
            await busy.learn("m", event(n))
        with shared_server.client() as client:
            whole = fold_of(client)
            await busy.save("m")
            assert client.xlen("hinged:{m}:log") == 1
        learned = await quiet.learn("m", event(20))
        assert learned.outcomes[0] is not None
        state = await quiet.state("m")
        assert state["events"] == whole["events"] + 1 == 21
        assert state == await busy.state("m")
        await (await quiet.open("m")).freshness.wait_for_position(
            old
        )  # older than the log's start: reached


async def test_callers_whose_entry_lies_behind_a_rebuild_are_answered_like_duplicates(
    redis_url: str, db: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their entry is logged, a snapshot past it is stored and the log trimmed before they read it.

    The small reply makes the worker page towards its own entry; between the
    append and the first page another worker moves the log on.
    """
    async with (
        worker(redis_url, retention_bytes=0) as fast,
        worker(redis_url, retention_bytes=0, reply_bytes=1024) as slow,
    ):
        await fast.create("m")
        await slow.learn("m", event(0))
        for n in range(1, 40):
            await fast.learn("m", event(n))
        live_model = await slow.open("m")  # as far as it is now
        for n in range(40, 80):
            await fast.learn("m", event(n))
        through = LogFollower.fold_through

        async def overtaken(follower: LogFollower, own: Position | None) -> Any:
            if follower is live_model._follower:
                await fast.read("m")
                await fast.save("m")
            return await through(follower, own)

        monkeypatch.setattr(LogFollower, "fold_through", overtaken)
        learned = await slow.learn("m", event(80))
        assert learned.outcomes == [None]
        assert db.xlen("hinged:{m}:log") == 1
        assert await slow.state("m") == await fast.state("m")
        assert (await slow.state("m"))["events"] == 81


async def test_an_own_entry_that_a_failover_takes_away_is_not_called_learned(
    own_server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The append is answered, its entry is lost before the worker has read up to it."""
    async with worker(own_server.url, reply_bytes=1024) as slow, worker(own_server.url) as fast:
        await fast.create("m")
        live_model = await slow.open("m")
        for n in range(40):
            await fast.learn("m", event(n))
        own_server.copy_data(tmp_path / "copy")
        through = LogFollower.fold_through

        async def overtaken(follower: LogFollower, own: Position | None) -> Any:
            if follower is live_model._follower and own is not None:
                monkeypatch.setattr(LogFollower, "fold_through", through)
                own_server.set_back(tmp_path / "copy")
                with contextlib.suppress(Unavailable):  # the old connection is broken
                    await slow.connection.hget("nothing", "nothing")
            return await through(follower, own)

        monkeypatch.setattr(LogFollower, "fold_through", overtaken)
        try:
            await slow.learn("m", event(80))
        except Unavailable:
            await slow.learn("m", event(80))
        with own_server.client() as client:
            assert "e80" in fold_log(client, "m", hinged.Perceptron()).counted_ids
            assert await slow.state("m") == fold_of(client)


async def test_at_least_waits_for_what_is_logged_and_gives_up_on_what_never_comes(
    redis_url: str, shared_server: RedisServer, clock: Clock
) -> None:
    async with worker(redis_url, at_least_timeout_ms=200) as one, worker(redis_url) as two:
        await one.create("m")
        learned = await two.learn("m", event(1))
        live_model = await one.open("m")
        await live_model.freshness.wait_for_position(learned.position)
        assert live_model.position == learned.position
        ms = live_model.position.order[0] + 10**6
        began_s = clock()
        with pytest.raises(Unavailable):
            await live_model.freshness.wait_for_position(Position(f"{ms}-0", "0" * 40))
        assert clock() - began_s < 1
        for wrong in (
            Position(learned.position.id, "0" * 40),
            Position(f"{learned.position.order[0] - 1}-7", "0" * 40),
        ):
            with pytest.raises(ServiceError) as caught:
                await live_model.freshness.wait_for_position(wrong)
            assert caught.value.status == 409
