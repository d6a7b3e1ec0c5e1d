"""Memory of a worker does not grow with what it touched: models, aliases, names, sources."""

import gc
import http.client
import json
from collections import Counter, deque
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import redis

from hinged_service.engine.live_model import LiveModel
from hinged_service.engine.replica import Replica
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.running import serving
from tests.support.service import Service
from tests.support.shared_service import NewModel

SPEC = {"learner": {"type": "perceptron"}}
EVENT = {"x": {"a": 1}, "y": True}
REPLICAS = 10
MODELS = 200
MANY = MODELS // 2
LINES_TYPE = "application/x-ndjson"
LINES = {"content-type": LINES_TYPE}


class Caller:
    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def __call__(
        self, method: str, path: str, body: Any = None, status: int = 200, **headers: str
    ) -> None:
        text = None if body is None else json.dumps(body)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            self._connection.request(method, path, text, named)
            answer = self._connection.getresponse()
        except (http.client.HTTPException, OSError):  # it was idle for long
            self._connection.close()
            self._connection.request(method, path, text, named)
            answer = self._connection.getresponse()
        found = answer.read()
        assert answer.status == status, (method, path, found)

    def close(self) -> None:
        self._connection.close()


Places = dict[tuple[int, str], str]


def large() -> Places:
    """The attributes of the service's objects that hold many entries, by object and name."""
    gc.collect()
    found: Places = {}
    for one in gc.get_objects():
        kind = type(one)
        if not str(kind.__module__).startswith("hinged_service"):
            continue
        slots = [name for base in kind.__mro__ for name in getattr(base, "__slots__", ())]
        values = {name: getattr(one, name, None) for name in slots} | getattr(one, "__dict__", {})
        for name, value in values.items():
            if isinstance(value, (dict, set, list, deque)) and len(value) >= MANY:
                found[id(one), name] = f"{kind.__name__}.{name}"
    return found


def grown(before: Places) -> set[str]:
    """The attributes that became large since then, not those of a service of other tests."""
    return {name for place, name in large().items() if place not in before}


@pytest.fixture(autouse=True)
def _thawed() -> Iterator[None]:
    """Have `gc` tell of all objects, also those that were there before the first test."""
    gc.unfreeze()
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture
def few(own_server: RedisServer) -> Iterator[tuple[Service, Caller]]:
    settings: dict[str, Any] = {"max_replicas": REPLICAS, "housekeeping_ms": 20}
    settings["max_parked_bytes"] = 4_000
    with Service(own_server.url, **settings) as service:
        call = Caller(service.port)
        call("PUT", "/v1/models/first", SPEC, 201)
        call("POST", "/v1/models/first/learn", EVENT)
        call("GET", "/metrics")
        yield service, call
        call.close()


def test_of_many_models_touched_few_are_kept(few: tuple[Service, Caller]) -> None:
    service, call = few
    before = large()
    alive = Counter(type(o) for o in gc.get_objects())
    for n in range(MODELS):
        model = f"/v1/models/m{n}"
        call("PUT", model, {**SPEC, "stream": f"s{n}"}, 201)
        call("POST", f"{model}/predict", {"x": {"a": 1}, "id": f"q{n}"})
        call("POST", f"{model}/learn", {**EVENT, "id": f"e{n}"})
        call("PUT", f"/v1/aliases/a{n}", {"model": f"m{n}"}, 201)
        call("POST", f"/v1/models/a{n}/predict", {"x": {"a": 1}})
        call("GET", f"{model}/weights")
        call("POST", f"/v1/models/none{n}/predict", {"x": {}}, 404)
        call("GET", f"/v1/nowhere{n}", None, 404)
        call("POST", f"/v1/models/first/learn?source=s{n}", EVENT, content_type=LINES_TYPE)
    call("GET", "/metrics")
    call("GET", "/v1/models")
    # The whole index is known, to look into every inbox; of it there is a limit of its own.
    wait_until(lambda: grown(before) <= {"Inboxes._index", "Inboxes._models"}, 30)
    for kind in (LiveModel, Replica):
        assert Counter(type(o) for o in gc.get_objects())[kind] <= alive[kind] + REPLICAS + 1
    assert len(service.app.state.registry._live) <= REPLICAS
    for n in range(0, MODELS, 40):  # one that was forgotten is loaded again
        call("POST", f"/v1/models/m{n}/predict", {"x": {"a": 1}})


def test_models_that_come_and_go_leave_nothing_behind(
    few: tuple[Service, Caller], own_server: RedisServer, own_db: redis.Redis
) -> None:
    _, call = few
    before = large()
    with Service(own_server.url, max_replicas=REPLICAS) as elsewhere:
        delete = Caller(elsewhere.port)
        for n in range(MODELS):
            model = f"/v1/models/m{n}"
            call("PUT", model, SPEC, 201)
            call("POST", f"{model}/learn", EVENT)
            call("PUT", f"/v1/aliases/a{n}", {"model": f"m{n}"}, 201)
            call("POST", f"/v1/models/a{n}/predict", {"x": {"a": 1}})
            delete("DELETE", f"/v1/aliases/a{n}", None, 204)
            delete("DELETE", model, None, 204)
        delete.close()
        call("GET", "/metrics")
        wait_until(lambda: grown(before) == set(), 30)
    assert {key for key in own_db.scan_iter(count=1000) if "{first}" not in key} == {
        "hinged:models"
    }


def test_names_that_come_once_end_at_the_cap(client: httpx.Client, new_model: NewModel) -> None:
    cap, sent = 500, 2_000
    model = new_model(max_features=cap)
    lines = "".join(
        json.dumps({"x": {f"user_{n}": 1}, "y": n % 2 == 0}) + "\n" for n in range(sent)
    )
    answer = client.post(f"{model}/learn?results=summary", content=lines, headers=LINES)
    assert answer.json()["learned"] == sent
    info = client.get(model).json()
    assert (info["events"], info["features"], info["ignored_features"]) == (sent, cap, sent - cap)
    # The intercept goes 1, 0, 1, 0 …: each event is a tie or a mistake, so each is an update.
    weights = client.get(f"{model}/weights").json()
    assert weights["weights"] == {f"user_{n}": 1.0 if n % 2 == 0 else -1.0 for n in range(cap)}
    assert weights["intercept"] == 0.0
    predicted = client.post(f"{model}/predict", json={"x": {"user_2": 1, "user_1999": 5}}).json()
    assert predicted["score"] == 1.0


def test_a_stream_has_so_many_sources(own_server: RedisServer) -> None:
    with serving(own_server.url, max_sources=3) as client:
        client.put("/v1/models/m", json=SPEC)
        body = json.dumps(EVENT) + "\n"

        def learn(source: str, text: str) -> httpx.Response:
            return client.post(
                f"/v1/models/m/learn?source={source}&results=summary", content=text, headers=LINES
            )

        for n in range(3):
            assert learn(f"s{n}", body).json()["learned"] == 1
        refused = learn("s3", body)
        assert refused.status_code == 409
        assert "max_sources" in refused.json()["detail"]
        assert learn("s1", body * 2).json()["learned"] == 1
        assert client.get("/v1/models/m").json()["events"] == 4
