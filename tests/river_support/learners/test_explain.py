"""Explanations sum to the score, for every transformer and every linear learner."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import httpx
import pytest

import hinged
from tests.river_support.learners import catalogue

Clients = tuple[httpx.Client, httpx.Client]
Create = Callable[..., str]

OWN = [
    kind
    for kind in catalogue.LEARNERS
    if isinstance(catalogue.WITNESSES[kind](), hinged.LinearClassifier)
]
RIVERS = [k for k in catalogue.LEARNERS if k not in OWN]
MANY = {kind for kind in OWN if kind.startswith("multiclass") or kind in ("one_vs_rest", "auto")}
CLASSES = ("low", "middle", "high")


def no_constant(text: str) -> Any:
    raise AssertionError(f"{text} is no JSON")


def explained(client: httpx.Client, path: str, x: dict[str, Any], **query: str) -> dict[str, Any]:
    """Return what explain says of an event, after checking that all parts sum to the score."""
    answer = client.post(f"{path}/explain", json={"x": x}, params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = json.loads(answer.text, parse_constant=no_constant)
    size = math.fsum(map(abs, found["contributions"].values()))  # what cancels was rounded at that
    for part in ("contributions", "features"):
        terms = [*found[part].values(), found["intercept"]]
        assert all(map(math.isfinite, terms))
        assert math.isclose(math.fsum(terms), found["score"], rel_tol=1e-9, abs_tol=1e-15 * size), (
            part
        )
    return found


def taught(clients: Clients, path: str, events: list[dict[str, Any]]) -> None:
    """Learn the events on both workers in turn."""
    for turn in range(0, len(events), 20):
        client = clients[turn // 20 % 2]
        answer = client.post(f"{path}/learn", json=events[turn : turn + 20])
        assert answer.status_code == 200, answer.text


def agreed(clients: Clients, path: str, x: dict[str, Any], **query: str) -> dict[str, Any]:
    """Return what both workers explain alike."""
    one, two = (explained(client, path, x, **query) for client in clients)
    assert one == two
    return one


def checked(clients: Clients, path: str, x: dict[str, Any]) -> dict[str, Any]:
    """Return what is explained of an event, after comparing it with the prediction."""
    one = agreed(clients, path, x)
    predicted = clients[0].post(f"{path}/predict", json={"x": x}).json()
    assert (one["y"], one["score"]) == (predicted["y"], predicted["score"])
    return one


@pytest.mark.parametrize("kind", catalogue.TRANSFORMERS)
def test_contributions_through_every_transformer_sum_to_the_score(
    clients: Clients, create: Create, kind: str
) -> None:
    events = catalogue.fed(kind, 120)
    for learner in ("perceptron", "averaged_perceptron"):
        path = create(learner={"type": learner}, pipeline=catalogue.steps(kind))
        checked(clients, path, events[0]["x"])
        taught(clients, path, events)
        scores = set()
        for event in events[:40]:
            found = checked(clients, path, event["x"])
            scores.add(found["score"])
            outside = set(found["features"]) - set(event["x"])
            bias = {"bias"} if kind == "PolynomialExtender" else set()
            imputed = {"age", "colour"} if kind == "StatImputer" else set()
            if kind not in ("OneHotEncoder", "FeatureHasher", "StandardScaler"):
                assert outside <= bias | imputed, outside
        assert len(scores) > 1
        explained(clients[0], path, {})
        explained(clients[0], path, {"never seen": 1.0} if kind not in ("BagOfWords",) else {})


@pytest.mark.parametrize("kind", OWN)
@pytest.mark.parametrize("steps", [[], [{"type": "StandardScaler"}]], ids=["plain", "scaled"])
def test_contributions_of_every_learner_sum_to_the_score(
    clients: Clients, create: Create, kind: str, steps: list[Any]
) -> None:
    several = kind in MANY
    path = create(learner=catalogue.learner(kind), pipeline=steps)
    events = catalogue.points(120, several)
    checked(clients, path, events[0]["x"])
    if several:
        for query in ({"class": "low"}, {"class": "null"}):
            answer = clients[0].post(f"{path}/explain", json={"x": {"a": 1.0}}, params=query)
            assert answer.status_code == 404, "no class is known yet"
    taught(clients, path, events)
    for event in events[:30]:
        found = checked(clients, path, event["x"])
        if kind.endswith("hedge") or kind == "auto":
            assert all(name.startswith("expert ") for name in found["contributions"])
        if several:
            by_class = {y: agreed(clients, path, event["x"], **{"class": y}) for y in CLASSES}
            assert {y: one["y"] for y, one in by_class.items()} == {y: y for y in CLASSES}
            assert by_class[found["y"]] == found
            assert found["score"] == max(one["score"] for one in by_class.values())
    missing = clients[1].post(
        f"{path}/explain", json={"x": events[0]["x"]}, params={"class": "no such class"}
    )
    assert missing.status_code == (404 if several else 200)


@pytest.mark.parametrize("kind", OWN)
def test_the_largest_numbers_explain_finitely(clients: Clients, create: Create, kind: str) -> None:
    few = {"max_classes": 10} if kind in MANY else {}
    pipeline = [{"type": "PolynomialExtender"}]
    path = create(learner={**catalogue.learner(kind), **few}, pipeline=pipeline)
    labels: tuple[Any, Any] = ("low", "high") if kind in MANY else (True, False)
    xs = [{"a": 1e100, "b": -1e100}, {"a": -1e100}, {"a": 1e-300, "b": 1e100}, {"a": 1.0}]
    for turn in range(24):
        event = {"x": xs[turn % 4], "y": labels[turn // 3 % 2]}
        answer = clients[turn % 2].post(f"{path}/learn", json=event)
        assert answer.status_code == 200, answer.text
        for x in xs:
            checked(clients, path, x)


@pytest.mark.parametrize("kind", RIVERS)
def test_the_score_of_a_river_learner_is_no_such_sum(
    clients: Clients, create: Create, kind: str
) -> None:
    path = create(learner=catalogue.learner(kind))
    for client in clients:
        answer = client.post(f"{path}/explain", json={"x": {"a": 1.0}})
        assert answer.status_code == 409
        assert answer.headers["content-type"] == "application/problem+json"
