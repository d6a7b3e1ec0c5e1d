"""Models share one connection, which tells what others changed: only that is read again."""

import asyncio
from typing import Any

import pytest
import redis
import uvloop

from hinged_service.engine.status import Status
from hinged_service.errors import NotFound
from hinged_service.store.keys import StreamKeys
from tests.support.engine import Worker, event, fold_of, replica_state, until, worker
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer

MODELS = 30
STALE_MS = 20
NAMES = [f"m{n}" for n in range(MODELS)]


class Counted:
    """The number of scripts that Redis ran, and of its reads from connections."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._before = self._counts()

    def _counts(self) -> tuple[int, int]:
        stats: Any = self._client.info("commandstats")
        reads: Any = self._client.info("stats")
        return stats.get("cmdstat_evalsha", {}).get("calls", 0), reads["total_reads_processed"]

    @property
    def scripts(self) -> int:
        """Scripts since it was made."""
        return self._counts()[0] - self._before[0]

    @property
    def reads(self) -> int:
        """Reads from connections since it was made."""
        return self._counts()[1] - self._before[1]


async def opened(one: Worker, names: list[str]) -> None:
    for name in names:
        await one.create(name)
        await one.open(name)


async def predicted(one: Worker, names: list[str]) -> None:
    """Do what predictions of all models do, all at a time."""
    await asyncio.gather(*(one.open(name) for name in names))


async def test_unchanged_models_cost_no_script(redis_url: str, db: redis.Redis) -> None:
    async with worker(redis_url, max_staleness_ms=STALE_MS) as one:
        await opened(one, NAMES)
        counted = Counted(db)
        for _ in range(5):
            await asyncio.sleep(2 * STALE_MS / 1000)
            await predicted(one, NAMES)
        assert counted.scripts == 0


async def test_a_model_that_learned_here_is_known_without_a_read(
    redis_url: str, db: redis.Redis
) -> None:
    async with worker(redis_url, max_staleness_ms=STALE_MS) as one:
        await opened(one, NAMES)
        counted = Counted(db)
        for n in range(3):
            await asyncio.gather(*(one.learn(name, event(n)) for name in NAMES))
            await asyncio.sleep(2 * STALE_MS / 1000)
            await predicted(one, NAMES)
        assert counted.scripts == 3 * MODELS


async def test_changes_of_another_worker_are_read_and_nothing_else(
    redis_url: str, db: redis.Redis
) -> None:
    async with (
        worker(redis_url, max_staleness_ms=STALE_MS) as one,
        worker(redis_url, max_staleness_ms=STALE_MS) as two,
    ):
        await opened(one, NAMES)
        await predicted(two, NAMES)
        for n in range(4):
            changed = NAMES[n : n + 3]
            for name in changed:
                await one.learn(name, event(n))
            counted = Counted(db)
            await asyncio.sleep(STALE_MS / 1000)
            await predicted(two, NAMES)
            for name in changed:
                live_model = await two.registry.open(name)
                assert replica_state(live_model) == fold_of(db, name)
            assert counted.scripts <= len(changed)


async def test_workers_that_learn_in_turns_know_of_each_other(
    redis_url: str, db: redis.Redis
) -> None:
    """The server forgets what a connection read when that connection changes it."""
    async with (
        worker(redis_url, max_staleness_ms=STALE_MS) as one,
        worker(redis_url, max_staleness_ms=STALE_MS) as two,
    ):
        await one.create("m")
        for n in range(6):
            mine, other = (one, two) if n % 2 else (two, one)
            await mine.learn("m", event(2 * n))
            await other.learn("m", event(2 * n + 1))
            await asyncio.sleep(2 * STALE_MS / 1000)
            assert replica_state(await mine.open("m")) == fold_of(db)


async def test_two_models_of_one_stream_learn_of_each_others_events(
    redis_url: str, db: redis.Redis
) -> None:
    """The server tells a connection nothing of what came by itself."""
    async with worker(redis_url, max_staleness_ms=STALE_MS) as one:
        await one.create("m")
        await one.create("shadow", stream="m", start="log")
        for n in range(3):
            await predicted(one, ["m", "shadow"])
            await one.learn("m", event(n))
            await asyncio.sleep(2 * STALE_MS / 1000)
            shadow = await one.open("shadow")
            assert (shadow.log_events, replica_state(shadow)) == (n + 1, fold_of(db))


async def test_a_deletion_elsewhere_is_told(redis_url: str) -> None:
    async with (
        worker(redis_url, max_staleness_ms=STALE_MS) as one,
        worker(redis_url, max_staleness_ms=STALE_MS) as two,
    ):
        await one.create("m")
        await one.create("shadow", stream="m")
        await predicted(two, ["m", "shadow"])
        await one.lifecycle.delete("shadow")
        await asyncio.sleep(2 * STALE_MS / 1000)
        with pytest.raises(NotFound):
            await two.open("shadow")
        assert (await two.open("m")).status.now is Status.LIVE


async def test_after_a_restart_of_redis_changes_are_told_again(own_server: RedisServer) -> None:
    async with (
        worker(own_server.url, max_staleness_ms=STALE_MS) as one,
        worker(own_server.url, max_staleness_ms=STALE_MS) as two,
    ):
        await one.create("m")
        for n in range(2):
            await predicted(two, ["m"])
            own_server.stop()
            await asyncio.sleep(2 * STALE_MS / 1000)
            away = await two.open("m")
            assert (away.log_events, away.freshness.staleness_s() is None) == (n, False)
            own_server.start()
            await one.learn("m", event(n))

            async def seen(wanted: int = n + 1) -> bool:
                return (await two.open("m")).log_events == wanted

            await until(seen)
        with own_server.client() as client:
            counted = Counted(client)
            await asyncio.sleep(2 * STALE_MS / 1000)
            await predicted(two, ["m"])
            assert counted.scripts == 0


async def test_changes_while_the_connection_was_lost_are_read(proxy: Proxy, redis_url: str) -> None:
    async with (
        worker(redis_url) as one,
        worker(proxy.url, max_staleness_ms=STALE_MS) as two,
    ):
        await one.create("m")
        for n in range(3):
            await predicted(two, ["m"])
            proxy.cut()
            await one.learn("m", event(n))
            await asyncio.sleep(2 * STALE_MS / 1000)
            assert (await two.open("m")).log_events == n + 1


async def test_a_server_that_is_emptied_tells(redis_url: str, db: redis.Redis) -> None:
    async with worker(redis_url, max_staleness_ms=STALE_MS) as one:
        await one.create("m")
        await predicted(one, ["m"])
        db.flushall()
        await asyncio.sleep(2 * STALE_MS / 1000)
        with pytest.raises(NotFound):
            await one.open("m")


async def test_a_server_that_may_not_tell_is_asked(own_server: RedisServer) -> None:
    with own_server.client() as client:
        client.acl_setuser("default", enabled=True, commands=["-client|tracking"])
    async with (
        worker(own_server.url, max_staleness_ms=STALE_MS) as one,
        worker(own_server.url, max_staleness_ms=STALE_MS) as two,
    ):
        await one.create("m")
        for n in range(3):
            await one.learn("m", event(n))
            await asyncio.sleep(2 * STALE_MS / 1000)
            assert (await two.open("m")).log_events == n + 1


async def test_while_redis_hangs_predictions_go_on_from_memory(
    proxy: Proxy, redis_url: str
) -> None:
    async with (
        worker(redis_url) as one,
        worker(proxy.url, max_staleness_ms=STALE_MS, redis_timeout_ms=200) as two,
    ):
        names = NAMES[:5]
        await opened(two, names)
        proxy.hold = True
        await asyncio.sleep(2 * STALE_MS / 1000)
        for _ in range(2):
            await predicted(two, names)
            for name in names:
                assert (await two.registry.open(name)).freshness.staleness_s() is not None
        for name in names:
            await one.learn(name, event(0))
        proxy.hold = False

        async def all_seen() -> bool:
            return all([(await two.open(name)).log_events == 1 for name in names])

        await until(all_seen)


def test_appends_of_many_models_share_a_write(redis_url: str, db: redis.Redis) -> None:
    async def run() -> None:
        async with worker(redis_url) as one:
            await opened(one, NAMES)
            await one.learn(NAMES[0], event(0))
            counted = Counted(db)
            await asyncio.gather(*(one.learn(name, event(1)) for name in NAMES))
            assert counted.scripts == MODELS
            assert counted.reads < MODELS / 2, "Redis reads 16 kB at a time"

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


async def test_the_trouble_of_a_model_is_its_own(redis_url: str, db: redis.Redis) -> None:
    async with worker(redis_url, max_staleness_ms=STALE_MS) as one:
        await opened(one, NAMES)
        db.set(StreamKeys("m3").producers, "no hash")
        answers = await asyncio.gather(
            *(one.learn(name, event(0)) for name in NAMES), return_exceptions=True
        )
        failed = [n for n, answer in enumerate(answers) if isinstance(answer, BaseException)]
        assert failed == [3]
        for name in NAMES[:3] + NAMES[4:]:
            assert fold_of(db, name)["events"] == 1
        counted = Counted(db)
        for _ in range(3):
            await asyncio.sleep(2 * STALE_MS / 1000)
            await predicted(one, NAMES)
        assert counted.scripts == 1, "of the model whose append failed"


async def test_answers_lost_together_are_found_out_by_each_model(
    proxy: Proxy, db: redis.Redis
) -> None:
    async with worker(proxy.url, append_timeout_ms=5_000) as one:
        await opened(one, NAMES)
        for n in range(5):
            proxy.drop_replies = 1
            learned = await asyncio.gather(*(one.learn(name, event(n)) for name in NAMES))
            assert all(len(answer.outcomes) == 1 for answer in learned)
        assert proxy.dropped == 5
        for name in NAMES:
            assert await one.state(name) == fold_of(db, name)
            assert fold_of(db, name)["events"] == 5
