"""The log is trimmed behind the slowest live follower and what retention wants, never further."""

import asyncio
from typing import Any

import redis

from hinged_service.store import followers
from tests.support.engine import (
    Script,
    Worker,
    event,
    fold_of,
    replica_state,
    stored_position,
    stored_state,
    until,
    worker,
)
from tests.support.plain_fold import model_uid
from tests.support.redis_server import RedisServer

LOG = "hinged:{m}:log"


def log_ids(client: redis.Redis) -> list[str]:
    entries: Any = client.xrange(LOG)
    return [entry_id for entry_id, _ in entries]


async def test_a_trim_keeps_the_entry_at_the_snapshots_position(
    redis_url: str, db: redis.Redis
) -> None:
    async with worker(redis_url, retention_bytes=0) as one:
        await one.create("m")
        for n in range(10):
            await one.learn("m", event(2 * n))
            await one.learn("m", event(2 * n + 1))
            await one.save("m")
            assert log_ids(db) == [stored_position(db)]
        before = stored_state(db)
        async with worker(redis_url) as cold:
            assert await cold.state("m") == before


async def test_a_trim_never_passes_the_slowest_live_follower(
    redis_url: str, shared_server: RedisServer
) -> None:
    async with worker(redis_url, retention_bytes=0) as one:
        await one.create("m")
        await one.create("slow", stream="m")
        with shared_server.client() as client:
            slow = model_uid(client, "slow")
            for n in range(30):
                await one.learn("m", event(n))
                await one.save("m")
                if n % 10 == 5:
                    await one.read("slow")
                    await one.save("slow")
                ids = log_ids(client)
                assert ids[0] == stored_position(client, "m", slow)
                assert ids[-1] == stored_position(client)
            assert await one.state("slow") == await one.state("m")


def _begins_at(client: redis.Redis, start: str) -> bool:
    """True if the log begins at the start of a follower; it may not begin later."""
    first = log_ids(client)[0]
    assert [*map(int, first.split("-"))] <= [*map(int, start.split("-"))], "it was trimmed too far"
    return first == start


async def test_a_follower_registered_while_the_log_is_trimmed_finds_its_start(
    redis_url: str, shared_server: RedisServer
) -> None:
    """Registration is at the log's end of that moment; no trim that follows may pass it."""
    async with worker(redis_url, retention_bytes=0) as one, worker(redis_url) as two:
        await one.create("m")
        done = False

        async def keep_trimming() -> int:
            number = 0
            while not done:
                number += 1
                await one.learn("m", event(number))
                await one.save("m")
            return number

        trimming = asyncio.ensure_future(keep_trimming())
        with shared_server.client() as client:
            for n in range(40):
                uid = f"follower{n}"
                script = Script(two.connection, "m", uid)
                base = await script.register()
                await until(lambda: len(log_ids(client)) > 1)
                await until(lambda start=base.id: _begins_at(client, start))
                await followers.delete(two.connection, script.model)
            done = True
            assert await trimming >= 40
            await one.learn("m", event(10**6))
            await one.save("m")
            assert len(log_ids(client)) == 1


async def test_a_model_created_late_learns_from_where_it_began(redis_url: str) -> None:
    async with worker(redis_url, retention_bytes=0) as one:
        await one.create("m")
        await one.learn("m", event(0))
        await one.learn("m", event(1))
        await one.create("late", stream="m")
        await one.create("reference")
        for n in range(2, 9):
            await one.learn("m", event(n))
            await one.learn("reference", event(n))
        assert await one.state("late") == await one.state("reference")


async def test_retention_keeps_about_so_much_of_the_log_and_not_much_more(
    redis_url: str, db: redis.Redis
) -> None:
    async with (
        worker(redis_url, retention_bytes=8_000) as first,
        worker(redis_url, retention_bytes=8_000) as second,
    ):
        await first.create("m")
        for n in range(300):
            one = first if n < 150 else second
            await one.learn("m", event(n))
            await one.save("m")
            entries: Any = db.xrange(LOG)
            kept = sum(len(fields.get("events", "")) for _, fields in entries)
            if n > 120:
                assert 8_000 <= kept <= 8_000 * 9 / 8 + 500


async def test_a_quiet_follower_is_folded_in_the_background_before_it_holds_the_log(
    redis_url: str, db: redis.Redis
) -> None:
    async with worker(redis_url, retention_bytes=3_000, housekeeping_ms=10) as one:
        await one.create("m")
        await one.create("quiet", stream="m")
        one.housekeeping.start()
        for n in range(100):
            await one.learn("m", event(n))
        quiet, start = model_uid(db, "quiet"), log_ids(db)[0]
        await until(lambda: stored_position(db, "m", quiet) > start)
        assert stored_state(db, "m", quiet) == fold_of(db, upto=stored_position(db, "m", quiet))
        await one.save("m")
        await until(lambda: _saved_and_trimmed(one, db))


async def _saved_and_trimmed(one: Worker, client: redis.Redis) -> bool:
    await one.learn("m", event(10**6, id=None))
    await one.save("m")
    return len(log_ids(client)) < 60


async def test_a_follower_that_cannot_advance_stops_holding_the_log(
    redis_url: str, db: redis.Redis
) -> None:
    """Set the model aside, the others go on; a later snapshot of its own takes that back."""
    async with worker(redis_url, retention_bytes=0) as one:
        await one.create("m")
        await one.create("stuck", stream="m")
        await one.learn("m", event(0))
        await one.save("m")
        stuck = await one.read("stuck")
        await followers.release(one.connection, stuck.keys.on, stuck.keys.uid)
        assert len(log_ids(db)) == 2
        await one.learn("m", event(1))
        await one.read("stuck")
        await one.save("m")
        assert len(log_ids(db)) == 1
        await one.save("stuck")
        await one.learn("m", event(2))
        await one.save("m")
        assert len(log_ids(db)) == 2, "it is waited for again"
        assert await one.state("stuck") == await one.state("m")


async def test_two_followers_with_other_labels_each_fold_what_they_can_take(
    redis_url: str, one: Worker, two: Worker, shared_server: RedisServer
) -> None:
    await one.create("m")
    await one.create("words", stream="m", labels=["ham", "spam"])
    await one.create("numbers", stream="m", labels=[0, 1])
    x = {"a": 1.0}
    await one.learn("m", {"x": x, "y": True})
    await two.learn("words", {"x": x, "y": "spam"}, {"x": x, "y": "ham"})
    await one.learn("numbers", {"x": x, "y": 1})
    for name, events, rejected in (("m", 2, 2), ("words", 2, 2), ("numbers", 1, 3)):
        states = [await w.state(name) for w in (one, two)]
        assert states[0] == states[1]
        assert (states[0]["events"], states[0]["rejected"]) == (events, rejected), name
    for name in ("m", "words", "numbers"):
        await one.save(name)
    async with worker(redis_url) as cold:
        for name in ("m", "words", "numbers"):
            assert await cold.state(name) == replica_state(await one.read(name))
