"""Redis goes away in every way it can, and comes back: nothing is lost, without a restart."""

import concurrent.futures
import functools
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

import hinged
from tests.support.checks import check_problem, timed
from tests.support.machine_clock import Clock
from tests.support.plain_fold import fold_log
from tests.support.processes import wait_until
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer
from tests.support.running import serving

Unavailable = Callable[[Callable[[], httpx.Response]], None]


PERCEPTRON = {"learner": {"type": "perceptron"}}
MODEL = "/v1/models/m"
EVENT: dict[str, Any] = {"x": {"a": 1}, "y": True}


@dataclass
class Outage:
    server: RedisServer
    proxy: Proxy

    def begin(self, kind: str) -> None:
        if kind == "killed":
            self.server.kill()
        elif kind == "frozen":
            self.server.signal(signal.SIGSTOP)
        else:
            self.proxy.refuse = True
            self.proxy.cut()

    def end(self, kind: str) -> None:
        """Bring it back; it answers when this returns."""
        if kind == "killed":
            self.server.start()
        elif kind == "frozen":
            self.server.signal(signal.SIGCONT)
        else:
            self.proxy.refuse = False


KINDS = pytest.mark.parametrize("kind", ["killed", "frozen", "refused"])


@pytest.fixture
def outage(own_server: RedisServer, proxy: Proxy) -> Outage:
    own_server.fsync = "always"
    own_server.stop()
    own_server.start()
    return Outage(own_server, proxy)


@pytest.fixture
def unavailable(clock: Clock) -> Unavailable:
    """Return a check: 503, a problem document, Retry-After, within a second."""

    def check(call: Callable[[], httpx.Response]) -> None:
        began_s = clock()
        answer = call()
        assert clock() - began_s < 1.0
        check_problem(answer, 503)
        assert int(answer.headers["retry-after"]) >= 1

    return check


@KINDS
@timed
def test_learning_pauses_predicting_goes_on_and_all_comes_back(
    outage: Outage, unavailable: Unavailable, clock: Clock, kind: str
) -> None:
    with serving(outage.proxy.url) as client:
        client.put(MODEL, json=PERCEPTRON)
        client.put("/v1/models/cold", json=PERCEPTRON)
        assert client.post(f"{MODEL}/learn", json={**EVENT, "id": "before"}).status_code == 200
        assert "stale_s" not in client.post(f"{MODEL}/predict", json={"x": {"a": 1}}).json()
        assert client.get("/readyz").status_code == 200
        outage.begin(kind)
        began = time.monotonic()
        unavailable(lambda: client.post(f"{MODEL}/learn", json={**EVENT, "id": "during"}))
        unavailable(lambda: client.post(f"{MODEL}/learn", json=[{**EVENT, "id": "many"}] * 3))
        unavailable(lambda: client.get("/readyz"))
        unavailable(lambda: client.put("/v1/models/new", json=PERCEPTRON))
        unavailable(lambda: client.delete(MODEL))
        unavailable(lambda: client.get("/v1/models"))
        if kind == "refused":  # what this worker has not in memory it cannot serve
            unavailable(lambda: client.post("/v1/models/never-seen/predict", json={"x": {}}))
        assert client.get("/healthz").status_code == 200
        ages: list[float] = []
        for _ in range(3):
            started = clock()
            answer = client.post(f"{MODEL}/predict", json={"x": {"a": 1}})
            assert clock() - started < 0.5
            assert answer.status_code == 200
            assert answer.json()["score"] == 2.0
            assert 0.0 < answer.json()["stale_s"] < time.monotonic() - began + 5
            ages.append(answer.json()["stale_s"])
        assert ages == sorted(ages)
        info = client.get(MODEL)
        assert (info.status_code, info.json()["events"]) == (200, 1)
        assert info.json()["stale_s"] > 0
        assert client.get(f"{MODEL}/weights").json()["weights"] == {"a": 1.0}
        outage.end(kind)
        back = clock()
        while client.post(f"{MODEL}/learn", json={**EVENT, "id": "during"}).status_code != 200:
            assert clock() - back < 1.0, "the service did not come back"
        assert client.get("/readyz").status_code == 200
        assert "stale_s" not in client.post(f"{MODEL}/predict", json={"x": {"a": 1}}).json()
        assert clock() - back < 1.5
        many = client.post(f"{MODEL}/learn", json=[{**EVENT, "id": "many"}] * 3).json()
        assert {a["duplicate"] for a in many[1:]} == {True}
        assert client.post(f"{MODEL}/learn", json={**EVENT, "id": "before"}).json()["duplicate"]
        info = client.get(MODEL).json()
        assert (info["events"], info["mistakes"], info["updates"]) == (3, 1, 1)
        assert client.put("/v1/models/new", json=PERCEPTRON).status_code in (200, 201)
        assert client.post("/v1/models/cold/learn", json=EVENT).status_code == 200
    with outage.server.client() as store:
        folded = fold_log(store, "m", hinged.Perceptron())
    assert sorted(folded.counted_ids) == ["before", "during", "many"]


@timed
def test_a_service_that_starts_before_its_redis_serves_when_it_comes(
    own_server: RedisServer, unavailable: Unavailable, clock: Clock
) -> None:
    own_server.stop()
    with serving(own_server.url) as client:
        assert client.get("/healthz").status_code == 200
        unavailable(lambda: client.get("/readyz"))
        unavailable(lambda: client.put(MODEL, json=PERCEPTRON))
        unavailable(lambda: client.post(f"{MODEL}/learn", json=EVENT))
        unavailable(lambda: client.post(f"{MODEL}/predict", json={"x": {}}))
        own_server.start()
        back = clock()
        while client.get("/readyz").status_code != 200:
            assert clock() - back < 1.0, "the service did not come back"
        assert client.put(MODEL, json=PERCEPTRON).status_code == 201
        assert client.post(f"{MODEL}/learn", json=EVENT).status_code == 200


@timed
def test_a_full_redis_pauses_learning_only(
    own_server: RedisServer, unavailable: Unavailable, clock: Clock
) -> None:
    with serving(own_server.url) as client, own_server.client() as store:
        client.put(MODEL, json=PERCEPTRON)
        client.post(f"{MODEL}/learn", json={**EVENT, "id": "before"})
        store.config_set("maxmemory", "1")
        unavailable(lambda: client.post(f"{MODEL}/learn", json={**EVENT, "id": "during"}))
        unavailable(lambda: client.get("/readyz"))
        full = clock()
        while "stale_s" in client.post(f"{MODEL}/predict", json={"x": {"a": 1}}).json():
            assert clock() - full < 1.0, "predictions do not read the log any more"
        store.config_set("maxmemory", "0")
        learned = client.post(f"{MODEL}/learn", json={**EVENT, "id": "during"})
        assert (learned.status_code, learned.json()["duplicate"]) == (200, False)
        assert client.get("/readyz").status_code == 200
        assert client.get(MODEL).json()["events"] == 2


def test_lost_answers_and_a_forgotten_script_cache_count_no_event_twice(outage: Outage) -> None:
    with (
        serving(outage.proxy.url, append_timeout_ms=5_000) as client,
        outage.server.client() as store,
    ):
        client.put(MODEL, json=PERCEPTRON)
        assert client.post(f"{MODEL}/learn", json=[]).json() == []
        for n in range(60):
            if n % 3 == 0:
                outage.proxy.drop_replies = 1
            elif n % 3 == 1:
                store.script_flush()
            answer = client.post(f"{MODEL}/learn", json={"x": {"a": 1}, "y": n % 2 == 0})
            assert answer.status_code == 200, answer.text
        assert outage.proxy.dropped >= 20
        info = client.get(MODEL).json()
        assert info["events"] == 60
        # From (0, 0): true is a tie, w = b = 1; false scores 2, back to 0; and so on.
        assert (info["updates"], info["mistakes"]) == (60, 60)


def _learned(client: httpx.Client, name: str, sign: float) -> bool:
    event = {"x": {name: sign}, "y": True}
    return client.post(f"/v1/models/{name}/learn", json=event).is_success


def test_slow_answers_never_reach_another_model(proxy: Proxy) -> None:
    settings: dict[str, Any] = {
        "redis_connections": 2,
        "append_timeout_ms": 60,
        "max_staleness_ms": 0,
    }
    with serving(proxy.url, **settings, read_wait_ms=20) as client:
        for name, sign in (("a", 1.0), ("b", -1.0)):
            client.put(f"/v1/models/{name}", json=PERCEPTRON)
            wait_until(functools.partial(_learned, client, name, sign), 30)
        proxy.delay_s = 0.1
        for n in range(60):
            name, sign = ("b", -1.0) if n % 2 else ("a", 1.0)
            if n % 5 == 0:
                client.post(f"/v1/models/{name}/learn", json={"x": {name: sign}, "y": True})
            found = client.get(f"/v1/models/{name}/weights").json()
            assert found["weights"] == {name: sign}
            proxy.delay_s = 0.1 if n % 3 else 0.0
        proxy.delay_s = 0.0


@timed
def test_more_models_than_connections_are_answered_in_time_while_redis_stands_still(
    own_server: RedisServer, unavailable: Unavailable
) -> None:
    with (
        serving(own_server.url, redis_connections=2) as client,
        concurrent.futures.ThreadPoolExecutor(8) as pool,
    ):
        for n in range(8):
            client.put(f"/v1/models/m{n}", json=PERCEPTRON)
            if n % 2 == 0:
                client.post(f"/v1/models/m{n}/learn", json=EVENT)

        def learn(n: int) -> None:
            unavailable(lambda: client.post(f"/v1/models/m{n}/learn", json=EVENT))

        own_server.signal(signal.SIGSTOP)
        try:
            list(pool.map(learn, range(8)))
        finally:
            own_server.signal(signal.SIGCONT)
        for n in range(8):
            assert client.post(f"/v1/models/m{n}/learn", json=EVENT).status_code == 200


def test_connections_that_are_cut_all_the_time_fail_no_call(outage: Outage) -> None:
    stop = threading.Event()

    def cut_on() -> None:
        while not stop.is_set():
            outage.proxy.cut()
            time.sleep(0.002)

    with serving(outage.proxy.url, append_timeout_ms=10_000) as client:
        client.put(MODEL, json=PERCEPTRON)
        client.post(f"{MODEL}/learn", json=[])
        cutting = threading.Thread(target=cut_on)
        cutting.start()
        try:
            for n in range(40):
                event = {"x": {"a": 1}, "y": n % 2 == 0}
                answer = client.post(f"{MODEL}/learn", json=event)
                assert answer.status_code in (200, 503), answer.text
                assert client.get("/readyz").status_code in (200, 503)
        finally:
            stop.set()
            cutting.join()
