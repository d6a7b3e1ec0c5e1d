"""Redis stands still: calls end in time, and what waited counts at most once."""

import asyncio
import contextlib
import signal
from typing import Any

import pytest

from hinged_service.errors import NotFound, Unavailable
from tests.support.checks import learns, timed
from tests.support.engine import (
    Worker,
    event,
    fold_of,
    replica_state,
    until,
    worker,
)
from tests.support.machine_clock import Clock
from tests.support.redis_server import RedisServer


@timed
async def test_a_redis_that_stands_still_is_survived(own_server: RedisServer, clock: Clock) -> None:
    """Learn is refused within a second, predictions go on and say how stale they are."""

    async def _fresh(one: Any) -> bool:
        return (await one.open("m")).freshness.staleness_s() is None

    async with worker(own_server.url, max_staleness_ms=50) as one:
        await one.create("m")
        await one.learn("m", event(0))
        live_model = await one.open("m")
        assert live_model.freshness.staleness_s() is None
        own_server.signal(signal.SIGSTOP)
        try:
            began_s = clock()
            learns = [asyncio.ensure_future(one.learn("m", event(n))) for n in range(1, 4)]
            await asyncio.sleep(0.1)
            learns.append(asyncio.ensure_future(one.learn("m", event(4))))
            refused = await asyncio.gather(*learns, return_exceptions=True)
            assert clock() - began_s < 1.1
            assert [type(a) for a in refused] == [Unavailable] * 4
            slowest_s = 0.0
            for _ in range(50):
                asked_s = clock()
                assert (await one.open("m")) is live_model
                live_model.state.learner.score_one({"a": 1.0})
                slowest_s = max(slowest_s, clock() - asked_s)
                stale_s = live_model.freshness.staleness_s()
                assert stale_s is not None
                assert 0.5 < stale_s < 10
                await asyncio.sleep(0.005)
            assert slowest_s < 0.35
        finally:
            own_server.signal(signal.SIGCONT)
        back_s = clock()
        await until(lambda: _fresh(one))
        while True:
            with contextlib.suppress(Unavailable):
                await one.learn("m", *(event(n) for n in range(1, 5)))
                break
            assert clock() - back_s < 1
        assert clock() - back_s < 1
        with own_server.client() as client:
            assert fold_of(client)["events"] == 5
            assert await one.state("m") == fold_of(client)


@timed
async def test_appends_that_stood_in_line_at_a_stopped_redis_count_at_most_once(
    own_server: RedisServer,
) -> None:
    """Given up and sent again by the caller: what the server still runs later is recognised."""

    async def _reads(one: Any) -> bool:
        await one.read("m")
        return True

    hurried = {"append_timeout_ms": 150, "redis_timeout_ms": 100}
    async with worker(own_server.url, **hurried) as one, worker(own_server.url) as two:
        await two.create("m")
        await two.learn("m", event(0))
        for turn in range(3):
            await until(lambda: _reads(one))
            own_server.signal(signal.SIGSTOP)
            for n in range(1, 4):
                with pytest.raises(Unavailable):
                    await one.learn("m", event(10 * turn + n), event(1000 + n, id=None))
            own_server.signal(signal.SIGCONT)
            for n in range(1, 4):
                await until(lambda n=n, turn=turn: learns(one, event(10 * turn + n)))
        with own_server.client() as client:
            plain = fold_of(client)
            assert await two.state("m") == plain
            assert 10 <= plain["events"] <= 10 + 9
            await until(lambda: _reads(one))
            assert replica_state(await one.open("m")) == plain


@timed
async def test_no_call_waits_long_for_a_redis_that_stands_still(
    own_server: RedisServer, clock: Clock
) -> None:
    """Not even those that need several answers, of a model that is not open here."""

    async def _deleted(cold: Any) -> bool:
        with contextlib.suppress(NotFound):
            await cold.lifecycle.delete("m")
        return True

    async with worker(own_server.url) as one, worker(own_server.url) as cold:
        await one.create("m")
        await one.learn("m", event(0))
        own_server.signal(signal.SIGSTOP)
        try:
            began_s = clock()
            refused = await asyncio.gather(
                cold.learn("m", event(1)),
                cold.open("m"),
                cold.create("another"),
                one.create("m"),
                one.lifecycle.delete("m"),
                one.registry.entries(),
                one.connection.check_writable(),
                one.read("m"),
                return_exceptions=True,
            )
            assert clock() - began_s < 1
            for answer in refused:
                assert type(answer) is Unavailable
                assert answer.retry_after_s is not None
            began_s = clock()
            await one.save("m")
            assert clock() - began_s < 1
        finally:
            own_server.signal(signal.SIGCONT)
        await until(lambda: _deleted(cold))
        with own_server.client() as client:
            # what stood in line at the server was run when it went on
            await cold.create("m")
            await cold.learn("m", event(1))
            assert await cold.state("m") == fold_of(client)


@timed
async def test_a_worker_that_stops_while_redis_stands_still_ends_soon(
    own_server: RedisServer, clock: Clock
) -> None:
    one = Worker(own_server.url)
    one.housekeeping.start()
    for name in "abcdefgh":
        await one.create(name)
        await one.learn(name, event(0))
    own_server.signal(signal.SIGSTOP)
    try:
        began_s = clock()
        await one.stop()
        assert clock() - began_s < 3
    finally:
        own_server.signal(signal.SIGCONT)
