"""Callers that send very many names: what a worker and Redis hold for them, and give back."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
import redis

from tests.e2e.drills.serving import Serving
from tests.support.other_caller import OtherCaller, bound_ms
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer

pytestmark = pytest.mark.slow

_MIB = 2**20
_ONE_VS_REST = {"type": "one_vs_rest", "learner": {"type": "passive_aggressive"}}
_COSINES = {"type": "RBFSampler", "n_components": 1_000}


@pytest.fixture
def worker(own_server: RedisServer) -> Iterator[Serving]:
    serving = Serving(own_server.url)
    serving.start()
    try:
        yield serving
    finally:
        serving.stop()


@pytest.fixture
def client(worker: Serving) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=worker.url, timeout=60) as made:
        made.put("/v1/models/quiet", json={"learner": {"type": "perceptron"}})
        yield made


def wide(first: int, count: int) -> dict[str, float]:
    return {f"name {n}": 1.0 for n in range(first, first + count)}


def with_classes(client: httpx.Client, count: int) -> str:
    path = "/v1/models/classes"
    client.put(path, json={"learner": _ONE_VS_REST})
    for first in range(0, count, 50):
        events = [{"x": {"a": 1}, "y": f"class {n}"} for n in range(first, first + 50)]
        assert client.post(f"{path}/learn", json=events).status_code == 200
    wait_until(lambda: is_saved(client, path))
    return path


def is_saved(client: httpx.Client, path: str) -> bool:
    info = client.get(path).json()
    saved: bool = info["position"].startswith(info["snapshot"])
    return saved


def test_names_times_classes_beyond_max_bytes_take_nothing(
    own_server: RedisServer, worker: Serving, client: httpx.Client
) -> None:
    path = with_classes(client, 400)
    with redis.Redis.from_url(own_server.url) as store:
        before, stored = worker.resident_bytes(), store.info("memory")["used_memory"]
        most_ms = bound_ms(worker.url, "quiet")
        with OtherCaller(worker.url, "quiet") as other:
            for number in range(40):
                event = {"x": wide(10_000 * number, 10_000), "y": "class 7"}
                answer = client.post(f"{path}/learn", json=event)
                assert (answer.status_code, "max_bytes" in answer.text) == (422, True)
        assert worker.resident_bytes() - before < 32 * _MIB
        assert store.info("memory")["used_memory"] - stored < 8 * _MIB
    assert worker.resident_bytes() < worker.budget_bytes()
    assert not other.failed
    assert other.p99_ms < max(most_ms, bound_ms(worker.url, "quiet"))
    info = client.get(path).json()
    assert (info["events"], info["rejected"], info["features"]) == (400, 0, 1)


def test_redis_gives_the_memory_of_a_deleted_model_back(
    own_server: RedisServer, worker: Serving, client: httpx.Client
) -> None:
    with redis.Redis.from_url(own_server.url) as store:

        def held() -> tuple[int, int]:
            return worker.resident_bytes() // _MIB, store.info("memory")["used_memory"] // _MIB

        path = with_classes(client, 300)
        before = held()
        assert client.post(f"{path}/learn", json={"x": wide(0, 1_500), "y": "class 7"}).is_success
        wait_until(lambda: is_saved(client, path))
        assert held()[1] > before[1] + 20
        assert client.get(path).json()["bytes"] > 50 * _MIB
        assert held()[0] > before[0] + 8
        assert client.delete(path).status_code == 204
        wait_until(lambda: held()[1] < before[1] + 8, timeout_s=30)
        wait_until(lambda: worker.resident_bytes() < worker.budget_bytes(), timeout_s=30)


def test_names_in_predictions_leave_nothing_behind(worker: Serving, client: httpx.Client) -> None:
    path = "/v1/models/cosines"
    client.put(path, json={"learner": {"type": "perceptron"}, "pipeline": [_COSINES]})
    client.post(f"{path}/predict", json={"x": {"a": 1}})
    before, most_ms = worker.resident_bytes(), bound_ms(worker.url, "quiet")
    with OtherCaller(worker.url, "quiet") as other:
        for number in range(1_500):
            answer = client.post(f"{path}/predict", json={"x": {f"{'n' * 200}{number}": 1}})
            assert answer.status_code == 200
    assert worker.resident_bytes() - before < 16 * _MIB
    assert worker.resident_bytes() < worker.budget_bytes()
    assert not other.failed
    assert other.p99_ms < max(most_ms, bound_ms(worker.url, "quiet"))
