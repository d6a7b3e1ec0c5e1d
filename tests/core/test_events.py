"""What the learners take as features, and that a refusal changes nothing."""

from __future__ import annotations

import collections
import math
import types
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from river import preprocessing

from hinged import HingedError, InvalidEvent, LinearClassifier, Perceptron


def fresh() -> Perceptron:
    model = Perceptron()
    model.learn_one({"a": 1.0}, True)
    return model


@pytest.mark.parametrize(
    "value",
    [
        *("0.25", "", "NaN", "inf", b"1", None, [1], (1.0,), {"k": 1}, 1j, object()),
        *(math.nan, math.inf, -math.inf, np.float64("nan"), np.float32("inf"), Decimal("NaN")),
        *(10**400, -(10**400), 10**5_000),
    ],
    ids=lambda v: repr(v)[:12] if not isinstance(v, int) else "huge int",
)
@pytest.mark.parametrize("name", ["a", "unknown"])
def test_a_value_that_is_no_finite_number_is_refused_by_name(name: str, value: Any) -> None:
    model = fresh()
    x = {"b": 1.0, name: value}
    for call in (
        lambda: model.learn_one(x, False),
        lambda: model.predict_learn_one(x, False),
        lambda: model.predict_one(x),
        lambda: model.predict_proba_one(x),
    ):
        with pytest.raises(InvalidEvent) as refusal:
            call()
        assert refusal.value.field == f"x[{name!r}]"
        assert len(str(refusal.value)) < 200
    assert dict(model.weights) == {"a": 1.0}
    assert model.intercept == 1.0
    assert model.accounting.events == 1


@pytest.mark.parametrize("x", [None, 3, "abc", [("a", 1.0)], {"a"}])
def test_features_must_be_a_mapping(x: Any) -> None:
    model = fresh()
    with pytest.raises(InvalidEvent, match="x must be a mapping"):
        model.learn_one(x, True)
    with pytest.raises(HingedError):
        model.score_one(x)


@pytest.mark.parametrize(
    "value", [2, np.float32(2), np.int8(2), Fraction(2), Decimal(2), np.float64(2)]
)
def test_real_numbers_of_any_type_become_floats(value: Any) -> None:
    model = fresh()
    model.learn_one({"a": value}, False)
    assert dict(model.weights) == {"a": -1.0}
    assert type(model.weights["a"]) is float
    assert type(model.accounting.hinge_loss) is float


@pytest.mark.parametrize("value", [True, np.bool_(True)])
def test_true_is_one(value: Any) -> None:
    model = fresh()
    assert model.score_one({"a": value}) == 2.0


@pytest.mark.parametrize("kind", [types.MappingProxyType, collections.UserDict, dict])
def test_any_mapping_will_do(kind: Any) -> None:
    model = fresh()
    model.learn_one(kind({"a": 2.0, "b": 1.0}), False)
    assert dict(model.weights) == {"a": -1.0, "b": -1.0}
    assert model.score_one(kind({"a": 2.0})) == -2.0


def test_a_defaultdict_is_not_grown() -> None:
    x: collections.defaultdict[str, float] = collections.defaultdict(float, {"a": 1.0})
    model = fresh()
    model.learn_one({"b": 1.0}, False)
    model.learn_one(x, False)
    assert dict(x) == {"a": 1.0}


def test_a_value_so_small_that_it_reads_as_zero_is_fine() -> None:
    model = fresh()
    model.learn_one({"b": float("1e-400"), "c": 5e-324}, False)
    assert dict(model.weights) == {"a": 1.0, "b": 0.0, "c": -5e-324}


def test_names_of_any_hashable_type_stay_apart() -> None:
    x: dict[Any, float] = {1: 1.0, "1": 2.0, (1, 2): 3.0, None: 1.0}
    model = Perceptron()
    model.learn_one(x, True)
    assert dict(model.weights) == x
    other = Perceptron()
    other.set_state(model.get_state())
    assert dict(other.weights) == x
    assert other.score_one(x) == 1.0 + 4.0 + 9.0 + 1.0 + 1.0


def test_nan_from_a_scaler_for_an_unseen_feature_is_refused() -> None:
    scaler: Any = preprocessing.MinMaxScaler()
    model = Perceptron()
    for value, y in ((1.0, True), (5.0, False)):
        scaler.learn_one({"x": value})
        model.learn_one(scaler.transform_one({"x": value}), y)
    before = dict(model.weights), model.intercept
    for x in (scaler.transform_one({"x": 3.0, "y": 2.0}), {"x": 3.0, "y": math.nan}):
        if all(map(math.isfinite, x.values())):  # the scaler has been mended since
            continue
        with pytest.raises(InvalidEvent, match=r"x\['y'\]"):
            model.predict_one(x)
        with pytest.raises(InvalidEvent, match=r"x\['y'\]"):
            model.learn_one(x, True)
    assert (dict(model.weights), model.intercept) == before


def test_every_learner_turns_numbers_of_any_type_into_floats(learner: LinearClassifier) -> None:
    odd: list[dict[str, Any]] = [
        {"a": Decimal("0.5"), "b": Fraction(1, 4), "c": np.float32(0.5), "d": True},
        {"a": np.int64(2), "b": 3, "c": np.float16(-0.5), "d": np.bool_(True)},
        {"a": 10**300, "b": Decimal(1)},
        {"b": np.float32(2.0), "c": -1},
    ]
    labels = ["A", "B"] * 2 if learner._multiclass else [True, False] * 2
    one: Any = learner.clone()
    two: Any = learner.clone()
    for x, y in zip(odd, labels, strict=True):
        plain = {name: float(value) for name, value in x.items()}
        assert one.predict_learn_one(x, y) == two.predict_learn_one(plain, y)
        assert type(one.score_one(x)) is float
        assert one.score_one(x) == two.score_one(plain)
    assert repr(one.get_state()["scalars"]) == repr(two.get_state()["scalars"])
    for name, vector in one.get_state()["vectors"].items():
        assert {type(value) for value in vector.view().values()} <= {float}
        assert dict(vector.view()) == dict(two.get_state()["vectors"][name].view())


def test_every_learner_refuses_a_bad_value_whole(learner: LinearClassifier) -> None:
    model: Any = learner.clone()
    labels = ["A", "B"] if learner._multiclass else [True, False]
    for y in labels:
        model.learn_one({"a": 1.0, "b": 2.0}, y)
    state = model.get_state()
    before = repr(state["scalars"]), repr([dict(v.view()) for v in state["vectors"].values()])
    for value in ("1", None, math.nan, math.inf, 10**400, [1.0], 1j):
        for name in ("a", "new"):
            with pytest.raises(InvalidEvent, match=f"x\\['{name}'\\]"):
                model.learn_one({"b": 1.0, name: value}, labels[0])
            with pytest.raises(InvalidEvent, match=f"x\\['{name}'\\]"):
                model.score_one({"b": 1.0, name: value})
    state = model.get_state()
    assert before == (
        repr(state["scalars"]),
        repr([dict(v.view()) for v in state["vectors"].values()]),
    )
