"""The whole way once: create, learn, predict, restart, look at the weights."""

from __future__ import annotations

import httpx
import pytest

from tests.support.forked_worker import ForkedWorker
from tests.support.worker import Worker

SEED = [
    ([1, 1, 0, 1, 1], True),
    ([0, 0, 1, 1, 0], False),
    ([0, 1, 1, 0, 0], True),
    ([1, 0, 0, 1, 0], False),
    ([1, 0, 1, 0, 1], True),
    ([1, 0, 1, 1, 0], False),
]


@pytest.mark.parametrize("as_array", [False, True])
def test_the_seed_example_over_http_survives_a_killed_worker(
    redis_url: str, as_array: bool
) -> None:
    worker = ForkedWorker(redis_url) if as_array else Worker(redis_url)
    worker.start()
    spec = {"learner": {"type": "perceptron", "learning_rate": 0.5, "fit_intercept": False}}
    events = [
        {"x": {f"x{i}": v for i, v in enumerate(row)}, "y": y, "id": f"e{n}"}
        for n, (row, y) in enumerate(SEED)
    ]
    with httpx.Client(base_url=worker.url, verify=False) as client:
        assert client.put("/v1/models/seed", json=spec).status_code == 201
        assert client.put("/v1/models/seed", json=spec).status_code == 200
        for body in [events] if as_array else events:
            assert client.post("/v1/models/seed/learn", json=body).status_code == 200
    worker.kill()
    worker.start()
    with httpx.Client(base_url=worker.url, verify=False) as client:
        answer = client.post("/v1/models/seed/learn", json=events).json()
        assert [a["duplicate"] for a in answer] == [True] * 6
        model = client.get("/v1/models/seed").json()
        assert (model["events"], model["updates"]) == (6, 4)
        weights = client.get("/v1/models/seed/weights").json()
        expected = {"x0": 0.0, "x1": 1.0, "x2": 0.0, "x3": -0.5, "x4": 0.5}
        assert weights["weights"] == expected
        assert weights["intercept"] == 0.0
    assert worker.stop() in (0, -15)  # uvicorn ends by the signal it got, after cleaning up
