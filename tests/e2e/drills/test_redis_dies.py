"""Redis is killed and comes back from its append-only file."""

from __future__ import annotations

import time

import pytest

from tests.e2e.drills.drill import Drill
from tests.e2e.drills.fleet import Fleet

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("fsync", ["always", "everysec"])
def test_what_was_acknowledged_survives_a_killed_redis(
    fleet: Fleet, drill: Drill, fsync: str
) -> None:
    fleet.server.fsync = fsync
    with fleet.server.client() as client:
        client.config_set("appendfsync", fsync)
    with drill.load() as load:
        fleet.server.kill()
        load.until_refused()
        fleet.server.start()
        ended_s = time.monotonic()
        recover_s = load.recovered(ended_s)
        load.until_more()
    drill.judge(
        f"Redis killed, appendfsync {fsync}",
        "kill -9 under load, started again from its append-only file",
        load,
        recover_s,
    )
