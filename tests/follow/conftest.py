"""One server with the users of `deploy/users.acl` and one worker, for all tests of followers."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from hinged_service.follow import Follower, follow
from tests.store.transport.test_least_rights import login, users
from tests.support.redis_server import RedisServer
from tests.support.running import running, serving

Event = dict[str, Any]
Create = Callable[..., str]

_names = itertools.count()
_ROW = random.Random(21)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    directory = tmp_path_factory.mktemp("follow")
    with running(RedisServer(directory / "redis"), *users(directory)) as server:
        yield server


@pytest.fixture(scope="module")
def api(server: RedisServer) -> Iterator[httpx.Client]:
    with serving(login(server.url), snapshot_every_ms=50) as client:
        yield client


@pytest.fixture
def create(api: httpx.Client) -> Create:
    def made(name: str = "", **spec: Any) -> str:
        name = name or f"f{next(_names)}"
        answer = api.put(f"/v1/models/{name}", json={"learner": {"type": "perceptron"}} | spec)
        assert answer.status_code == 201, answer.text
        return name

    return made


def reading(server: RedisServer) -> str:
    """Return the address with the user who may only read."""
    return login(server.url).replace("hinged:", "follower:")


def events(count: int) -> list[Event]:
    """Return so many events, each another one."""
    return [
        {
            "x": {f"n{_ROW.randrange(40)}": _ROW.gauss(0, 1) for _ in range(8)},
            "y": _ROW.random() < 0.5,
            "w": _ROW.choice([1.0, 1.0, 0.0]),
        }
        for _ in range(count)
    ]


def learn(api: httpx.Client, name: str, *sent: Event) -> str:
    """Learn events in one call and return the position of the last."""
    answer = api.post(f"/v1/models/{name}/learn", json=list(sent))
    assert answer.status_code == 200, answer.text
    position: str = answer.json()[-1]["position"]
    return position


def following(server: RedisServer, name: str, **options: Any) -> Follower:
    """Return a follower that may only read and waits for a busy machine."""
    return follow(reading(server), name, **({"redis_timeout_ms": 10_000} | options))


def assert_equal_answers(api: httpx.Client, name: str, model: Follower, *questions: Event) -> None:
    """Compare the answers with the worker's at the same position, bit for bit."""
    for x in questions:
        explained = api.post(
            f"/v1/models/{name}/predict", json={"x": x}, params={"at_least": model.position}
        ).json()
        assert explained["position"] == model.position
        proba = {
            y if isinstance(y, str) else json.dumps(y): p
            for y, p in model.predict_proba_one(x).items()
        }
        found = {"y": model.predict_one(x), "score": model.score_one(x), "proba": proba}
        assert json.dumps(found) == json.dumps({part: explained[part] for part in found})
