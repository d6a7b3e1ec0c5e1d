"""A worker that is told to stop ends in order what it took, and what would last."""

import signal
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
import redis

import hinged
from tests.api.ndjson.sending import Sender, event, lines_of
from tests.server.shutdown.serving import Serving, unended_call
from tests.support.checks import check_problem
from tests.support.plain_fold import fold_log, model_uid, read_snapshot
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.running import serving
from tests.support.service import Service

SPEC = {"learner": {"type": "perceptron"}}
Serve = Callable[..., Serving]


@pytest.fixture
def serve(redis_url: str) -> Iterator[Serve]:
    started: list[Serving] = []

    def start(workers: int, whole: bool = False) -> Serving:
        started.append(Serving(redis_url, workers, uuid.uuid4().hex, whole))
        httpx.put(
            f"{started[-1].url}/v1/models/m", json=SPEC, timeout=30, verify=False
        ).raise_for_status()
        return started[-1]

    yield start
    for one in started:
        one.kill()


@pytest.mark.parametrize(("workers", "results"), [(1, "summary"), (2, "each")])
def test_a_body_of_lines_in_the_middle_is_answered_and_told_where_to_go_on(
    serve: Serve, db: redis.Redis, workers: int, results: str
) -> None:
    serving = serve(workers)
    with Sender(serving.port, f"/v1/models/m/learn?results={results}") as sender:
        sender.send(lines_of(event(n, id=f"e{n}") for n in range(5)) + b'{"x": {"half')
        if results == "each":
            assert [sender.line()["line"] for _ in range(5)] == [1, 2, 3, 4, 5]
        else:
            wait_until(lambda: _events(serving) == 5)
        serving.send_signal()
        last = sender.line()
        assert last["line"] == 6
        if results == "each":
            assert last["error"]["status"] == 503
            assert "is stopping" in last["error"]["detail"]
            assert sender.line() is None
        else:
            assert sender.status == last["status"] == 503
            assert last["summary"]["learned"] == 5
    code, stderr = serving.end()
    assert code == 0
    assert "graceful shutdown exceeded" not in stderr
    folded = fold_log(db, "m", hinged.Perceptron())
    assert folded.counted_ids == [f"e{n}" for n in range(5)]
    stored = read_snapshot(db, "m", model_uid(db, "m"))
    assert stored is not None
    assert stored.position == folded.position, "it is saved"


@pytest.mark.slow
def test_calls_that_outlast_the_patience_of_a_stop_are_told_so(
    serve: Serve, db: redis.Redis
) -> None:
    """The learn call is in the log, and its ids may be sent again.

    A detector with a full window makes it long to learn an event, but not to take it.
    """
    serving = serve(1)
    detector = {"type": "KSWIN", "window_size": 5_000, "stat_size": 2_500, "seed": 1}
    spec = {"learner": {"type": "perceptron"}, "drift": {"detector": detector}}
    url = f"{serving.url}/v1/models/slow"
    httpx.put(url, json=spec, timeout=30, verify=False).raise_for_status()
    events = [{"x": {"a": 1}, "y": True, "id": f"e{n}"} for n in range(15_000)]
    first, rest = events[:5_000], events[5_000:]
    with httpx.Client(timeout=200, verify=False) as client, ThreadPoolExecutor(1) as caller:
        client.post(f"{url}/learn", json=first).raise_for_status()
        learning = caller.submit(client.post, f"{url}/learn", json=rest)
        wait_until(lambda: db.hget("hinged:{slow}:meta", "count") == "15000", 100)
        serving.send_signal()
        problem = check_problem(learning.result(), 503)
    assert "may be sent again" in problem["detail"]
    code, _ = serving.end()
    assert code == 0
    assert db.hget("hinged:{slow}:meta", "count") == "15000"


def _events(serving: Serving) -> int:
    events: int = httpx.get(f"{serving.url}/v1/models/m", timeout=30, verify=False).json()["events"]
    return events


@pytest.mark.parametrize(("workers", "second"), [(1, signal.SIGTERM), (2, signal.SIGTERM)])
def test_a_second_signal_hurries(serve: Serve, workers: int, second: signal.Signals) -> None:
    serving = serve(workers, whole=workers == 2)
    with unended_call(serving.port, "/v1/models/m/learn"):
        serving.send_signal()
        wait_until(lambda: not serving.accepts(), 30)
        assert serving.process.poll() is None, "it waits for the call"
        serving.send_signal(second)
        code, stderr = serving.end()
    assert code == 0
    assert "graceful shutdown exceeded" not in stderr


def test_a_call_in_the_middle_of_its_body_is_answered_if_it_ends_in_time(serve: Serve) -> None:
    serving = serve(1)
    with unended_call(serving.port, "/v1/models/m/predict") as sent:
        serving.send_signal()
        wait_until(lambda: not serving.accepts(), 30)
        rest = b': {"a": 1.0}}'
        sent.sendall(rest + b" " * (1000 - len(rest) - 4))
        answer = sent.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 200")
    assert b'"score":0.0' in answer
    assert serving.end()[0] == 0


def test_ready_is_what_a_stopping_worker_is_not(redis_url: str) -> None:
    with Service(redis_url) as service, service.client() as client:
        assert client.get("/readyz").status_code == 200
        host: Any = service.app.state.registry
        host.stopping.begin()
        answer = client.get("/readyz")
        assert answer.status_code == 503
        assert {"field": "worker", "reason": "is stopping"} in answer.json()["errors"]
        client.put("/v1/models/m", json=SPEC)
        late = client.post(
            "/v1/models/m/learn",
            content=lines_of([event(1)]),
            headers={"content-type": "application/x-ndjson"},
        )
        assert late.status_code == 503
        assert late.json()["line"] == 1
        assert client.get("/v1/models/m").json()["events"] == 0


def test_stopping_has_an_end_though_redis_takes_no_snapshot(
    own_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hinged_service.engine.registry._SAVING_S", 0.2)
    with serving(own_server.url, redis_timeout_ms=60_000) as client:
        for n in range(3):
            client.put(f"/v1/models/m{n}", json=SPEC).raise_for_status()
            client.post(f"/v1/models/m{n}/learn", json=event(1)).raise_for_status()
        own_server.signal(signal.SIGSTOP)
        began_s = time.monotonic()
    assert time.monotonic() - began_s < 50, "it does not wait for Redis"
    own_server.signal(signal.SIGCONT)
