"""Sentinels promote a replica; the workers find it by themselves."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.drills.drill import Drill
from tests.e2e.drills.serving import workers_on
from tests.support.sentinel import SERVICE, SentinelTrio

pytestmark = pytest.mark.slow


@pytest.fixture
def trio(tmp_path: Path) -> Iterator[SentinelTrio]:
    made = SentinelTrio(tmp_path)
    try:
        made.start()
        yield made
    finally:
        made.stop()


def test_a_primary_that_dies_under_the_eyes_of_its_sentinels(
    trio: SentinelTrio, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    with workers_on(trio.url, metrics_dir=tmp_path) as workers:  # they hand calls to each other
        drill = Drill(workers, lambda: trio.primary.client(), record_property)
        with drill.load() as load:
            dead, new = trio.primary, trio.replica
            new.until_synced()
            for sentinel in trio.sentinels:
                sentinel.ask("SENTINEL", "SET", SERVICE, "down-after-milliseconds", 2_500)
            dead.ask("CONFIG", "SET", "appendfsync", "always")  # its file tells what it had alone
            dead.kill()
            killed_s = time.monotonic()
            trio.until_primary(new)
            took_over_s = time.monotonic() - killed_s
            recover_s = load.recovered(killed_s)
            load.until_more()
        done = f"kill -9 of the primary; the replica was promoted after {took_over_s:.1f} s"
        drill.judge_loss("Sentinel: failover", done, load, recover_s, dead.directory)
