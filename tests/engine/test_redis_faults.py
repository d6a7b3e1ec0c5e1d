"""Redis restarts, forgets its scripts, is full or read-only, and callers hang up."""

import asyncio
import time
from typing import Any

import pytest
import redis

from hinged_service.errors import Unavailable
from tests.support.checks import learns, timed
from tests.support.engine import (
    event,
    everything,
    fold_of,
    stored_state,
    until,
    worker,
)
from tests.support.machine_clock import Clock
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer


async def test_scripts_that_redis_forgot_are_sent_again(
    own_server: RedisServer, own_db: redis.Redis
) -> None:
    """SCRIPT FLUSH before, between and while learning; each event counts once."""
    async with worker(own_server.url) as one:
        await one.create("m")
        done = False

        async def flush() -> int:
            flushed = 0
            while not done:
                own_db.script_flush()
                flushed += 1
                await asyncio.sleep(0.001)
            return flushed

        flushing = asyncio.ensure_future(flush())
        for n in range(100):
            learned = await one.learn("m", event(n), event(n, id=None))
            assert None not in learned.outcomes
            if n % 10 == 0:
                await one.save("m")
        done = True
        assert await flushing > 10
        assert fold_of(own_db)["events"] == 200
        assert await one.state("m") == fold_of(own_db)


@timed
async def test_a_restart_between_two_learns_loses_nothing(own_server: RedisServer) -> None:
    async with worker(own_server.url) as one:
        await one.create("m")
        for n in range(3):
            await one.learn("m", event(n))
            if n % 2:
                await one.save("m")
            own_server.stop()
            with pytest.raises(Unavailable):
                await one.learn("m", event(100))
            own_server.start()
        await one.learn("m", event(100))
        with own_server.client() as client:
            assert fold_of(client)["events"] == 4
            assert await one.state("m") == fold_of(client)
            await one.save("m")
            assert stored_state(client) == fold_of(client)


@timed
async def test_a_redis_that_is_killed_during_learns_loses_nothing_acknowledged(
    own_server: RedisServer,
) -> None:
    own_server.kill()
    own_server.fsync = "always"
    own_server.start()

    async with worker(own_server.url, snapshot_every_events=5) as one:
        await one.create("m")
        done, acknowledged = False, set[int]()

        async def load(first: int) -> None:
            number = first
            while not done:
                try:
                    await one.learn("m", event(number))
                except Unavailable:
                    continue  # the same again
                acknowledged.add(number)
                number += 3

        loads = [asyncio.ensure_future(load(first)) for first in range(3)]
        for _ in range(3):
            count = len(acknowledged)
            await until(lambda count=count: len(acknowledged) > count + 20)
            own_server.kill()
            await asyncio.sleep(0.05)
            own_server.start()
        done = True
        await asyncio.gather(*loads)
        with own_server.client() as client:
            plain = fold_of(client)
            assert plain["events"] == len(acknowledged)
            assert await one.state("m") == plain
            await one.save("m")
            assert stored_state(client) == plain


async def test_a_full_redis_takes_nothing_by_halves_and_recovers(
    own_server: RedisServer, own_db: redis.Redis
) -> None:
    async with worker(own_server.url, append_timeout_ms=2_000) as one:
        await one.create("m")
        await one.learn("m", event(0))
        before = everything(own_db)
        own_db.config_set("maxmemory", 1)
        with pytest.raises(Unavailable) as caught:
            await one.learn("m", event(1))
        assert caught.value.retry_after_s is not None
        with pytest.raises(Unavailable):
            await one.create("another")
        with pytest.raises(Unavailable):
            await one.connection.check_writable()
        await one.save("m")
        assert everything(own_db) == before
        assert (await one.state("m"))["events"] == 1, "reading goes on"
        own_db.config_set("maxmemory", 0)
        await one.connection.check_writable()
        assert (await one.learn("m", event(1))).outcomes[0] is not None
        await one.save("m")
        assert stored_state(own_db) == fold_of(own_db) == await one.state("m")


@timed
async def test_a_redis_that_fills_up_during_learns_keeps_model_and_log_one(
    own_server: RedisServer, own_db: redis.Redis
) -> None:
    """Memory runs out somewhere in a row of learns, snapshots and chunks of full snapshots."""
    async with worker(
        own_server.url, snapshot_every_events=3, snapshot_chunk=10, append_timeout_ms=100
    ) as one:
        await one.create("m")
        await until(lambda: learns(one, event(0)))
        for step in range(12):
            used = int(own_db.info("memory")["used_memory"])
            own_db.config_set("maxmemory", used + 2_000 * step)
            for n in range(12):
                x = {f"n{i}": 1.0 for i in range(40)}
                try:
                    await one.learn("m", {"x": x, "y": n % 2 == 0, "id": f"{step}-{n}"})
                except Unavailable:
                    break
            own_db.config_set("maxmemory", 0)
            assert await one.state("m") == fold_of(own_db)
            await one.save("m")
            assert stored_state(own_db) == fold_of(own_db)


def test_a_read_only_replica_serves_predictions_and_takes_no_event(
    own_server: RedisServer, own_db: redis.Redis, tmp_path: Any
) -> None:
    replica = RedisServer(tmp_path / "replica")
    own_db.config_set("repl-diskless-sync-delay", 0)
    replica.start("--replicaof", "127.0.0.1", str(own_server.port))

    async def run() -> None:
        async with (
            worker(own_server.url) as one,
            worker(replica.url, append_timeout_ms=2_000) as two,
        ):
            await one.create("m")
            for n in range(5):
                await one.learn("m", event(n))
            await one.save("m")
            await one.learn("m", event(5))
            with own_server.client() as client, replica.client() as copy:
                plain = fold_of(client)
                await until(lambda: copy.xlen("hinged:{m}:log") == 7)
            assert await two.state("m") == plain
            with pytest.raises(Unavailable):
                await two.learn("m", event(6))
            with pytest.raises(Unavailable):
                await two.connection.check_writable()
            await two.save("m")
            with replica.client() as client:
                client.replicaof("NO", "ONE")
            assert (await two.learn("m", event(6))).outcomes[0] is not None

    try:
        asyncio.run(run())
    finally:
        replica.kill()


async def test_thirty_learns_at_once_share_two_connections(redis_url: str, db: redis.Redis) -> None:
    async with worker(redis_url, redis_connections=2) as one:
        names = [f"m{i}" for i in range(10)]
        await asyncio.gather(*(one.create(name) for name in names))
        await asyncio.gather(
            *(one.learn(names[n % 10], event(n)) for n in range(30)),
            *(one.save(name) for name in names),
        )
        for name in names:
            assert (await one.state(name))["events"] == 3
            assert await one.state(name) == fold_of(db, name)
        clients: Any = db.client_list()
        assert len(clients) <= 2 + 1 + 2  # the one that all share, and the test's own two


@timed
async def test_learns_of_many_models_need_one_connection_and_one_time_of_waiting(
    proxy: Proxy, redis_url: str, clock: Clock
) -> None:
    async with worker(proxy.url, redis_connections=1) as one:
        names = [f"m{i}" for i in range(30)]
        for name in names:
            await one.create(name)
            await one.open(name)
        await one.create("before")
        await one.learn("before", event(0))  # the server has the script from now on
        proxy.delay_s = 0.15
        stood_still_s = 1.0
        while stood_still_s > 0.3:  # then no worker could answer in time: that tells nothing
            began_s, machine_s = clock(), time.monotonic()
            await asyncio.gather(*(one.learn(name, event(0)) for name in names))
            took_s = clock() - began_s
            stood_still_s = time.monotonic() - machine_s - took_s
        assert took_s < 0.15 * 10, "30 times one after the other"
        proxy.delay_s = 0.0
        for name in names:
            await one.learn(name, event(0))
            assert (await one.state(name))["events"] == 1


async def test_cancelled_requests_never_get_each_others_answers(
    proxy: Proxy, db: redis.Redis, redis_url: str
) -> None:
    """Answers come late, callers hang up early, two models alternate on two connections."""
    async with worker(
        proxy.url, redis_connections=2, max_replicas=1, append_timeout_ms=2_000
    ) as one:
        for name in ("a", "b"):
            await one.create(name)
            await one.learn(name, {"x": {f"only-{name}": 1.0}, "y": True})
            await one.save(name)

        async def weights(name: str) -> set[Any]:
            live_model = await one.open(name)
            learner: Any = live_model.state.learner
            return set(learner.weights)

        proxy.delay_s = 0.02
        for n in range(60):
            name = "ab"[n % 2]
            calls = [
                asyncio.ensure_future(weights(name)),
                asyncio.ensure_future(one.learn(name, {"x": {f"only-{name}": n}, "y": True})),
                asyncio.ensure_future(one.connection.hget("hinged:models", name)),
            ]
            await asyncio.sleep(0.002 * (n % 8))
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            if n % 10 == 0:
                for name in ("a", "b"):
                    assert await weights(name) == {f"only-{name}"}
        proxy.delay_s = 0.0
        for name in ("a", "b"):
            await until(lambda: one.registry.live("a") is None or one.registry.live("a").idle)  # type: ignore[union-attr]
            assert await one.state(name) == fold_of(db, name)
            assert db.info("clients")["connected_clients"] <= 4


async def test_a_caller_that_hangs_up_never_cancels_the_commit(
    redis_url: str, proxy: Proxy, db: redis.Redis
) -> None:
    async with worker(proxy.url) as one:
        await one.create("m")
        await one.learn("m", event(0))
        proxy.delay_s = 0.05
        calls = [asyncio.ensure_future(one.learn("m", event(n))) for n in range(1, 6)]
        await asyncio.sleep(0.02)
        for call in calls[::2]:
            call.cancel()
        answers = await asyncio.gather(*calls, return_exceptions=True)
        assert [isinstance(a, asyncio.CancelledError) for a in answers] == [
            *(True, False, True, False, True)
        ]
        proxy.delay_s = 0.0
        assert (await one.state("m"))["events"] == 6
        assert await one.state("m") == fold_of(db)


@timed
async def test_a_redis_that_comes_back_empty_does_not_get_the_old_model(
    own_server: RedisServer, own_db: redis.Redis
) -> None:
    async with worker(own_server.url) as one:
        await one.create("m")
        await one.learn("m", event(0))
        own_db.flushall()
        for _ in range(2):
            with pytest.raises(Exception, match="no model") as caught:
                await one.learn("m", event(1))
            assert getattr(caught.value, "status", None) == 404
        await one.create("m")
        await one.learn("m", event(1))
        assert await one.state("m") == fold_of(own_db)
