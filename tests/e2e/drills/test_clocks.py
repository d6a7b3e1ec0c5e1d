"""The clock on the wall jumps, for Redis and for the workers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path

import httpx
import pytest

from tests.e2e.drills.drill import Drill
from tests.e2e.drills.serving import Serving, workers_on
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer, valkey_binary

_LIBRARY = next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))), None)
_DAY_S, _HOUR_S = 86_400, 3_600
_ALMOST_AN_HOUR_MS = 3_500_000

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(_LIBRARY is None, reason="the Debian package libfaketime is not there"),
]


class Clock:
    """A wall clock of some processes that can be set; no process takes time from it otherwise."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.set(0)

    @property
    def variables(self) -> dict[str, str]:
        """Environment of a process that is to go by it."""
        return {
            "LD_PRELOAD": str(_LIBRARY),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": "1",  # seconds: to read it each time is slow
            "NO_FAKE_STAT": "1",
            "FAKETIME_DISABLE_SHM": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def set(self, ahead_s: int) -> None:
        """Let it be so far ahead of the true time, behind if negative."""
        fresh = self._file.with_suffix(".new")
        fresh.write_text(f"{ahead_s:+d}s\n")
        fresh.replace(self._file)


@dataclass(frozen=True)
class Timed:
    """Two workers and a Redis, each with a clock of its own."""

    server: RedisServer
    workers: list[Serving]
    clock: Clock
    worker_clocks: list[Clock]

    def now_ms(self) -> int:
        """The time by Redis's clock."""
        with self.server.client() as client:
            seconds, micros = client.time()
            return int(seconds) * 1000 + int(micros) // 1000


@pytest.fixture(scope="module")
def timed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Timed]:
    folder = tmp_path_factory.mktemp("timed")
    clock, *clocks = (Clock(folder / f"clock{number}") for number in range(3))
    script = folder / "server"
    settings = " ".join(f"{name}={value}" for name, value in clock.variables.items())
    script.write_text(f'#!/bin/sh\nexec env {settings} {valkey_binary()} "$@"\n')
    script.chmod(0o755)
    with (
        RedisServer(folder / "redis", str(script)) as server,
        workers_on(server.url, *(one.variables for one in clocks)) as workers,
    ):
        yield Timed(server, workers, clock, clocks)


@pytest.fixture
def drill(timed: Timed, record_property: Callable[[str, object], None]) -> Drill:
    for clock in (timed.clock, *timed.worker_clocks):
        clock.set(0)
    return Drill(timed.workers, timed.server.client, record_property)


def test_workers_whose_clocks_jump(timed: Timed, drill: Drill) -> None:
    ahead, behind = timed.worker_clocks
    with drill.load() as load:
        ahead.set(2 * _DAY_S)
        behind.set(-2 * _DAY_S)
        for worker, days in zip(timed.workers, (2, -2), strict=True):
            _until_ahead(worker, days * _DAY_S)
        recover_s = load.recovered(time.monotonic())
        load.until_more()
        ahead.set(0)
        behind.set(0)
        for worker in timed.workers:
            _until_ahead(worker, 0)
        load.until_more()
    done = "one worker's clock two days ahead, the other's two days behind, then both right again"
    drill.judge("workers' clocks jump", done, load, recover_s)


def test_a_redis_whose_clock_jumps(timed: Timed, drill: Drill) -> None:
    true_ms = timed.now_ms()
    with drill.load() as load:
        timed.clock.set(_HOUR_S)
        wait_until(lambda: timed.now_ms() - true_ms > _ALMOST_AN_HOUR_MS)
        load.recovered(time.monotonic())
        load.until_more()
        timed.clock.set(-_HOUR_S)
        wait_until(lambda: timed.now_ms() < true_ms)
        recover_s = load.recovered(time.monotonic())
        load.until_more()
    done = "Redis's clock an hour ahead, then an hour behind: entry ids go on from the last one"
    balance = drill.judge("Redis's clock jumps", done, load, recover_s)
    milliseconds = [int(entry_id.partition("-")[0]) for entry_id in balance.folded.chains]
    assert milliseconds == sorted(milliseconds)
    assert milliseconds[-1] - true_ms > _ALMOST_AN_HOUR_MS


def _until_ahead(worker: Serving, ahead_s: float) -> None:
    """Wait until a worker's clock is so far ahead, as its answers tell."""

    def is_ahead() -> bool:
        date = httpx.get(f"{worker.url}/healthz", timeout=10, verify=False).headers["date"]
        return abs(parsedate_to_datetime(date).timestamp() - time.time() - ahead_s) < _HOUR_S

    wait_until(is_ahead)
