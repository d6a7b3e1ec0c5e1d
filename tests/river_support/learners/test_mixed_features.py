"""Text, truth values and holes: taken where a transformer takes them, else refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.river_support.learners.test_as_river import bits

Clients = tuple[httpx.Client, httpx.Client]
Create = Callable[..., str]

REMEDIES = [("red", "OneHotEncoder"), (True, "OneHotEncoder"), (None, "StatImputer")]
TAKERS: dict[str, list[dict[str, Any]]] = {
    "StandardScaler": [{"type": "StandardScaler"}],
    "MinMaxScaler": [{"type": "MinMaxScaler"}],
    "MaxAbsScaler": [{"type": "MaxAbsScaler"}],
    "RobustScaler": [{"type": "RobustScaler"}],
    "Normalizer": [{"type": "Normalizer"}],
    "PolynomialExtender": [{"type": "PolynomialExtender"}],
    "RBFSampler": [{"type": "RBFSampler"}],
    "the learner": [{"type": "Discard", "keys": ["b"]}],
}
"""Pipelines that take numbers only, by the part that refuses anything else."""


def document(answer: httpx.Response) -> dict[str, Any]:
    """Return what an answer says, but for the name of its request."""
    return {k: v for k, v in answer.json().items() if k != "request_id"}


def settled(clients: Clients, path: str) -> dict[str, Any]:
    """Return what both workers say of a model, after checking that it is the same."""
    first, second = (client.get(path).json() for client in clients)
    for model in (first, second):
        del model["stale_s"], model["snapshot"]
    assert first == second
    one, two = (client.get(f"{path}/weights") for client in clients)
    assert document(one) == document(two)
    assert one.status_code in (200, 409)
    return dict(first)


def refused(answer: httpx.Response, *words: str) -> str:
    """Return the field that a 422 names, after checking its reason."""
    assert answer.status_code == 422, answer.text
    (error,) = answer.json()["errors"]
    for word in words:
        assert word in error["reason"], error
    assert not answer.json().get("logged", False)
    field: str = error["field"]
    return field


@pytest.mark.parametrize("learner", ["perceptron", "LogisticRegression", "GaussianNB"])
@pytest.mark.parametrize(("value", "remedy"), REMEDIES)
def test_a_model_without_a_pipeline_takes_numbers(
    clients: Clients, create: Create, learner: str, value: Any, remedy: str
) -> None:
    labels = {"labels": [False, True]} if learner == "GaussianNB" else {}
    path = create(learner={"type": learner}, **labels)
    good, bad = {"a": 1.0, "b": 2}, {"a": 1.0, "the colour": value}
    assert clients[0].post(f"{path}/learn", json={"x": good, "y": True}).status_code == 200
    before = settled(clients, path)
    for client in clients:
        for event in ({"x": bad, "y": True}, {"x": bad, "y": True, "id": "e1"}):
            found = refused(client.post(f"{path}/learn", json=event), remedy)
            assert "the colour" in found
        array = [{"x": good, "y": True}, {"x": bad, "y": True}, {"x": good, "y": False}]
        found = refused(client.post(f"{path}/learn", json=array), remedy)
        assert "1" in found
        assert "the colour" in found
        found = refused(client.post(f"{path}/predict", json={"x": bad}), remedy)
        assert "the colour" in found
        found = refused(client.post(f"{path}/predict", json=[{"x": good}, {"x": bad}]), remedy)
        assert "the colour" in found
        found = refused(client.post(f"{path}/predict", json={"x": bad, "id": "p1"}), remedy)
        assert "the colour" in found
        found = refused(client.post(f"{path}/explain", json={"x": bad}), remedy)
        assert "the colour" in found
    assert settled(clients, path) == before, "nothing is logged, nothing counted"
    answer = clients[1].post(f"{path}/learn", json={"x": good, "y": True, "id": "e1"})
    assert answer.json()["duplicate"] is False, "the id is not used up"


@pytest.mark.parametrize("taker", TAKERS)
@pytest.mark.parametrize(("value", "remedy"), REMEDIES)
def test_a_transformer_that_takes_numbers_is_named(
    clients: Clients, create: Create, taker: str, value: Any, remedy: str
) -> None:
    path = create(pipeline=TAKERS[taker])
    good, bad = {"a": 1.0, "b": 2}, {"a": 1.0, "the colour": value}
    assert clients[0].post(f"{path}/learn", json={"x": good, "y": True}).status_code == 200
    before = settled(clients, path)
    for client in clients:
        for body in (
            {"x": bad, "y": True, "id": "e1"},
            [{"x": good, "y": True}, {"x": bad, "y": 1}],
        ):
            assert "the colour" in refused(client.post(f"{path}/learn", json=body), taker, remedy)
        asked: tuple[Any, ...] = ({"x": bad}, [{"x": good}, {"x": bad}], {"x": bad, "id": "p1"})
        for body in asked:
            found = refused(client.post(f"{path}/predict", json=body), taker, remedy)
            assert "the colour" in found
        found = refused(client.post(f"{path}/explain", json={"x": bad}), taker, remedy)
        assert "the colour" in found
    assert settled(clients, path) == before, "nothing is logged, nothing counted"
    answer = clients[1].post(f"{path}/learn", json={"x": good, "y": True, "id": "e1"})
    assert answer.json()["duplicate"] is False, "the id is not used up"


@pytest.mark.parametrize(
    ("steps", "x", "words"),
    [
        ([{"type": "OneHotEncoder"}], {"f": None}, ("OneHotEncoder", "StatImputer")),
        ([{"type": "OneHotEncoder"}], {"f": "x" * 257}, ("BagOfWords",)),
        ([{"type": "FeatureHasher"}], {"f": None}, ("FeatureHasher", "StatImputer")),
        ([{"type": "BagOfWords", "on": "f"}], {"f": 3}, ("text",)),
        ([{"type": "TFIDF", "on": "f"}], {"f": None}, ("TFIDF", "StatImputer")),
        (
            [{"type": "StatImputer", "imputers": [{"feature": "f", "statistic": "Mean"}]}],
            {"f": "x"},
            ("StatImputer",),
        ),
        (
            [{"type": "StatImputer", "imputers": [{"feature": "g", "value": "x"}]}],
            {"f": 1.0},
            ("the learner",),
        ),
    ],
)
def test_other_transformers_say_what_they_do_not_take(
    clients: Clients, create: Create, steps: list[Any], x: dict[str, Any], words: tuple[str, ...]
) -> None:
    path = create(pipeline=steps)
    before = settled(clients, path)
    for client in clients:
        for call, body in (("learn", {"x": x, "y": True}), ("predict", {"x": x})):
            assert refused(client.post(f"{path}/{call}", json=body), *words).startswith("x[")
    assert settled(clients, path) == before


CATEGORIES = [{"type": "OneHotEncoder"}]


@pytest.mark.parametrize(("value", "remedy"), REMEDIES[:2])
def test_what_a_model_of_numbers_cannot_take_its_neighbour_learns(
    clients: Clients, create: Create, value: Any, remedy: str
) -> None:
    stream = f"mixed-{value}"
    several = {"type": "multiclass_perceptron"}
    mixed = create(stream=stream, pipeline=CATEGORIES)
    numeric = create(stream=stream)
    scaled = create(stream=stream, pipeline=[{"type": "StandardScaler"}], metrics=["accuracy"])
    river = create(stream=stream, learner={"type": "LogisticRegression"})
    labelled = create(stream=stream, learner=several, labels=["ham", "spam"])
    paths = (mixed, numeric, scaled, river)
    for turn, client in enumerate(clients * 3):
        number = {"x": {"a": 1.0 + turn}, "y": turn % 2 == 0, "id": f"n{turn}"}
        other = {"x": {"a": 2, "f": value}, "y": turn % 2 == 1, "id": f"o{turn}"}
        answer = client.post(f"{mixed}/learn", json=[number, other, number | {"id": f"m{turn}"}])
        assert answer.status_code == 200, answer.text
        again = clients[turn % 2].post(f"{mixed}/learn", json=other)
        assert again.json()["duplicate"] is True
        refused(client.post(f"{numeric}/learn", json=other | {"id": f"r{turn}"}), remedy)
        taken = turn + 1
        wanted = [(3 * taken, 0), *[(2 * taken, taken)] * 3]
        found = [settled(clients, path) for path in paths]
        assert [(model["events"], model["rejected"]) for model in found] == wanted
        assert settled(clients, labelled)["rejected"] == 3 * taken
    by_river = clients[0].get(f"{river}/weights").json()
    assert set(by_river["weights"]) == {"a"}
    late = create(stream=stream, start="log")
    late_mixed = create(stream=stream, start="log", pipeline=CATEGORIES)
    for path, first in ((late, numeric), (late_mixed, mixed)):
        one, two = (clients[1].get(f"{p}/weights").json() for p in (path, first))
        assert bits(one["weights"]) == bits(two["weights"])
        assert settled(clients, path)["rejected"] == settled(clients, first)["rejected"]


def test_numbers_are_floats_in_the_names_of_categories(clients: Clients, create: Create) -> None:
    """The encoder takes JSON's 1 and 1.0 for one category; true and text are others."""
    path = create(pipeline=CATEGORIES)
    for client, value in zip(clients * 2, (1, 1.0, True, "1"), strict=True):
        event = {"x": {"size": value, "one": 1}, "y": True}
        assert client.post(f"{path}/learn", json=event).status_code == 200
    for client in clients:
        explained = client.post(f"{path}/explain", json={"x": {"size": 1}}).json()
        assert explained["features"].keys() == {"size", "one"}
        names = {"size_1.0", "size_True", "size_1", "one_1.0"}
        assert explained["contributions"].keys() == names
    listed = create(pipeline=[{"type": "OneHotEncoder", "categories": {"size": [1, True, 2.0]}}])
    given = {"size_1": 0.0, "size_True": 0.0, "size_2.0": 0.0}
    for value, name in ((1, "size_1"), (1.0, "size_1"), (True, "size_True"), (2, "size_2.0")):
        event = {"x": {"size": value}, "y": True}
        fresh = clients[0].post(f"{listed}/explain", json={"x": event["x"]}).json()
        assert fresh["contributions"].keys() == given.keys()
        before = clients[0].get(f"{listed}/weights").json()["weights"]
        clients[0].post(f"{listed}/learn", json=event | {"y": not fresh["y"]})
        after = clients[0].get(f"{listed}/weights").json()["weights"]
        assert {n for n in after if after[n] != before.get(n, 0.0)} == {name}


def test_an_imputed_number_is_the_category_of_the_number_sent(
    clients: Clients, create: Create
) -> None:
    for value in (1, 1.0):
        imputer = {"type": "StatImputer", "imputers": [{"feature": "size", "value": value}]}
        path = create(pipeline=[imputer, *CATEGORIES])
        for x in ({"size": 1}, {"size": None}, {}, {"size": 1.0}):
            assert clients[0].post(f"{path}/learn", json={"x": x, "y": True}).status_code == 200
        assert clients[1].get(f"{path}/weights").json()["weights"].keys() == {"size_1.0"}
