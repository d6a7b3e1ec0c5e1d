"""Two workers of one service: learn calls go to the owner of the stream, and are answered alike."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from hinged_service.api.api_keys import new_key
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.service import Service

SPEC = {"learner": {"type": "perceptron"}}
EVENT = {"x": {"a": 1.0}, "y": True}
_numbers = itertools.count()
ALL, NARROW = (
    new_key("all", ["predict", "learn", "admin"], ["*"]),
    new_key("narrow", ["predict", "learn"], ["narrow*"]),
)


class Side(NamedTuple):
    """A worker and a client of it."""

    service: Service
    client: httpx.Client

    def ask(
        self, path: str, body: Any = None, method: str = "POST", key: str = ALL[0]
    ) -> httpx.Response:
        headers = {"authorization": f"Bearer {key}", "x-request-id": "mine"}
        return self.client.request(method, path, json=body, headers=headers)

    def made(self, name: str) -> str:
        """Make a model; return its path."""
        path = f"/v1/models/{name}"
        assert self.ask(path, SPEC, "PUT").status_code == 201
        return path

    def position(self, name: str) -> str:
        """Return how far the worker has folded a model by itself, empty if it is not open there."""
        live = self.service.app.state.registry.live(name)
        return "" if live is None else str(live.position)


@contextlib.contextmanager
def sides(redis_url: str, **settings: Any) -> Iterator[list[Side]]:
    with contextlib.ExitStack() as stack:
        services = [stack.enter_context(Service(redis_url, **settings)) for _ in range(2)]
        yield [Side(one, stack.enter_context(one.client())) for one in services]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Side]]:
    """Two workers that share a directory."""
    keys = json.dumps([record.model_dump() for _, record in (ALL, NARROW)])
    shared = tmp_path_factory.mktemp("shared")
    with (
        RedisServer(tmp_path_factory.mktemp("redis")) as server,
        sides(server.url, metrics_dir=shared, keys=keys) as found,
    ):
        yield found


def handed_on(pair: list[Side], prefix: str = "m") -> tuple[str, Side, Side]:
    """Return a model, a worker that hands its events on, and the worker that learns them."""
    found: list[tuple[str, Side, Side]] = []

    def is_handed_on() -> bool:
        name = f"{prefix}{next(_numbers)}"
        path = pair[0].made(name)
        for service in pair:
            service.ask("/v1/models", method="GET")  # now both know it by the index
        for here, there in (pair, pair[::-1]):
            learned = here.ask(f"{path}/learn", EVENT).json()["position"]
            if here.position(name) != learned == there.position(name):
                found.append((name, here, there))
        return bool(found)

    wait_until(is_handed_on, 30)
    return found[0]


def test_only_the_owner_folds_what_it_learns(pair: list[Side]) -> None:
    name, here, there = handed_on(pair)
    path = f"/v1/models/{name}"
    before = here.position(name)
    for body in (EVENT, [EVENT, EVENT], [EVENT] * 3_000):  # the last one is no plain call
        answer = here.ask(f"{path}/learn", body)
        assert answer.status_code == 200
        assert answer.content.endswith(b"\n")
        assert answer.headers["x-hinged-owner"]
        answered = answer.json()
        assert len(answered) == len(body) or isinstance(answered, dict)
        last = answered[-1] if isinstance(answered, list) else answered
        assert (here.position(name), there.position(name)) == (before, last["position"])
    asked = here.ask(f"{path}/predict?at_least={last['position']}", {"x": {"a": 1.0}})
    assert asked.json()["y"] is True
    assert here.position(name) == last["position"]


def test_answers_are_those_of_a_worker_alone(pair: list[Side]) -> None:
    name, here, there = handed_on(pair)
    bodies: list[Any] = [
        *({}, [], {"x": {"a": "text"}, "y": True}, {"x": {"a": 1}, "y": 3}, [EVENT, {"x": 1}]),
        *({"id": "unknown", "y": True}, [{**EVENT, "id": "i"}, {**EVENT, "id": "i", "y": False}]),
    ]
    for body in bodies:
        handed, own = (one.ask(f"/v1/models/{name}/learn", body) for one in (here, there))
        assert (handed.status_code, handed.content) == (own.status_code, own.content)
        drop = ("date", "server")
        left, right = (
            {k: v for k, v in one.headers.items() if k not in drop} for one in (handed, own)
        )
        assert left == right
    event = {**EVENT, "id": "once"}
    answers = [one.ask(f"/v1/models/{name}/learn", event).json() for one in (here, there, here)]
    assert [answer["duplicate"] for answer in answers] == [False, True, True]


def test_a_call_is_counted_once(pair: list[Side]) -> None:
    name, here, _ = handed_on(pair)
    counted = "hinged_http_requests_total"
    route = 'method="POST",route="/v1/models/{model}/learn",status="200"'

    def count() -> float:
        page = here.ask("/metrics", method="GET").text
        lines = [line for line in page.splitlines() if line.startswith(counted) and route in line]
        return sum(float(line.rpartition(" ")[2]) for line in lines)

    before = count()
    for body in (EVENT, [EVENT] * 3_000):
        here.ask(f"/v1/models/{name}/learn", body)
    assert count() == before + 2


def test_a_name_that_means_another_model_by_now(pair: list[Side]) -> None:
    """The worker that gets the call still knows the old model; its key is not for the new one."""
    name, here, there = handed_on(pair, "narrow")
    path = f"/v1/models/{name}"
    assert there.ask(path, method="DELETE").status_code == 204
    wide = there.made(f"wide{name}").rpartition("/")[2]
    answer = there.ask(f"/v1/aliases/{name}", {"model": wide}, "PUT")
    assert answer.is_success, answer.text
    assert here.ask(f"{path}/learn", EVENT, key=NARROW[0]).status_code == 403
    at = here.ask(f"{path}/learn", EVENT).json()["position"]
    info = there.ask(f"/v1/models/{wide}?at_least={at}", method="GET").json()
    assert info["events"] == 1


def test_a_model_created_again(pair: list[Side]) -> None:
    name, here, there = handed_on(pair)
    path = f"/v1/models/{name}"
    assert there.ask(path, method="DELETE").status_code == 204
    assert here.ask(f"{path}/learn", EVENT).status_code == 404
    there.made(name)
    assert here.ask(f"{path}/learn", EVENT).status_code == 200


def test_without_owners_every_worker_learns_what_it_gets(pair: list[Side], tmp_path: Path) -> None:
    url = pair[0].service.settings.redis_url
    assert url is not None
    with sides(url, metrics_dir=tmp_path, owners="off") as alone:
        name = f"off{next(_numbers)}"
        path = alone[0].made(name)
        for side in alone:
            learned = side.ask(f"{path}/learn", EVENT).json()["position"]
            assert side.position(name) == learned
