"""Features that the learners take; a refusal changes nothing."""

from __future__ import annotations

import collections
import math
import types
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from river import preprocessing

from hinged import (
    INTERCEPT,
    HingedError,
    HingeSGD,
    InvalidEvent,
    LinearClassifier,
    MulticlassPerceptron,
    Perceptron,
)
from hinged.checks import plain_state


def fresh() -> Perceptron:
    model = Perceptron()
    model.learn_one({"a": 1.0}, True)
    return model


@pytest.mark.parametrize(
    "value",
    [
        *("0.25", "", "NaN", "inf", b"1", [1], (1.0,), {"k": 1}, 1j, object()),
        *(math.inf, -math.inf, np.float32("inf"), Decimal("Infinity"), Decimal("sNaN")),
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


@pytest.mark.parametrize("model", [Perceptron(), MulticlassPerceptron(), HingeSGD(l2=0.1)])
def test_a_category_is_refused_with_the_encoder_that_helps(model: LinearClassifier) -> None:
    x: Any = {"size": 1.0, "colour": "red"}
    calls: list[Callable[[], object]] = [
        lambda: model.learn_one(x, True),
        lambda: model.predict_one(x),
        lambda: model.learn_many(pd.DataFrame([x]), pd.Series([True])),
    ]
    for call in calls:
        with pytest.raises(InvalidEvent, match=r"x\['colour'\].*OneHotEncoder\(\) \| model"):
            call()
    assert model.accounting.events == 0
    encoded = preprocessing.OneHotEncoder() | model
    encoded.learn_one({"colour": "red"}, True)
    encoded.learn_one({"colour": "blue"}, False)
    assert model.accounting.events == 2


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


MISSING = [
    *(math.nan, -math.nan, None, np.float64("nan"), np.float32("nan"), Decimal("NaN")),
    *(pd.NA, pa.scalar(None, pa.float64()), pa.scalar(math.nan)),
]


@pytest.mark.parametrize("value", MISSING, ids=repr)
def test_a_missing_value_is_an_absent_feature(value: Any) -> None:
    model = fresh()  # w = {a: 1}, b = 1
    assert model.score_one({"a": value}) == 1.0
    assert model.score_one({"a": 2.0, "c": value}) == 3.0
    assert model.predict_proba_one({"a": value}) == model.predict_proba_one({})
    assert model.explain_one({"a": value, "b": 1.0}) == {"b": 0.0, INTERCEPT: 1.0}
    outcome = model.predict_learn_one({"a": value, "b": 2.0, "c": value}, False)
    assert (outcome.score, outcome.hinge_loss, outcome.updated) == (1.0, 2.0, True)
    assert dict(model.weights) == {"a": 1.0, "b": -2.0}
    assert model.intercept == 0.0


def test_a_fresh_scaler_gives_nan_and_the_learner_goes_on() -> None:
    scaler: Any = preprocessing.MinMaxScaler()
    model = scaler | Perceptron()
    assert model.predict_one({"x": 1.0}) is False
    model.learn_one({"x": 1.0}, True)  # scaled to 0: only b moves, to 1
    model.learn_one({"x": 5.0}, False)  # scaled to 1: w.x = -1, b = 0
    learner: Any = model["Perceptron"]
    assert (dict(learner.weights), learner.intercept) == ({"x": -1.0}, 0.0)
    # x is scaled to 0.5; y was never seen, which gives NaN
    assert model.predict_proba_one({"x": 3.0, "y": 2.0}) == model.predict_proba_one({"x": 3.0})
    learner.learn_one({"x": 0.5, "y": math.nan}, True)
    assert (dict(learner.weights), learner.intercept) == ({"x": -0.5}, 1.0)


class Passed(Perceptron):
    """A learner that says what reaches its rule."""

    def _update(self, x: Any, target: float, margin: float, norm: float, w: float) -> bool:
        assert all(map(math.isfinite, x.values()))
        assert math.isfinite(norm)
        return super()._update(x, target, margin, norm, w)


def test_a_rule_never_meets_a_missing_value() -> None:
    model = Passed()
    for y in (True, False, True):
        model.learn_one({"a": math.nan, "b": 1.0, "c": None}, y)
    assert set(model.weights) == {"b"}


def test_beside_a_missing_value_a_score_beyond_the_floats_is_cut(learner: LinearClassifier) -> None:
    labels = ["A", "B"] if learner._multiclass else [True, False]
    holed, plain = learner.clone(), learner.clone()
    for y in labels * 2:
        assert holed.predict_learn_one({"a": 1e200, "b": math.nan}, y) == plain.predict_learn_one(
            {"a": 1e200}, y
        )
    assert holed.score_one({"a": 1e308, "b": None}) == plain.score_one({"a": 1e308})
    assert plain_state(holed) == plain_state(plain)


def test_every_learner_turns_numbers_of_any_type_into_floats(learner: LinearClassifier) -> None:
    odd: list[dict[str, Any]] = [
        {"a": Decimal("0.5"), "b": Fraction(1, 4), "c": np.float32(0.5), "d": True},
        {"a": np.int64(2), "b": 3, "c": np.float16(-0.5), "d": np.bool_(True)},
        {"a": 10**300, "b": Decimal(1)},
        {"b": np.float32(2.0), "c": -1},
    ]
    labels = ["A", "B"] * 2 if learner._multiclass else [True, False] * 2
    one, two = learner.clone(), learner.clone()
    for x, y in zip(odd, labels, strict=True):
        plain = {name: float(value) for name, value in x.items()}
        assert one.predict_learn_one(x, y) == two.predict_learn_one(plain, y)
        assert type(one.score_one(x)) is float
        assert one.score_one(x) == two.score_one(plain)
    assert repr(plain_state(one)) == repr(plain_state(two))
