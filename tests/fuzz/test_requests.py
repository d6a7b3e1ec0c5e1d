"""Hostile requests of every route to a real worker: an answer each, none of 5xx, soon, no growth.

`HINGED_FUZZ=1000000 pytest tests/fuzz/test_requests.py -s` sends as many and tells how it went.
"""

import contextlib
import time
from pathlib import Path

import httpx
import pytest
import redis

from tests.e2e.drills.serving import Serving
from tests.fuzz.budget import ASKED, SEED
from tests.fuzz.hostile import Clients
from tests.support.redis_server import RedisServer

USUAL = 600
ROUND = 1_000
LONGEST_S = 1.0
MOST_MB = 150
MODELS = 60


def test_no_request_fails_or_holds_up_or_grows_a_worker(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    count = ASKED or USUAL
    with RedisServer(tmp_path) as server, contextlib.closing(server.client()) as store:
        worker = Serving(
            server.url, max_models=MODELS, at_least_timeout_ms=20, retention_bytes=2**22
        )
        with contextlib.ExitStack() as stack:
            stack.callback(worker.kill)
            worker.start()
            clients = Clients(worker.url, SEED)
            position = clients.mend()
            clients.send(position, 0, min(count, ROUND))  # what is imported and cached once
            usual_mb, begun_s = worker.resident_bytes() // 10**6, time.monotonic()
            for first in range(ROUND, count, ROUND):
                position = clients.mend()
                clients.send(position, first, min(ROUND, count - first))
                with capsys.disabled():
                    print(progress(clients, worker, store, begun_s), flush=True)
            clients.mend()
            assert httpx.get(f"{worker.url}/readyz", timeout=30).status_code == 200
            grown_mb = worker.resident_bytes() // 10**6 - usual_mb
    assert not clients.failures, "\n".join(map(str, clients.failures[:5]))
    assert sum(clients.statuses.values()) == count
    assert clients.longest[0][0] < LONGEST_S, clients.longest
    assert grown_mb < MOST_MB


def progress(clients: Clients, worker: Serving, store: redis.Redis, begun_s: float) -> str:
    done = sum(clients.statuses.values())
    return (
        f"{time.monotonic() - begun_s:.0f} s, {done} requests, {dict(clients.statuses)}, "
        f"waited {dict(clients.waited)}, failures {len(clients.failures)} {clients.failures[-1:]}, "
        f"longest {[(round(s, 2), t, r.method, r.target[:60]) for s, t, r in clients.longest]}, "
        f"worker {worker.resident_bytes() // 10**6} MB, "
        f"Redis {store.info('memory')['used_memory'] // 10**6} MB"
    )
