"""Hostile input of `decode`: an object or `DamagedState`, and nothing is run."""

import contextlib
import copy
import json
import pickle
import random
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from river import linear_model, optim, stats, tree

from hinged_service.river_support.state import decode, encode
from hinged_service.wire.codec import DamagedState
from tests.river_support.state.cases import CASES


def of(*rows: Any, root: Any = None) -> dict[str, Any]:
    return {"schema": 1, "root": [0] if root is None else root, "rows": list(rows)}


def deep(levels: int) -> Any:
    value: Any = {"tuple": []}
    for _ in range(levels):
        value = {"tuple": [value]}
    return value


MEAN = {"n": 0.0, "_mean": 0.0}

DOCUMENTS: dict[str, Any] = {
    "an object in itself": of(
        [
            "compose.union.TransformerUnion",
            {"transformers": [1]},
        ],
        ["dict", ["a"], [[0]]],
    ),
    "pickle": pickle.dumps(stats.Mean()),
    "text": "river.stats.Mean",
    "nothing": None,
    "a number": 3,
    "a list": [],
    "an object": {},
    "a type": {"type": "os.system", "args": ["true"]},
    "a reduction": {"py/reduce": [{"py/type": "os.system"}, ["true"]]},
    "another schema": {**of(["list", []]), "schema": 2},
    "a true schema": {**of(["list", []]), "schema": True},
    "a schema of text": {**of(["list", []]), "schema": "1"},
    "no root": {"schema": 1, "rows": []},
    "something more": {**of(["list", []]), "more": 1},
    "rows of text": {"schema": 1, "root": [0], "rows": "list"},
    "an unknown type": of(["os.system", ["true"]]),
    "a module's path": of(["river.stats.mean.Mean", MEAN]),
    "an unknown learner": of(["hinged.BinaryLinearClassifier", {}, {}, {}]),
    "an internal name": of(["hinged.checked_learner", {}, {}, {}]),
    "a row of nothing": of([]),
    "a row of text": of("list"),
    "a row of a number": of([3]),
    "a list too long": of(["list", [], []]),
    "a list of text": of(["list", "abc"]),
    "an unhashable name": of([["list"], []]),
    "missing attributes": of(["stats.mean.Mean", {"n": 0.0}]),
    "extra attributes": of(["stats.mean.Mean", {**MEAN, "get": 1}]),
    "attributes as a list": of(["stats.mean.Mean", [0.0, 0.0]]),
    "a class as attribute": of(["stats.mean.Mean", {**MEAN, "__class__": 1}]),
    "text for a number": of(["stats.mean.Mean", {**MEAN, "n": "0"}]),
    "a truth value for a number": of(["stats.mean.Mean", {**MEAN, "n": True}]),
    "nothing for a number": of(["stats.mean.Mean", {**MEAN, "n": None}]),
    "a function for a number": of(["stats.mean.Mean", {**MEAN, "n": {"call": "float"}}]),
    "an object for a number": of(["stats.mean.Mean", {**MEAN, "n": [0]}]),
    "a reference beyond": of(["list", [[1]]]),
    "a reference below": of(["list", [[-1]]]),
    "a reference of truth": of(["list", [[True]]]),
    "a reference to two": of(["list", [[0, 0]]]),
    "a reference to none": of(["list", [[]]]),
    "a root beyond": of(root=[0]),
    "a huge integer": of(["list", [10**400]]),
    "a huge count": of(["stats.count.Count", {"n": -(10**350)}]),
    "a bare nan": of(["list", [float("nan")]]),
    "a bare infinity": of(["list", [1.0, float("inf")]]),
    "an unknown float": of(["list", [{"float": "1e5"}]]),
    "an unknown tag": of(["list", [{"eval": "1"}]]),
    "two tags": of(["list", [{"float": "nan", "tuple": []}]]),
    "too deep": of(root=deep(1_000)),
    "too deep a key": of(["dict", [deep(1_000)], [1]]),
    "deeper than Python": of(root=deep(50_000)),
    "lists deeper than Python": of(root=json.loads("[" * 500 + "0" + "]" * 500)),
    "an unhashable key": of(["dict", [[0]], [1]]),
    "an object in a set": of(["set", [[0]]]),
    "a key twice": of(["dict", ["a", "a"], [1, 2]]),
    "an equal key twice": of(["dict", [1, True], [1, 2]]),
    "more keys than values": of(["dict", ["a", "b"], [1]]),
    "a member twice": of(["set", [1, 1.0]]),
    "bytes": of(["list", [b"a"]]),
    "a strange object": of(["list", [object()]]),
    "a window too full": of(["deque", 1, [1, 2]]),
    "a window below zero": of(["deque", -1, []]),
    "a window beyond memory": of(["deque", 10**30, []]),
    "an unknown function": of(["defaultdict", {"call": "eval"}, [], []]),
    "a module's function": of(["defaultdict", {"call": "os.system"}, [], []]),
    "a function of text": of(["defaultdict", "float", [], []]),
    "a part of an unknown function": of(
        ["defaultdict", {"partial": [{"call": "print"}, [1], {}]}, [], []]
    ),
    "a function that cannot be called": of(
        ["defaultdict", {"partial": [{"call": "Quantile"}, [7.0], {}]}, [], []]
    ),
    "a function of nonsense": of(
        ["defaultdict", {"partial": [{"call": "Rolling"}, ["a"], {"b": 1}]}, [], []]
    ),
    "a window of a function": of(
        ["defaultdict", {"partial": [{"call": "RollingMin"}, ["a"], {}]}, [], []]
    ),
    "a copy of nothing": of(["defaultdict", {"partial": [{"call": "deepcopy"}, [], {}]}, [], []]),
    "a method of another": of(["defaultdict", {"method": [0, "_random_weights"]}, [], []]),
    "an unknown method": of(["defaultdict", {"method": [0, "clear"]}, [], []]),
    "random numbers of text": of(["Random", 3, "zz", 1, None]),
    "few random numbers": of(["Random", 3, "00000000", 1, None]),
    "random numbers beyond": of(["Random", 3, "0" * 4992, 625, None]),
    "an array of objects": of(["array", "object", [1], [1]]),
    "an array too short": of(["array", "float64", [10**9, 10**9], [1.0]]),
    "an array of text": of(["array", "float64", [1], ["a"]]),
    "a number out of range": of(["list", [{"numpy": ["int8", 300]}]]),
    "a number out of all range": of(["list", [{"numpy": ["float16", 1e300]}]]),
    "a vector of text": of(["VectorDict", None, ["a"], ["b"]]),
    "a vector's default": of(["VectorDict", 3, [], []]),
    "an empty pipeline": of(["compose.pipeline.Pipeline", {"steps": [1]}], ["OrderedDict", [], []]),
    "a pipeline of numbers": of(
        ["compose.pipeline.Pipeline", {"steps": [1]}], ["OrderedDict", ["a"], [1]]
    ),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_hostile_document_is_damaged(name: str) -> None:
    with pytest.raises(DamagedState) as caught:
        decode(DOCUMENTS[name])
    assert 5 < len(str(caught.value)) < 300


def test_a_part_made_of_another_object_than_its_class_has() -> None:
    data = encode(CASES["GaussianNB"].make())
    text = json.dumps(data).replace('"call": "float"', '"call": "list"')
    with pytest.raises(DamagedState):
        decode(json.loads(text.replace('"GaussianNB._make_gaussian"', '"float"')))


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("PAClassifier-1", '"mode": 1', '"mode": 3'),
        ("PageHinkley", '"mode": "both"', '"mode": "none"'),
        ("BagOfWords", r"(?u)\\b\\w[\\w\\-]+\\b", "(" * 5),
        ("BagOfWords", r"(?u)\\b\\w[\\w\\-]+\\b", "(" * 50_000 + ")" * 50_000),
        ("hinged-AROW", '"r": 1.0', '"r": -1.0'),
        ("hinged-AROW", '"r": 1.0', '"q": 1.0'),
        ("hinged-AROW", '"version": 1', '"version": 2'),
        ("hinged-Perceptron", '"margin": 0.0', '"margin": "0"'),
        ("hinged-OneVsRest", '"hinged.HingeSGD"', '"hinged.MulticlassAROW"'),
        ("stats-Quantile", '"_is_updated": true', '"_is_updated": false'),
        ("Bagging-logistic", '"n_models": 3', '"n_models": 4'),
        ("LogisticRegression-SGD", "optim.sgd.SGD", "optim.adam.Adam"),
        ("LogisticRegression-SGD", "optim.losses.Log", "optim.schedulers.Constant"),
    ],
)
def test_parts_that_do_not_go_together_are_damaged(name: str, old: str, new: str) -> None:
    case = CASES[name]
    made = case.make()
    case.run(made, 1, 5)
    text = json.dumps(encode(made))
    assert old in text
    with pytest.raises(DamagedState):
        decode(json.loads(text.replace(old, new)))


@pytest.mark.parametrize(
    ("optimizer", "one", "other"),
    [("Adam", "m", "v"), ("Nadam", "m", "v"), ("AdaMax", "m", "u"), ("AMSGrad", "v", "v_hat")],
)
def test_sums_of_an_optimizer_that_are_one_object_are_damaged(
    optimizer: str, one: str, other: str
) -> None:
    made = linear_model.LogisticRegression(optimizer=getattr(optim, optimizer)())
    for number in range(5):
        made.learn_one({"a": float(number)}, number % 2 == 0)
    data: Any = encode(made)
    decode(data)
    [sums] = [row[1] for row in data["rows"] if isinstance(row[1], dict) and other in row[1]]
    sums[other] = sums[one]
    with pytest.raises(DamagedState, match=r"one and the same|part of two"):
        decode(data)


def test_counts_of_a_leaf_that_are_those_of_its_splitter_are_damaged() -> None:
    made: Any = tree.HoeffdingTreeClassifier(grace_period=50)
    for number in range(30):
        made.learn_one({"a": float(number)}, number % 2 == 0)
    data: Any = encode(made)
    decode(data)
    [leaf] = [row[1] for row in data["rows"] if "LeafNaiveBayes" in row[0]]
    splitter = next(row[1] for row in data["rows"] if "GaussianSplitter" in row[0])
    splitter["_min_per_class"] = leaf["stats"]
    with pytest.raises(DamagedState, match="part of two"):
        decode(data)


SMALL = [
    name
    for name in CASES
    if not name.startswith(("LogisticRegression-A", "LogisticRegression-N", "Rolling-M"))
]
ENCODED: dict[str, Any] = {}
JUNK: Any = st.sampled_from(
    [
        *(None, True, 0, -1, 1, 2, 7, 10**9, 10**30, 10**400, 0.0, -0.5, 1e308, float("nan")),
        *("", "a", "0", "river", [], [0], [1], [10**6], ["list", []], {}, {"float": "nan"}),
        *({"tuple": []}, {"call": "dict"}, {"call": "Rolling"}, {"numpy": ["int8", 1]}),
        {"partial": [{"call": "set"}, [1], {}]},
    ]
)


def encoded(name: str) -> Any:
    if name not in ENCODED:
        case = CASES[name]
        made = case.make()
        case.run(made, 1, 12)
        ENCODED[name] = json.loads(json.dumps(encode(made)))
    return copy.deepcopy(ENCODED[name])


def nodes(value: Any) -> Iterator[tuple[Any, Any]]:
    """All places in a document, as container and key."""
    waiting = [value]
    while waiting:
        holder = waiting.pop()
        for key in holder if isinstance(holder, dict) else range(len(holder)):
            yield holder, key
            if isinstance(holder[key], dict | list):
                waiting.append(holder[key])


def mutate(document: Any, source: random.Random, junk: Any) -> None:
    places = list(nodes(document))
    holder, key = source.choice(places)
    other, place = source.choice(places)
    match source.randrange(6):
        case 0 | 1:
            holder[key] = copy.deepcopy(junk)
        case 2:
            del holder[key]
        case 3:
            holder[key] = copy.deepcopy(other[place])
        case 4 if isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        case _:
            given = holder[key]
            if isinstance(given, bool):
                holder[key] = not given
            elif isinstance(given, int | float):
                holder[key] = source.choice([-given, given + 1, given * 2, str(given), [given]])
            elif isinstance(given, str):
                holder[key] = given[::-1]


@given(
    name=st.sampled_from(SMALL),
    source=st.randoms(use_true_random=False),
    junk=st.lists(JUNK, min_size=1, max_size=3),
)
@settings(max_examples=600, deadline=2_000, suppress_health_check=list(HealthCheck))
def test_a_mutated_document_is_damaged_or_gives_an_object(
    name: str, source: random.Random, junk: list[Any]
) -> None:
    document = encoded(name)
    for one in junk:
        mutate(document, source, one)
    limit = sys.getrecursionlimit()
    with contextlib.suppress(DamagedState):
        decode(document)
    assert sys.getrecursionlimit() == limit
