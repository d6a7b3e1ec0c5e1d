"""The way between workers and Redis is slow, cut, or passes one way only."""

from __future__ import annotations

import time

import httpx
import pytest

from tests.e2e.drills.drill import Drill
from tests.e2e.drills.fleet import Fleet
from tests.support.processes import wait_until

pytestmark = pytest.mark.slow


def test_a_redis_that_is_slow(fleet: Fleet, drill: Drill) -> None:
    with drill.load() as load:
        for proxy in fleet.proxies:
            proxy.delay_s = 0.25  # enough for each command, tight for a call
        load.until_more(30)
        for proxy in fleet.proxies:
            proxy.delay_s = 1.0  # longer than a command may take
        load.until_refused(10)
        for proxy in fleet.proxies:
            proxy.delay_s = 0.0
        recover_s = load.recovered(time.monotonic())
        load.until_more()
    done = "each answer 250 ms late, then a second, longer than a command may take"
    drill.judge("Redis slow", done, load, recover_s)


def test_a_worker_that_is_cut_off_while_another_goes_on(fleet: Fleet, drill: Drill) -> None:
    off, on = fleet.proxies[0], 1
    with drill.load() as load:
        off.hold = True
        load.until_refused()
        load.recovered(time.monotonic(), [on])
        load.until_more(40)
        stale = httpx.post(
            f"{drill.workers[0].url}{drill.path}/predict",
            json={"x": {"a": 1}},
            timeout=10,
            verify=False,
        )
        assert stale.json()["stale_s"] > 0
        off.hold = False
        recover_s = load.recovered(time.monotonic())
        load.until_more()
    done = "nothing passes between one worker and Redis, either way, then what waited arrives late"
    drill.judge("partition of one worker", done, load, recover_s)


def test_connections_that_are_refused(fleet: Fleet, drill: Drill) -> None:
    with drill.load() as load:
        for proxy in fleet.proxies:
            proxy.refuse = True
            proxy.cut()
        load.until_refused(10)
        for proxy in fleet.proxies:
            proxy.refuse = False
        recover_s = load.recovered(time.monotonic())
        load.until_more()
    done = "all connections cut and new ones refused"
    drill.judge("partition of all workers", done, load, recover_s)


def test_commands_that_arrive_and_answers_that_do_not(fleet: Fleet, drill: Drill) -> None:
    with drill.load() as load:
        for proxy in fleet.proxies:
            proxy.hold_replies = True
        load.until_refused(10)
        for proxy in fleet.proxies:
            proxy.cut()  # the answers that waited never come
            proxy.hold_replies = False
        recover_s = load.recovered(time.monotonic())
        for proxy in fleet.proxies:
            proxy.drop_replies = 5
        wait_until(lambda: all(proxy.drop_replies == 0 for proxy in fleet.proxies))
        load.until_more()
    done = "commands reach Redis and run, their answers are held back, then lost; ten more lost"
    drill.judge("answers lost", done, load, recover_s)
