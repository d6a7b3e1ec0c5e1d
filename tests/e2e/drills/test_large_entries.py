"""Entries of a megabyte from a Redis Stream: what the reader, the log and a worker hold of them."""

from __future__ import annotations

import json
import resource
import time
from typing import Any

import httpx
import pytest
import redis

from tests.e2e.drills.serving import Serving
from tests.support.ingest import Ingest
from tests.support.other_caller import OtherCaller, bound_ms
from tests.support.processes import PROC
from tests.support.redis_server import RedisServer

pytestmark = pytest.mark.slow

_MIB = 2**20
_ENTRIES = 300
_ENTRY_BYTES = 1_050_000
_NAMES = 5_000
_READER_BYTES = 300 * _MIB
_READY_S = 20.0


def _entry(number: int) -> str:
    """Return an event of 1.05 MB."""
    width = _ENTRY_BYTES // _NAMES - len('"": 1.5, ')
    names = {f"{n:0{width}}": number % 5 + 0.5 for n in range(_NAMES)}
    return json.dumps({"id": f"e{number}", "x": names, "y": number % 3 == 0})


def test_entries_of_a_megabyte_hold_little_memory_and_leave_small_log_entries(
    own_server: RedisServer, own_db: redis.Redis
) -> None:
    for number in range(_ENTRIES):
        own_db.xadd("s", {"event": _entry(number)})
    worker = Serving(own_server.url, retention_bytes=2**30)
    worker.start()
    try:
        with httpx.Client(base_url=worker.url, timeout=60) as client:
            wide = {"learner": {"type": "perceptron"}, "max_features": 10_000}
            client.put("/v1/models/m", json=wide).raise_for_status()
            client.put("/v1/models/quiet", json={"learner": {"type": "perceptron"}})
            most_ms = bound_ms(worker.url, "quiet")
            running = Ingest(
                *("redis-stream", "--stream", "s", "--group", "g", "--model", "m"),
                *("--url", own_server.url, "--drain"),
                redis_url=own_server.url,
            )
            highest = worker_highest = 0
            with OtherCaller(worker.url, "quiet") as other:
                while running.process.poll() is None:
                    highest = max(highest, _resident_bytes(running.process.pid))
                    client.post("/v1/models/m/predict", json={"x": {}}).raise_for_status()
                    worker_highest = max(worker_highest, worker.resident_bytes())
                    time.sleep(0.02)
            assert not other.failed
            assert other.p99_ms < max(most_ms, bound_ms(worker.url, "quiet"))
            code, _, stderr = running.end()
            assert code == 0, stderr
            entries: Any = own_db.xrange("hinged:{m}:log")
            sizes = [len(fields["events"]) for _, fields in entries if "events" in fields]
            assert max(sizes) < 2 * _ENTRY_BYTES
            assert highest < _READER_BYTES
            assert worker_highest < worker.budget_bytes()
            worker.kill()
            began_s = time.monotonic()
            worker.start()
            while client.post("/v1/models/m/predict", json={"x": {}}).status_code != 200:
                assert time.monotonic() - began_s < _READY_S
                time.sleep(0.05)
            ready_s = time.monotonic() - began_s
            assert client.get("/v1/models/m").json()["events"] == _ENTRIES
    finally:
        worker.kill()
    print(
        f"{_ENTRIES} entries of {_ENTRY_BYTES / 1e6} MB: {len(sizes)} log entries, the largest of "
        f"{max(sizes) / 1e6:.2f} MB; reader {highest // _MIB} MiB, worker {worker_highest // _MIB} "
        f"MiB; ready {ready_s:.1f} s after a kill; {len(other.times_ms)} other predictions, "
        f"p99 {other.p99_ms:.1f} ms"
    )


def _resident_bytes(pid: int) -> int:
    """Return the memory that a process holds; 0 if it has ended."""
    try:
        return int((PROC / str(pid) / "statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0
