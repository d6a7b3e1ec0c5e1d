"""Entries that are no part of a log come between its own, while clients learn."""

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest

from hinged_service.store.keys import StreamKeys
from tests.e2e.drills.drill import Drill

_FOREIGN = 60

pytestmark = pytest.mark.slow


def test_foreign_entries_between_others_are_folded_by_no_worker(drill: Drill) -> None:
    keys = StreamKeys(drill.model)
    added = []
    with drill.load() as load, drill.redis_client() as client:
        for _ in range(_FOREIGN):
            found: Any = client.xrevrange(keys.log, count=3)
            added.append(client.xadd(keys.log, found[-1][1]))  # one that was there, once more
            time.sleep(0.02)
        ended_s = time.monotonic()
        load.until_more()
        recover_s = load.recovered(ended_s)
    for worker in drill.workers:
        info = httpx.get(f"{worker.url}{drill.path}", timeout=30).json()
        assert {part["where"] for part in info["damaged"]} <= set(added)
    done = httpx.post(f"{drill.workers[0].url}{drill.path}/repair", timeout=30).json()
    assert (set(done["removed"]), done["passed_over"]) == (set(added), [])
    drill.judge(f"{_FOREIGN} foreign entries", "written into the log under load", load, recover_s)
