"""The compiled inner loops give the very bits of those in Python.

One file: each function and each learner, compiled and in Python, side by side.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import math
import os
import pickle
import random
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Literal
from unittest import mock

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings

import hinged
from hinged import kernel
from hinged.multiclass import MulticlassClassifier

pytestmark = pytest.mark.skipif(not kernel.is_compiled, reason="the pure version is in use")


def pure_package() -> ModuleType:
    """Return a second copy of the package, with the inner loops in Python."""
    own = {n: m for n, m in sys.modules.items() if n == "hinged" or n.startswith("hinged.")}
    for name in own:
        del sys.modules[name]
    try:
        with mock.patch.dict(os.environ, HINGED_PURE="1"):
            package = importlib.import_module("hinged")
            assert not importlib.import_module("hinged.kernel").is_compiled
        return package
    finally:
        for name in [n for n in sys.modules if n == "hinged" or n.startswith("hinged.")]:
            del sys.modules[name]
        sys.modules.update(own)


PURE = pure_package() if kernel.is_compiled else hinged

LEARNERS: dict[str, tuple[str, dict[str, Any]]] = {
    "perceptron": ("Perceptron", {}),
    "perceptron with room for 3": ("Perceptron", {"max_features": 3}),
    "perceptron with random start": ("Perceptron", {"initial_weights": (7, 0.5)}),
    "averaged": ("AveragedPerceptron", {}),
    "averaged with room for 3": ("AveragedPerceptron", {"max_features": 3}),
    "pocket": ("PocketPerceptron", {}),
    "pocket with random start": ("PocketPerceptron", {"initial_weights": (7, 0.5)}),
    "PA": ("PassiveAggressive", {"mode": "uncapped"}),
    "PA-I": ("PassiveAggressive", {"C": 0.3}),
    "PA-II": ("PassiveAggressive", {"mode": "II", "max_features": 4}),
    "linear unit": ("LinearUnit", {}),
    "AROW": ("AROW", {}),
    "AROW that forgets": ("AROW", {"forgetting": 0.1, "max_features": 4}),
    "AROW with random start": ("AROW", {"initial_weights": (7, 0.5)}),
    "SCW": ("SCW", {}),
    "AdaGrad": ("HingeSGD", {}),
    "AdaGrad with room for 3": ("HingeSGD", {"max_features": 3}),
    "AdaGrad with random start": ("HingeSGD", {"initial_weights": (7, 0.5)}),
    "AdaGrad with penalties": ("HingeSGD", {"l1": 0.01, "l2": 0.01}),
    "sgd": ("HingeSGD", {"steps": "sqrt"}),
    "sgd with l2": ("HingeSGD", {"steps": "constant", "l2": 0.01}),
    "sgd with l1": ("HingeSGD", {"steps": "constant", "l1": 0.01}),
    "Pegasos": ("HingeSGD", {"steps": "pegasos", "l2": 0.1}),
    "logistic": ("LogisticSGD", {}),
    "logistic AdaGrad": ("LogisticSGD", {"steps": "adagrad"}),
    "FTRL": ("FTRLProximal", {"l1": 0.1, "l2": 0.1}),
    "FTRL with a start": ("FTRLProximal", {"initial_weights": (7, 0.5)}),
    "FTRL with an intercept's start": ("FTRLProximal", {"initial_intercept": -0.5, "l1": 0.01}),
    "coin betting": ("CoinBetting", {}),
    "coin betting with a start": ("CoinBetting", {"initial_intercept": 0.3, "max_features": 4}),
    "hedge": ("Hedge", {}),
    "quadratic": ("Quadratic", {}),
    "multiclass perceptron": ("MulticlassPerceptron", {}),
    "multiclass averaged": ("MulticlassAveragedPerceptron", {"max_features": 3}),
    "multiclass PA": ("MulticlassPassiveAggressive", {}),
    "multiclass pocket": ("MulticlassPocketPerceptron", {}),
    "multiclass AROW": ("MulticlassAROW", {}),
    "multiclass AROW in little room": ("MulticlassAROW", {"max_features": 3}),
    "multiclass discriminant": ("MulticlassDiscriminant", {}),
    "multiclass discriminant in little room": ("MulticlassDiscriminant", {"max_features": 3}),
    "multiclass quadratic": ("MulticlassQuadratic", {}),
    "multiclass hedge": ("MulticlassHedge", {}),
    "one vs rest": ("OneVsRest", {}),
    "auto": ("Auto", {}),
    "SCW bold": ("SCW", {"phi": 1.0}),
    "mistakes only": ("Perceptron", {"update_on": "mistake"}),
    "margin": ("Perceptron", {"margin": 0.5, "fit_intercept": False}),
    "constant": ("HingeSGD", {"steps": "constant", "label_at_zero": True}),
    "linear unit without a cap": ("LinearUnit", {"capped": False}),
    "Pegasos with l1": ("HingeSGD", {"steps": "pegasos", "l2": 0.1, "l1": 0.01}),
    "sgd with l2 beyond 1": ("HingeSGD", {"steps": "constant", "l2": 3.4}),
    "softmax": ("MulticlassLogisticSGD", {"max_features": 5}),
    "softmax with random start": ("MulticlassLogisticSGD", {"initial_weights": (7, 0.5)}),
    "PA-II wide": ("PassiveAggressive", {"mode": "II", "fit_intercept": False}),
}


def made(package: ModuleType, case: str) -> Any:
    name, parameters = LEARNERS[case]
    if "initial_weights" in parameters:
        seed, scale = parameters["initial_weights"]
        parameters = {**parameters, "initial_weights": package.RandomWeights(seed, scale)}
    return getattr(package, name)(**parameters)


def exact_state(model: Any) -> dict[str, Any]:
    """Return a state in which each float is shown to its last bit."""
    state = model.get_state()
    vectors = {
        part: {name: value.hex() for name, value in vector.view().items()}
        for part, vector in state["vectors"].items()
    }
    scalars = {n: v.hex() if type(v) is float else v for n, v in state["scalars"].items()}
    return {**state, "vectors": vectors, "scalars": scalars}


HOSTILE = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 1e-160, 1e154, -1e200, 1.7e308, 1.0, -2.5]),
    st.integers(-(2**70), 2**70),
    st.booleans(),
)
NAMES = st.one_of(st.sampled_from("abcdefg"), st.sampled_from([1, "ä", ("a", 1), True, None]))
EVENTS = st.tuples(
    st.dictionaries(NAMES, HOSTILE, max_size=6),
    st.booleans(),
    st.sampled_from([1.0, 1.0, 1.0, 0.0, 0.5, 5e-324, 1e300]),
)


@pytest.mark.parametrize("case", LEARNERS)
@settings(max_examples=25, deadline=None)
@given(stream=st.lists(EVENTS, max_size=12))
def test_hostile_events_give_the_same_bits(case: str, stream: list[Any]) -> None:
    compiled, pure = made(hinged, case), made(PURE, case)
    compiled.track()
    pure.track()
    for x, y, w in stream:
        w = 1.0 if "uncapped" in LEARNERS[case][1].values() and w != 0.0 else w
        assert compiled.predict_one(x) == pure.predict_one(x)
        outcome = compiled.predict_learn_one(x, y, w)
        assert repr(outcome) == repr(pure.predict_learn_one(x, y, w))  # also true, not 1.0
    assert exact_state(compiled) == exact_state(pure)
    for part, vector in compiled.get_state()["vectors"].items():
        twin = pure.get_state()["vectors"][part]
        assert list(vector.view()) == list(twin.view())
        assert vector.changed_count() == twin.changed_count()
        assert vector.take_changed() == twin.take_changed()
        assert vector.stored_bytes() == twin.stored_bytes()


def ordinary(count: int, names: int) -> Iterator[tuple[dict[str, float], bool]]:
    chance = random.Random(5)
    for number in range(count):
        picked = chance.sample(range(names), 12)
        x = {f"name {n}": chance.gauss(0.0, 1.0) * (1 + n % 3) for n in picked}
        yield x, (number * 7 + picked[0]) % 5 < 2


@pytest.mark.parametrize("case", LEARNERS)
def test_many_names_give_the_same_bits(case: str) -> None:
    compiled, pure = made(hinged, case), made(PURE, case)
    for number, (x, y) in enumerate(ordinary(260, 400)):
        outcome = compiled.predict_learn_one(x, y)
        assert repr(outcome) == repr(pure.predict_learn_one(x, y))
        if number == 150:
            compiled = pickle.loads(pickle.dumps(compiled))
        if number == 200:
            compiled = copy.deepcopy(compiled)
        if number == 250:  # a state goes from one version to the other
            state = pure.get_state()
            plain = {n: dict(v.view()) for n, v in state["vectors"].items()}
            compiled.set_state({**state, "vectors": plain})
    assert exact_state(compiled) == exact_state(pure)


def test_classes_of_few_names_beside_those_of_many_give_the_same_bits() -> None:
    draw = random.Random(3)
    compiled, pure = hinged.MulticlassAROW(), PURE.MulticlassAROW()
    for number in range(240):
        rare = number % 12 == 11
        picked = draw.sample(range(5_000), 3 if rare else 60)
        x = {f"name {n}": draw.gauss(0.0, 1.0) for n in picked}
        y = draw.choice("bc" if rare else "ad")
        assert compiled.predict_learn_one(x, y) == pure.predict_learn_one(x, y)
        if number == 160:
            compiled = pickle.loads(pickle.dumps(compiled))
    assert exact_state(compiled) == exact_state(pure)
    for part, vector in compiled.get_state()["vectors"].items():
        assert list(vector.view()) == list(pure.get_state()["vectors"][part].view())


FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(scores=st.dictionaries(NAMES, FINITE, max_size=5), chosen=st.booleans())
def test_softmax_gives_the_same_bits(scores: dict[Any, float], chosen: bool) -> None:
    keys = list(scores)[::2] if chosen else None
    ours, theirs = (made(scores, keys) for made in (kernel.softmax, kernel.pure.softmax))
    assert repr(ours) == repr(theirs)


@given(shares=st.dictionaries(NAMES, st.floats(-700.0, 700.0), max_size=5))
def test_logarithms_of_probabilities_are_the_same_bits(shares: dict[Any, float]) -> None:
    ours, theirs = (
        made(shares) for made in (kernel.log_probabilities, kernel.pure.log_probabilities)
    )
    assert repr(ours) == repr(theirs)


@given(score=FINITE)
def test_log_odds_give_probabilities_of_the_same_bits(score: float) -> None:
    assert kernel.both_probabilities(score) == kernel.pure.both_probabilities(score)


def scaled_alike(stream: Iterable[dict[Any, float]], cap: int) -> None:
    compiled, pure = hinged.AutoScaler(cap), PURE.AutoScaler(cap)
    for x in stream:
        for call in ("transform_one", "expect_one", "learn_transform_one"):
            ours, theirs = (getattr(scaler, call)(x) for scaler in (compiled, pure))
            assert list(ours.items()) == list(theirs.items())
            assert [v.hex() for v in ours.values()] == [v.hex() for v in theirs.values()]
    assert repr(compiled.get_state()) == repr(pure.get_state())


@settings(max_examples=100, deadline=None)
@given(stream=st.lists(st.dictionaries(NAMES, HOSTILE, max_size=6), max_size=40))
def test_hostile_events_are_scaled_to_the_same_bits(stream: list[dict[Any, float]]) -> None:
    scaled_alike(stream, cap=7)


def test_many_events_are_scaled_to_the_same_bits() -> None:
    chance = random.Random(3)
    kinds = (chance.random, lambda: chance.gauss(9.0, 3.0), lambda: float(chance.randrange(9)))
    scaled_alike(({"a": 1.0, chance.choice("bcd"): kinds[n % 3]()} for n in range(1_500)), cap=4)


def test_many_names_are_scaled_to_the_same_bits() -> None:
    scaled_alike((x for x, _ in ordinary(200, 900)), cap=800)


def test_an_event_that_was_read_is_scaled_as_its_dictionary() -> None:
    texts = [
        b'{"x":{"a":1.5,"b":20,"c":-3e7},"y":true}',
        b'{"x":{"b":7.25,"d":1,"a":2.5},"y":false}',
    ]
    read: Any = kernel.read_events(texts * 20, lambda x, y: (x, y), True)
    ours, twin, scaler, other = hinged.Auto(), PURE.Auto(), hinged.AutoScaler(), PURE.AutoScaler()
    for x, y in read:
        assert ours.predict_learn_one(x, y) == twin.predict_learn_one(dict(x), y)
        assert scaler.transform_one(x) == other.transform_one(dict(x))
        scaler.learn_one(x)
        other.learn_one(dict(x))
        assert dict(x) == dict(x.items())  # the numbers that were read stay
    assert repr(scaler.get_state()) == repr(other.get_state())
    assert exact_state(ours) == exact_state(twin)


def test_a_scaled_event_is_a_mapping_that_stays() -> None:
    scaler, x = hinged.AutoScaler(), {"a": 0.5, "b": 900.0, ("c", 1): 1.0}
    for n in range(20):
        scaler.learn_one({name: value + n for name, value in x.items()})
    model, twin = hinged.Hedge(), hinged.Hedge()
    scaled = [scaler.scaled_after({**x, "a": float(n)}, learn=False) for n in range(12)]
    for n, z in enumerate(scaled):  # each is learned after others were made
        expected = scaler.expect_one({**x, "a": float(n)})
        assert (z, len(z), list(z)) == (expected, 3, list(x))
        assert z == expected
        assert model.predict_learn_one(z, n % 2 == 0) == twin.predict_learn_one(
            expected, n % 2 == 0
        )
    assert exact_state(model) == exact_state(twin)
    assert pickle.loads(pickle.dumps(scaled[0])) == scaled[0]


@pytest.mark.parametrize("events", [2**52 - 1, 2**52, 2**62, 10**30])
def test_so_many_events_that_c_cannot_count_them_give_the_same_bits(events: int) -> None:
    records = {
        "a": [events - 3, 1, 7, True, 2.0, 1.0, 1.0, 3.0],
        "b": [1, events, 0, False, *[0.0] * 4],
    }
    state = {"version": 1, "type": "AutoScaler", "events": events, "ignored": 0, "records": records}
    ours, theirs = hinged.AutoScaler(3), PURE.AutoScaler(3)
    for scaler in (ours, theirs):
        scaler.set_state(state)
        assert scaler.get_state() == copy.deepcopy(scaler).get_state() == state
    for x in ({"a": 0.5, "b": 2.5, "c": 3.5}, {"c": 9.5, "d": 1.0}):
        for call in ("transform_one", "learn_transform_one", "transform_one"):
            assert repr(getattr(ours, call)(x)) == repr(getattr(theirs, call)(x))
    assert repr(ours.get_state()) == repr(theirs.get_state())


@pytest.mark.parametrize("kind", [hinged.Perceptron, hinged.AveragedPerceptron])
def test_there_may_be_room_for_more_names_than_c_can_count(kind: Any) -> None:
    model = kind(max_features=10**30)
    model.learn_one({"a": 1.0}, True)
    assert model.predict_one({"a": 1.0})


def test_whole_numbers_of_one_hash_are_different_names() -> None:
    lap = sys.hash_info.modulus
    names = [
        sign * (part + lap * laps) for sign in (1, -1) for part in (1, 2) for laps in (0, 1, 3)
    ]
    model = hinged.Perceptron()
    for _ in range(2):
        for at, name in enumerate(names):
            model.learn_one({int(str(name)): 1.0 + at}, at % 2 == 0)
    assert list(model.weights) == names
    assert [model.weights[int(str(name))] for name in names] == list(model.weights.values())
    assert model.weights.get(True) == model.weights[1]
    assert model.weights.get(5 * lap + 1, "none") == "none"


def test_a_scaler_is_pickled_as_plain_records() -> None:
    scaler = hinged.AutoScaler()
    for n in range(20):
        scaler.learn_one({"a": n + 0.5, "b": 1.0})
    saved: Any = scaler.__reduce_ex__(4)[2]
    assert saved["_records"] == {n: tuple(r) for n, r in scaler.get_state()["records"].items()}
    for other in (copy.deepcopy(scaler), scaler.clone(include_attributes=True)):
        other.learn_one({"c": 1.0})
        assert other.get_state() != scaler.get_state()
        assert other.transform_one({"a": 3.0}) == scaler.transform_one({"a": 3.0})


def test_a_view_is_a_live_mapping() -> None:
    vector = hinged.WeightVector({"a": 1.0, 2: -3.0})
    view = vector.view()
    vector.add({"b": 2.0}, 0.5)
    assert view == {"a": 1.0, 2: -3.0, "b": 1.0} == dict(view)
    assert list(view) == ["a", 2, "b"] == list(view.keys())
    assert list(reversed(view)) == ["b", 2, "a"]
    assert list(view.items()) == [("a", 1.0), (2, -3.0), ("b", 1.0)]
    assert list(view.values()) == [1.0, -3.0, 1.0]
    assert view.keys() & {"a", "z"} == {"a"}
    assert "z" not in view
    assert view.get("z") is None
    assert len(view) == 3
    with pytest.raises(TypeError):
        view["a"] = 2.0  # type: ignore[index]
    with pytest.raises(KeyError):
        view["z"]


def test_names_are_held_once_and_let_go() -> None:
    name = "a name that nothing else holds: " + str(math.pi)
    before = sys.getrefcount(name)
    for _ in range(3):
        vector = hinged.WeightVector()
        vector.add({name: 1.0}, 1.0)
        vector.add({name: 1.0}, 1.0)
        assert sys.getrefcount(name) == before + 2
        vector.dot({})  # the kernel holds the names of the last event only
        assert sys.getrefcount(name) == before + 1
        vector.dot({name: 1.0})
        with pytest.raises(TypeError):
            vector.dot({name: 1.0, "b": "no number"})  # type: ignore[dict-item]
        vector.dot({})
        other = hinged.WeightVector()
        other.replace(vector)
        assert sys.getrefcount(name) == before + 1  # they share
        vector.clear()
        del other
        assert sys.getrefcount(name) == before
    del vector
    assert sys.getrefcount(name) == before


@pytest.mark.parametrize("kind", [hinged.AutoScaler, hinged.Auto])
def test_the_names_of_a_scaler_are_held_once_and_let_go(kind: Any) -> None:
    name = "a name that nothing else holds: " + str(math.pi)
    before = sys.getrefcount(name)
    for _ in range(2):
        model = kind()
        scaler = model if kind is hinged.AutoScaler else model._scaler
        for number in range(6):
            x = {name: float(number % 2), "b": 1.0}  # the name of a square would stay known
            if model is scaler:
                model.learn_one(x)
                model.transform_one(x)
            else:
                model.learn_one(x, number % 3)
                model.predict_one(x)
            scaler.scaled_after(x, learn=False)
        del x
        assert sys.getrefcount(name) > before
        del model, scaler
        hinged.Quadratic().learn_one({"c": 3.0}, True)  # the kernel holds the last event only
        assert sys.getrefcount(name) == before


def test_a_vector_takes_no_room_for_the_events_of_others() -> None:
    wide = {f"n{n}": 1.0 for n in range(5_000)}
    before, after = hinged.WeightVector(), hinged.WeightVector()
    before.dot({"a": 1.0})
    hinged.WeightVector().dot(wide)
    after.dot({"a": 1.0})
    assert sys.getsizeof(after) == sys.getsizeof(before)
    after.dot(wide)
    assert sys.getsizeof(after) == sys.getsizeof(before) + 4 * (len(wide) - 1)


def test_a_copy_and_its_vector_go_their_own_ways() -> None:
    vector, copy = hinged.WeightVector({"a": 1.0, "b": 2.0}), hinged.WeightVector()
    copy.replace(vector)
    vector.put({"c": 3.0})
    assert "c" not in copy
    assert copy.dot({"a": 1.0, "c": 5.0}) == 1.0
    copy.put({"c": 4.0})  # as the vector has it
    copy.put({"d": 5.0})
    vector.put({"e": 6.0})
    vector.put({"d": 7.0})
    assert dict(vector.view()) == {"a": 1.0, "b": 2.0, "c": 3.0, "e": 6.0, "d": 7.0}
    assert list(copy.view().items()) == [("a", 1.0), ("b", 2.0), ("c", 4.0), ("d", 5.0)]
    vector.clear()
    assert copy.newest(2) == ["c", "d"]
    copy.replace(copy)
    assert len(copy) == len(vector) == 0


@pytest.mark.parametrize(
    "kind",
    [
        *(hinged.AROW, hinged.CoinBetting, hinged.FTRLProximal, hinged.MulticlassAROW),
        *(hinged.OneVsRest, hinged.MulticlassLogisticSGD),
    ],
)
def test_the_vectors_of_a_learner_share_their_names(kind: Any) -> None:
    name = "a name that nothing else holds: " + str(math.pi)
    before = sys.getrefcount(name)
    learner = kind()
    for number in range(12):
        names = (name, "b") if number % 4 < 2 else ("b", name)
        learner.learn_one(dict.fromkeys(names, 1.0), number % 2 == 0)
    del names
    learner.predict_one({})  # the kernel holds the names of the last event only
    assert sys.getrefcount(name) == before + 1


def test_an_event_that_changes_between_calls_is_seen_again() -> None:
    vector, x = hinged.WeightVector(), {"a": 1.0, "b": 2.0}
    vector.add(x, 1.0)
    assert vector.dot(x) == 5.0
    x["b"] = 3
    assert vector.dot(x) == 7.0
    x["c"] = x.pop("b")
    assert vector.dot(x) == 1.0
    assert vector.dot({"".join(["b"]): 1.0, "".join(["a"]): True}) == 3.0
    other = hinged.WeightVector({"b": 7.0})
    assert [other.dot({"a": 1.0, "b": 1.0}), vector.dot({"a": 1.0, "b": 1.0})] == [7.0, 3.0]
    vector.clear()
    assert vector.dot({"a": 1.0, "b": 1.0}) == 0.0
    vector.add({"z": 1.0, "b": 1.0}, 1.0)
    assert vector.dot({"a": 1.0, "b": 1.0}) == 1.0


def test_an_ordered_dictionary_is_summed_in_its_own_order() -> None:
    x = OrderedDict({"a": 1.0, "b": 1e16, "c": -1e16})
    x.move_to_end("a")
    vector = hinged.WeightVector({"a": 1.0, "b": 1.0, "c": 1.0})
    assert vector.dot(x) == 1.0
    assert vector.dot(dict(sorted(x.items()))) == 0.0


TABLES = [
    "perceptron",
    "PA",
    "PA-I",
    "PA-II wide",
    "AROW",
    "SCW",
    "AdaGrad",
    "sgd",
    "constant",
    "logistic",
    "logistic AdaGrad",
    "linear unit",
    "averaged",
    "pocket",
    "sgd with l2",
    "sgd with l1",
    "Pegasos",
    "Pegasos with l1",
    "AdaGrad with penalties",
]


@pytest.mark.parametrize("case", TABLES)
@pytest.mark.parametrize("largest", [1.0, 1e152])
def test_tables_give_the_bits_of_single_events(case: str, largest: float) -> None:
    chance = np.random.default_rng(11)
    X = pd.DataFrame(chance.normal(size=(300, 7)), columns=list("gfedcba"))
    y = X["a"] + chance.normal(size=300) > 0.0
    X.iloc[150:153] *= largest  # an overflow in the middle of the table
    table, single = made(hinged, case), made(PURE, case)
    table.learn_many(X, y)
    for x, label in zip(X.to_dict("records"), y.tolist(), strict=True):
        single.learn_one(x, label)
    assert exact_state(table) == exact_state(single)


@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_and_columns_in_memory_give_the_same_bits(order: Literal["C", "F"]) -> None:
    values = np.random.default_rng(3).normal(size=(100, 5))
    y = values[:, 0] > 0.0
    names = list("abcde")
    kept = pd.DataFrame(np.array(values, order=order), columns=names, copy=False)
    assert kept.to_numpy().flags[f"{order}_CONTIGUOUS"]
    arrow = pa.table({name: values[:, i] for i, name in enumerate(names)})
    single = hinged.AROW()
    for row, label in zip(values.tolist(), y.tolist(), strict=True):
        single.learn_one(dict(zip(names, row, strict=True)), label)
    for frame in (kept, arrow):
        model = hinged.AROW()
        model.learn_many(frame, y)
        assert exact_state(model) == exact_state(single)


@pytest.mark.parametrize("name", ["Perceptron", "PassiveAggressive", "AROW", "HingeSGD"])
def test_a_subclass_keeps_its_own_rule(name: str) -> None:
    class Still(getattr(hinged, name)):  # type: ignore[misc]
        def _update(self, *args: object) -> bool:
            return False

    model = Still()
    model.learn_one({"a": 1.0}, True)
    model.learn_many(pd.DataFrame({"a": [1.0, 2.0]}), [True, False])
    assert (model.accounting.events, model.accounting.updates, dict(model.weights)) == (3, 0, {})


class Odd:
    """A name whose comparison changes the very vector that it is looked up in."""

    def __init__(self, vector: hinged.WeightVector) -> None:
        self.vector = vector

    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        self.vector.add({f"n{len(self.vector)}": 1.0}, 1.0)
        self.vector.dot({"a": 1.0, 1: 2.0})
        return False


def test_a_name_that_changes_the_vector_does_no_harm() -> None:
    vector = hinged.WeightVector()
    vector.add({1: 1.0}, 1.0)
    for call in (vector.dot, vector.unknown, lambda x: vector.add(x, 1.0)):
        with pytest.raises(RuntimeError, match="changed while"):
            call({Odd(vector): 1.0})
    assert dict(vector.view())[1] == 1.0


class Growing:
    """A name whose comparison lets a scaler learn others."""

    scaler: hinged.AutoScaler | None = None

    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        scaler, Growing.scaler = Growing.scaler, None
        if scaler is not None:
            for number in range(40):
                scaler.learn_one({f"n{len(scaler.get_state()['records'])} {number}": 9.5})
        Growing.scaler = scaler
        return self is other


def test_a_name_that_changes_the_scaler_does_no_harm() -> None:
    for cap in (None, 60):
        scaler, x = hinged.AutoScaler(cap), {1: 0.5, Growing(): 2.5, "a": 1.5, Growing(): 3.5}
        for call in (scaler.learn_one, scaler.transform_one, scaler.expect_one) * 3:
            Growing.scaler = scaler
            with contextlib.suppress(RuntimeError):
                call(x)
            Growing.scaler = None
        scaler.learn_one(x)
        records = scaler.get_state()["records"]
        assert all(record[0] <= scaler.events for record in records.values())
        assert len(records) <= (cap or 10_000)


class Failing:
    """A name that refuses one of its comparisons."""

    def __init__(self, fails_at: int) -> None:
        self.left = fails_at

    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        self.left -= 1
        if self.left == 0:
            raise ValueError("it does not compare")
        return self is other


@pytest.mark.parametrize("fails_at", [1, 2, 3])
def test_a_scaler_can_be_restored_after_a_comparison_of_names_failed(fails_at: int) -> None:
    scaler, copy, name = hinged.AutoScaler(2), hinged.AutoScaler(2), Failing(fails_at)
    scaler.learn_one({1: 0.5})
    with contextlib.suppress(ValueError):
        scaler.learn_one({name: 2.5, "a": 1.5, "b": 0.5})  # there is room for one of them
    name.left = 0
    copy.set_state(scaler.get_state())
    assert copy.get_state() == scaler.get_state()


class Fussy:
    """A name that may refuse to be compared."""

    def __init__(self, name: str, fails: bool = False) -> None:
        self.name = name
        self.fails = fails

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        if self.fails or (isinstance(other, Fussy) and other.fails):
            raise TypeError("it does not compare")
        return isinstance(other, Fussy) and self.name == other.name


def test_names_that_could_not_be_compared_are_looked_up_again() -> None:
    vector = hinged.WeightVector({Fussy("a"): 1.0, Fussy("b"): 2.0, Fussy("c"): 3.0})
    assert vector.dot({Fussy("c"): 1.0, Fussy("b"): 1.0}) == 5.0
    names = [Fussy("a", fails=True), Fussy("b", fails=True)]
    x = dict.fromkeys(names, 10.0)
    for _ in range(2):
        with pytest.raises(TypeError, match="does not compare"):
            vector.dot(x)
    for name in names:
        name.fails = False
    assert vector.dot(x) == 30.0


class Asking:
    """A name that asks a learner about the event that it is in when it is compared."""

    ask: Callable[[], object] | None = None

    def __init__(self, name: str) -> None:
        self.name = name

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        ask, Asking.ask = Asking.ask, None
        if ask is not None:
            ask()
        Asking.ask = ask
        return isinstance(other, Asking) and self.name == other.name


@pytest.mark.parametrize(
    "kind",
    [
        *(hinged.MulticlassAROW(), hinged.MulticlassLogisticSGD()),
        *(hinged.MulticlassPassiveAggressive(), hinged.MulticlassAveragedPerceptron()),
    ],
    ids=lambda kind: type(kind).__name__,
)
def test_an_event_that_is_asked_about_while_it_is_learned_is_learned_all_the_same(
    kind: MulticlassClassifier,
) -> None:
    draw, plain, odd = random.Random(5), kind.clone(), kind.clone()
    for _ in range(40):
        names = draw.sample("abcdefgh", 4)
        values = {name: draw.gauss(0, 1) for name in names}
        y = draw.choice("xyz")
        expected = plain.predict_learn_one(values, y)
        x = {Asking(name): value for name, value in values.items()}
        Asking.ask = lambda x=x: odd.scores_one(x)
        try:
            assert odd.predict_learn_one(x, y) == expected
        finally:
            Asking.ask = None
        assert odd.scores_one(x) == plain.scores_one(values)


ACROSS = """
import pickle, random, sys
import hinged
from hinged import kernel

BINARY = [hinged.AROW(), hinged.HingeSGD(steps="adagrad"), hinged.FTRLProximal(), hinged.Hedge()]
MANY = [hinged.MulticlassAROW(), hinged.MulticlassHedge(), hinged.OneVsRest(hinged.Perceptron())]
MIXED = [hinged.Auto(), hinged.Calibrated(hinged.AROW())]
random.seed(1)
events = [{str(n): random.gauss(0.0, 1.0) for n in range(5)} for _ in range(20)]


def learned(models, events):
    for models, labels in ((models[:4], (False, True)), (models[4:7], "abc"), (models[7:], (0, 1))):
        for n, x in enumerate(events):
            for model in models:
                model.learn_one(x, labels[n % len(labels)])


if sys.argv[1] == "write":
    models = [*BINARY, *MANY, *MIXED]
    learned(models, events[:10])
    pickle.dump((kernel.kind(), models), open(sys.argv[2], "wb"))
else:
    kind, models = pickle.load(open(sys.argv[2], "rb"))
    assert kind != kernel.kind()
learned(models, events[10:])
print([(model.score_one(events[0]), model.accounting.mistakes) for model in models])
"""


@pytest.mark.skipif(not kernel.is_compiled, reason="there is one version only")
@pytest.mark.parametrize("writer", ["0", "1"])
def test_a_pickle_of_one_version_goes_on_in_the_other(writer: str, tmp_path: Path) -> None:
    (tmp_path / "across.py").write_text(ACROSS, "utf-8")
    said = []
    for do, pure in (("write", writer), ("read", "10"[int(writer)])):
        command = [sys.executable, str(tmp_path / "across.py"), do, str(tmp_path / "pickled")]
        environment = os.environ | {"HINGED_PURE": pure}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    assert said[0] == said[1]
