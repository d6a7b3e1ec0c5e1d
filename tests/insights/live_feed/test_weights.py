"""The largest weights in the live feed: on request, when they moved."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.insights.live_feed.reading import Watcher
from tests.support.redis_server import RedisServer
from tests.support.service import Service


@pytest.fixture(scope="module")
def service(module_server: RedisServer) -> Iterator[Service]:
    with Service(module_server.url) as running:
        yield running


def put(service: Service, name: str, **learner: Any) -> str:
    path = f"/v1/models/{name}"
    spec = {"learner": {"type": "perceptron"} | learner}
    with service.client() as client:
        assert client.put(path, json=spec).status_code == 201
    return path


def learn(service: Service, path: str, *events: tuple[dict[str, float], Any]) -> None:
    with service.client() as client:
        sent = [{"x": x, "y": y} for x, y in events]
        assert client.post(f"{path}/learn", json=sent).status_code == 200


def test_they_are_told_as_they_move_to_those_who_ask(service: Service) -> None:
    path = put(service, "moving")
    with Watcher(service.url, path, weights=True) as asked, Watcher(service.url, path) as other:
        asked.wait_for(lambda w: w.of("weights"))
        assert asked.of("weights")[0]["weights"] == {}
        learn(service, path, ({"a": 1.0, "b": -2.0}, True))
        asked.wait_for(lambda w: w.of("weights")[-1]["weights"])
        with service.client() as client:
            answered = client.get(f"{path}/weights").json()
        assert asked.of("weights")[-1] == answered
        assert list(asked.of("weights")[-1]["weights"]) == ["b", "a"], "the largest first"
        other.wait_for(lambda w: w.of("metrics") and w.of("metrics")[-1]["events"] == 1)
        assert other.of("weights") == []
    with Watcher(service.url, path, weights=True) as late:
        late.wait_for(lambda w: w.of("weights"))
        assert late.of("weights")[0] == answered


def test_only_the_largest_twenty_of_twenty_classes(service: Service) -> None:
    path = put(service, "many")
    wide = {f"f{n}": float(n) for n in range(50)}
    learn(service, path, (wide, True))
    classes = put(service, "classes", type="multiclass_perceptron")
    learn(service, classes, *[({f"f{n}": 1.0}, f"c{n}") for n in range(30)])
    with (
        Watcher(service.url, path, weights=True) as one,
        Watcher(service.url, classes, weights=True) as other,
    ):
        one.wait_for(lambda w: w.of("weights"))
        other.wait_for(lambda w: w.of("weights"))
        assert list(one.of("weights")[0]["weights"]) == [f"f{n}" for n in range(49, 29, -1)]
        assert len(other.of("weights")[0]["classes"]) == 20


def test_a_learner_without_weights_tells_none(service: Service) -> None:
    path = put(service, "forest", type="HoeffdingTreeClassifier")
    with Watcher(service.url, path, weights=True) as watcher:
        learn(service, path, ({"a": 1.0}, "x"))
        watcher.wait_for(lambda w: w.of("outcome"))
        watcher.wait_for(lambda w: len(w.of("metrics")) > 2)
        assert watcher.of("weights") == []
