"""Redis is killed and comes back from its append-only file."""

from __future__ import annotations

import math
import time

import pytest

from tests.e2e.drills.drill import Drill
from tests.e2e.drills.fleet import Fleet

_HELD_BACK_S = 3
"""With everysec, Redis writes nothing while an fsync takes long, for two seconds at most."""

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("fsync", ["always", "everysec"])
def test_acknowledged_events_survive_a_killed_redis(fleet: Fleet, drill: Drill, fsync: str) -> None:
    fleet.server.fsync = fsync
    with fleet.server.client() as client:
        client.config_set("appendfsync", fsync)
    with drill.load() as load:
        fleet.server.kill()
        killed_s = time.monotonic()
        load.until_refused()
        fleet.server.start()
        ended_s = time.monotonic()
        recover_s = load.recovered(ended_s)
        load.until_more()
    done = "kill -9 under load, started again from its append-only file"
    safe_until_s = math.inf if fsync == "always" else killed_s - _HELD_BACK_S
    drill.judge(f"Redis killed, appendfsync {fsync}", done, load, recover_s, safe_until_s)
