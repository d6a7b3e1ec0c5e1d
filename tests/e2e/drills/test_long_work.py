"""Long work of one model: other callers do not wait for it, and no event is lost or doubled."""

from __future__ import annotations

import json
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import httpx
import pytest

from tests.e2e.drills.serving import Serving
from tests.support.other_caller import OtherCaller
from tests.support.redis_server import RedisServer

pytestmark = [pytest.mark.slow, pytest.mark.alone]

_FULL = bool(os.environ.get("HINGED_FULL_DRILLS"))
"""All events that a hostile caller sent, not a part of them."""
_CALM_S = 1.0
_COURSES = 3
_P99_MS = 100.0
_SLOWER = 4
_TIMEOUT_S = 300.0
_HEALTH_S = 1.0

Event = dict[str, Any]


def _numbers(count: int, seed: int) -> dict[str, float]:
    return {f"f{j}": (j * 37 + seed * 11) % 100 / 100 for j in range(count)}


def _of(width: int, classes: int = 0) -> Callable[[int], Event]:
    def event(i: int) -> Event:
        return {"x": _numbers(width, i), "y": f"c{i % classes}" if classes else i % 2 == 0}

    return event


def _text(i: int) -> Event:
    words = " ".join(f"w{(i * 31 + j * 7) % 5_000}" for j in range(400))
    return {"x": {"t": words}, "y": i % 2 == 0}


class _Work(NamedTuple):
    """A call that takes long: a spec, the call, events, how many in short and in full."""

    spec: dict[str, Any]
    call: str
    event: Callable[[int], Event]
    some: int
    full: int


_CUBES = {"type": "PolynomialExtender", "degree": 3}
_COSINES = {"type": "RBFSampler", "n_components": 1000}
_TERMS = {"type": "TFIDF", "on": "t", "ngram_range": [1, 5]}
_TREE = {"type": "HoeffdingTreeClassifier", "max_classes": 10}
_TREES = {"type": "BaggingClassifier", "model": _TREE, "n_models": 50, "seed": 1}
_LOGISTIC = {"type": "BaggingClassifier", "model": {"type": "LogisticRegression"}, "n_models": 50}
_KSWIN = {"type": "KSWIN", "window_size": 5000, "stat_size": 2500, "seed": 1}
_METRICS = ["accuracy", "balanced_accuracy", "f1", "log_loss", "confusion_matrix", "cohen_kappa"]
_PERCEPTRON = {"type": "perceptron"}
_HEDGE = {"type": "hedge", "models": [{"type": "arow"}] * 32}

_WORK = {
    "products": _Work({"learner": _PERCEPTRON, "pipeline": [_CUBES]}, "predict", _of(37), 60, 400),
    "cosines": _Work(
        {"learner": _PERCEPTRON, "pipeline": [_COSINES]}, "predict", _of(1), 800, 4_000
    ),
    "ensemble": _Work({"learner": _LOGISTIC | {"seed": 1}}, "learn", _of(20), 100, 1_000),
    "trees": _Work({"learner": _TREES}, "learn", _of(20, 5), 40, 1_000),
    "products behind experts": _Work(
        {"learner": _HEDGE, "pipeline": [_CUBES]}, "learn", _of(25), 10, 200
    ),
    "texts": _Work({"learner": _PERCEPTRON, "pipeline": [_TERMS]}, "learn", _text, 150, 2_000),
    "classes": _Work(
        {"learner": {"type": "multiclass_perceptron"}, "metrics": _METRICS},
        "learn",
        _of(1, 1_000),
        1_200,
        5_000,
    ),
    "softmax": _Work(
        {"learner": {"type": "SoftmaxRegression", "max_classes": 1000}},
        "learn",
        _of(2, 1_000),
        500,
        2_500,
    ),
    "drift": _Work(
        {"learner": _PERCEPTRON, "drift": {"detector": _KSWIN}}, "learn", _of(1), 5_300, 9_000
    ),
}


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Serving]]:
    """Two workers on one Redis."""
    with RedisServer(tmp_path_factory.mktemp("redis")) as server:
        both = [Serving(server.url), Serving(server.url)]
        for one in both:
            one.start()
        yield both
        for one in both:
            one.kill()


@pytest.fixture
def client(workers: list[Serving]) -> Iterator[httpx.Client]:
    """A client of the first worker."""
    with httpx.Client(base_url=workers[0].url, timeout=_TIMEOUT_S, verify=False) as client:
        yield client


def _model(client: httpx.Client, spec: dict[str, Any]) -> str:
    name = f"long-{secrets.token_hex(4)}"
    assert client.put(f"/v1/models/{name}", json=spec).status_code == 201
    return name


def _warm(workers: list[Serving], name: str, event: Event) -> None:
    """Have all workers open a model, which may import parts of River."""
    for one in workers:
        url = f"{one.url}/v1/models/{name}/predict"
        httpx.post(url, json={"x": event["x"]}, timeout=_TIMEOUT_S)


def _account(worker: Serving, name: str, at_least: str) -> dict[str, Any]:
    """Return what a worker tells of a model, once it is so far."""
    until_s = time.monotonic() + _TIMEOUT_S
    while True:
        url = f"{worker.url}/v1/models/{name}?at_least={at_least}"
        answer = httpx.get(url, timeout=_TIMEOUT_S)
        if answer.status_code == 200:
            return {k: v for k, v in answer.json().items() if k not in ("snapshot", "stale_s")}
        assert answer.status_code == 503, answer.text
        assert time.monotonic() < until_s
        time.sleep(0.2)


class _Health:
    """Ask for `/healthz` all the time; `longest_s` tells the longest wait."""

    def __init__(self, url: str) -> None:
        self._url = f"{url}/healthz"
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._ask)
        self.longest_s = 0.0

    def __enter__(self) -> _Health:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _ask(self) -> None:
        with httpx.Client(timeout=_TIMEOUT_S) as client:
            while not self._done.wait(0.05):
                begun_s = time.monotonic()
                assert client.get(self._url).status_code == 200
                self.longest_s = max(self.longest_s, time.monotonic() - begun_s)


@pytest.mark.parametrize("name", _WORK)
def test_others_do_not_wait_and_workers_agree(
    workers: list[Serving], client: httpx.Client, name: str
) -> None:
    """A machine that stands still for a moment does not do so in each of three courses."""
    late = []
    for _ in range(_COURSES):
        beside_ms, calm_ms = _course(workers, client, name)
        if beside_ms < max(_P99_MS, _SLOWER * calm_ms):  # on a busy machine all of it is slow
            return
        late.append((beside_ms, calm_ms))
    pytest.fail(f"p99 in ms beside long work, and before it: {late}")


def _course(workers: list[Serving], client: httpx.Client, name: str) -> tuple[float, float]:
    """Let a model work long, check what came of it; return the p99 of others beside and before."""
    work = _WORK[name]
    events = [work.event(i) for i in range(work.full if _FULL else work.some)]
    model, other = _model(client, work.spec), _model(client, {"learner": _PERCEPTRON})
    _warm(workers, other, {"x": {"a": 1.0}})
    _warm(workers, model, events[0])
    asked = [{"x": e["x"]} for e in events] if work.call == "predict" else events
    body = json.dumps(asked)
    with OtherCaller(workers[0].url, other) as calm, _Health(workers[0].url) as usual:
        time.sleep(_CALM_S)
    begun_s = time.monotonic()
    with OtherCaller(workers[0].url, other) as beside, _Health(workers[0].url) as health:
        answer = client.post(
            f"/v1/models/{model}/{work.call}",
            content=body,
            headers={"content-type": "application/json"},
        )
        took_s = time.monotonic() - begun_s
    print(
        f"{name}: {len(events)} events, {len(body) / 1000:.0f} kB, {took_s:.1f} s; "
        f"{len(beside.times_ms)} other predictions, p99 {beside.p99_ms:.1f} ms "
        f"(calm {calm.p99_ms:.1f}), longest {beside.longest_ms:.0f} ms; "
        f"healthz {health.longest_s * 1000:.0f} ms"
    )
    assert answer.status_code == 200, answer.text[:500]
    answers = answer.json()
    assert len(answers) == len(events)
    assert not beside.failed
    assert health.longest_s < max(_HEALTH_S, _SLOWER * usual.longest_s)
    if work.call == "learn":
        position = answers[-1]["position"]
        first, second = (_account(one, model, position) for one in workers)
        assert first["events"] == len(events)
        assert first == second
    assert workers[0].resident_bytes() < workers[0].budget_bytes()
    for name in (model, other):
        client.delete(f"/v1/models/{name}")
    return beside.p99_ms, calm.p99_ms
