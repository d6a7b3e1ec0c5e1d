"""Replaying a long log over HTTP: others answer as ever, kill -9 costs little, all is told."""

import random
import time
from typing import Any

import httpx
import pytest

from tests.support.forked_worker import ForkedWorker
from tests.support.machine_clock import Clock
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.running import client_of

SLOW = {
    "learner": {"type": "perceptron"},
    "pipeline": [{"type": "StandardScaler"}, {"type": "PolynomialExtender"}],
}
EVENTS, SIZE = 32_000, 2_000
BOUND_S = 0.1


def _teach(client: httpx.Client, count: int) -> None:
    chance = random.Random(7)
    for _ in range(count // SIZE):
        events = [
            {
                "x": {f"f{i}": round(chance.gauss(0, 1), 3) for i in range(8)},
                "y": chance.random() < 0.5,
            }
            for _ in range(SIZE)
        ]
        client.post("/v1/models/m/learn", json=events).raise_for_status()


def _progress(client: httpx.Client) -> float:
    progress: float = client.get("/v1/models/again").json()["progress"]
    return progress


def _watch(client: httpx.Client, until: float, took: list[float]) -> float:
    """Predict with another model while the replay goes on; return its progress in the end."""
    progress, turn = 0.0, 0
    _predict_s(client)  # opens the model
    while progress < until:
        took.append(_predict_s(client))
        turn += 1
        if turn % 20 == 0:
            _check_told(client)
            now = _progress(client)
            assert now >= progress
            progress = now
    return progress


def _predict_s(client: httpx.Client) -> float:
    """Predict with another model; return how long that took."""
    time.sleep(0.001)
    began = time.perf_counter()
    client.post("/v1/models/other/predict", json={"x": {"a": 1.0}}).raise_for_status()
    return time.perf_counter() - began


def _p99(took: list[float]) -> float:
    return sorted(took)[int(len(took) * 0.99)]


def _check_told(client: httpx.Client) -> None:
    """Check that the model that replays answers, or says how far it is."""
    answer = client.post("/v1/models/again/predict", json={"x": {"f1": 1.0}})
    if answer.status_code != 200:
        assert answer.status_code == 503
        assert "% of the log is done" in answer.json()["detail"]
        assert int(answer.headers["retry-after"]) >= 1


def _account(client: httpx.Client, model: str) -> dict[str, Any]:
    info = client.get(f"/v1/models/{model}").json()
    parts = ("events", "mistakes", "updates", "hinge_loss", "radius", "position")
    return {part: info[part] for part in parts}


@pytest.mark.slow
@pytest.mark.alone
def test_a_long_replay_lets_other_models_answer_and_survives_kills(
    own_server: RedisServer, clock: Clock
) -> None:
    worker = ForkedWorker(own_server.url, snapshot_every_ms=200)
    worker.start()
    took: list[float] = []
    try:
        with client_of(worker) as client:
            client.put("/v1/models/m", json=SLOW).raise_for_status()
            client.put("/v1/models/other", json={"learner": {"type": "arow"}}).raise_for_status()
            _teach(client, EVENTS)
            quiet = _p99([_predict_s(client) for _ in range(200)])
            began_s = clock()
            client.post("/v1/models/m/replay", json={"name": "again"}).raise_for_status()
            assert clock() - began_s < 1.0
            reached = _watch(client, 0.4, took)
            assert reached < 1.0, "the replay is too short for this test"
        worker.kill()
        worker.start()
        with client_of(worker) as client:
            resumed = _progress(client)
            assert resumed > 0.1, "it began again"
            _watch(client, 1.0, took)
            assert client.post("/v1/models/again/predict", json={"x": {}}).status_code == 200
            assert _account(client, "again") == _account(client, "m")
            weights = [client.get(f"/v1/models/{m}/weights").json() for m in ("m", "again")]
            assert weights[0] == weights[1]
            assert weights[0]["weights"]
        assert worker.stop() in (0, -15)
    finally:
        worker.kill()
    p99 = _p99(took)
    print(f"{len(took)} predictions: p99 {p99 * 1e3:.1f} ms, {quiet * 1e3:.1f} ms without replay")
    assert len(took) > 50
    assert p99 < max(BOUND_S, 3 * quiet)  # a machine busy with other work is slow anyway


def test_closing_does_not_wait_for_a_replay(own_server: RedisServer, clock: Clock) -> None:
    worker = ForkedWorker(own_server.url)
    worker.start()
    try:
        with client_of(worker) as client:
            client.put("/v1/models/m", json=SLOW).raise_for_status()
            _teach(client, EVENTS // 2)
            client.post("/v1/models/m/replay", json={"name": "again"}).raise_for_status()
            time.sleep(0.05)
        began_s = clock()
        worker.stop()
        assert clock() - began_s < 1.5
        worker.start()
        with client_of(worker) as client:
            wait_until(lambda: _progress(client) == 1.0)
            assert _account(client, "again") == _account(client, "m")
    finally:
        worker.kill()
