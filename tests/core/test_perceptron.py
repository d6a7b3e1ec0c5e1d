"""The perceptron's arithmetic against hand calculation, published counts and other libraries."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from river import base, linear_model
from sklearn.linear_model import Perceptron as SklearnPerceptron

from hinged import InvalidEvent, InvalidParameter, Perceptron

Event = tuple[dict[str, float], bool]

SIX_ROWS: list[tuple[list[int], bool]] = [
    ([1, 1, 0, 1, 1], True),
    ([0, 0, 1, 1, 0], False),
    ([0, 1, 1, 0, 0], True),
    ([1, 0, 0, 1, 0], False),
    ([1, 0, 1, 0, 1], True),
    ([1, 0, 1, 1, 0], False),
]


def learned(events: Iterable[tuple[dict[Any, Any], Any]], **params: Any) -> Perceptron:
    model = Perceptron(**params)
    for x, y in events:
        model.learn_one(x, y)
    return model


def counts(model: Perceptron) -> tuple[int, int, int, float]:
    a = model.accounting
    return a.events, a.mistakes, a.updates, a.hinge_loss


def test_is_a_river_classifier() -> None:
    model = Perceptron()
    assert isinstance(model, base.Classifier)
    assert isinstance(model, base.MiniBatchClassifier)
    assert not model._multiclass


def test_six_rows_end_where_hand_arithmetic_says() -> None:
    model = Perceptron(learning_rate=0.5, fit_intercept=False)
    for row, y in SIX_ROWS:
        model.learn_one({f"x{i}": float(v) for i, v in enumerate(row)}, y)
    assert [model.weights.get(f"x{i}", 0.0) for i in range(5)] == [0.0, 1.0, 0.0, -0.5, 0.5]
    assert model.intercept == 0.0
    assert model.accounting.updates == 4


@pytest.mark.parametrize(("y", "w"), [(True, 1.0), (False, -1.0)])
def test_a_tie_updates(y: bool, w: float) -> None:
    model = learned([({"a": 1}, y)])
    assert (model.weights["a"], model.intercept) == (w, w)
    assert counts(model) == (1, int(y), 1, 1.0)


@pytest.mark.parametrize(
    "y", [False, 0, 0.0, np.bool_(False), np.int64(0), -1, -1.0, np.int8(-1), np.float32(-1.0)]
)
def test_every_spelling_of_the_negative_label_takes_one_step(y: Any) -> None:
    model = learned([({"a": 1}, y)])
    assert (model.weights["a"], model.intercept) == (-1.0, -1.0)


@pytest.mark.parametrize(
    "y",
    [
        *(2, -2, 0.5, -0.5, 1.5, math.nan, math.inf, -math.inf, np.uint8(255), 1j, None),
        *("spam", "ham", "true", "0", "1", "-1", "+1", "1.5", "", b"1", [1], [-1], {}),
    ],
)
def test_other_labels_are_refused_by_name(y: Any) -> None:
    model = learned([({"a": 1}, True)])
    with pytest.raises(InvalidEvent) as refusal:
        model.learn_one({"a": 1}, y)
    assert refusal.value.field == "y"
    assert refusal.match(r"true or false \(or 1 or 0, or 1 or -1\), not .*: say whether it is the")
    assert refusal.match("or take a multiclass learner")
    assert model.weights == {"a": 1.0}
    assert counts(model) == (1, 1, 1, 1.0)


def test_the_intercept_moves_once_per_event() -> None:
    three = learned([({"a": 1, "b": 1, "c": 1}, True)])
    assert (dict(three.weights), three.intercept) == ({"a": 1.0, "b": 1.0, "c": 1.0}, 1.0)
    empty = learned([({}, True)])
    assert (dict(empty.weights), empty.intercept, empty.accounting.updates) == ({}, 1.0, 1)


def test_without_an_intercept_it_stays_at_zero() -> None:
    model = learned([({"a": 2.0}, True)], fit_intercept=False)
    assert (model.weights["a"], model.intercept) == (2.0, 0.0)


def test_the_step_is_rate_times_sample_weight() -> None:
    model = Perceptron(learning_rate=0.5)
    model.learn_one({"a": 3.0}, False, w=np.float32(0.25))  # type: ignore[arg-type]
    assert (model.weights["a"], model.intercept) == (-0.375, -0.125)
    assert type(model.intercept) is float


@pytest.mark.parametrize("w", [0, 0.0, -0.0, np.float64(0), False])
def test_weight_zero_moves_and_counts_nothing_but_the_event(w: Any) -> None:
    model = Perceptron()
    outcome = model.predict_learn_one({"a": 1}, True, w)
    assert outcome == (False, 0.0, False, False, 0.0)
    assert dict(model.weights) == {}
    assert counts(model) == (1, 0, 0, 0.0)


@pytest.mark.parametrize(
    "w", [-1, -5e-324, math.nan, math.inf, -math.inf, "1", b"1", None, 10**400, 1j, [1.0]]
)
def test_bad_sample_weights_are_refused(w: Any) -> None:
    model = Perceptron()
    with pytest.raises(InvalidEvent) as refusal:
        model.learn_one({"a": 1}, True, w)
    assert refusal.value.field == "w"
    assert counts(model) == (0, 0, 0, 0.0)


@pytest.mark.parametrize(
    "rate", [0, -1, math.nan, math.inf, "0.1", True, None, [1.0], 10**400, 1j, np.array([1.0, 2.0])]
)
def test_bad_learning_rates_are_refused_also_later(rate: Any) -> None:
    with pytest.raises(InvalidParameter, match="0 < learning_rate < inf"):
        Perceptron(learning_rate=rate)
    model = Perceptron()
    with pytest.raises(InvalidParameter, match="0 < learning_rate < inf"):
        model.mutate({"learning_rate": rate})
    assert model.learning_rate == 1.0


@pytest.mark.parametrize("flag", ["no", 1, 0, None])
def test_fit_intercept_must_be_a_truth_value(flag: Any) -> None:
    with pytest.raises(InvalidParameter, match="fit_intercept"):
        Perceptron(fit_intercept=flag)


def test_the_learning_rate_can_be_changed_on_the_way() -> None:
    model = learned([({"a": 1}, True)])
    model.mutate({"learning_rate": 0.25})
    model.learn_one({"a": 1}, False)
    assert (model.weights["a"], model.intercept) == (0.75, 0.75)


def test_outcome_describes_the_state_before_learning() -> None:
    model = Perceptron()
    assert model.predict_learn_one({"a": 2}, True) == (False, 0.0, True, True, 1.0)
    assert model.predict_learn_one({"a": 2}, True) == (True, 5.0, False, False, 0.0)
    assert model.predict_learn_one({"a": 1}, False) == (True, 3.0, True, True, 4.0)
    assert counts(model) == (3, 2, 2, 5.0)


def test_a_fresh_model_answers() -> None:
    model = Perceptron()
    assert model.predict_one({"a": 1}) is False
    assert model.predict_proba_one({"a": 1}) == {False: 0.5, True: 0.5}
    assert model.score_one({}) == 0.0


def test_electricity_counts(elec: list[Event]) -> None:
    model = learned(elec)
    assert model.accounting.events == 45_312
    assert model.accounting.mistakes == 6_461
    assert model.accounting.hinge_loss == pytest.approx(18_708.283, abs=5e-4)
    assert model.intercept == -5.0


def test_sms_counts(sms: list[Event]) -> None:
    model = learned(sms)
    assert model.accounting.events == 5_574
    assert model.accounting.mistakes == 219
    assert model.accounting.hinge_loss == 1_019.0
    assert len(model.weights) == 2_259
    assert model.intercept == -8.0


def random_rows(n: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(n, 8))
    y = X @ rng.normal(size=8) + rng.normal(scale=1.5, size=n) > 0.3
    return X, y


def test_equals_scikit_learn_weight_by_weight() -> None:
    X, y = random_rows(2_000)
    model = learned(
        (dict(enumerate(row)), bool(label))
        for row, label in zip(X.tolist(), y.tolist(), strict=True)
    )
    other = SklearnPerceptron(shuffle=False, penalty=None, max_iter=1, tol=None).fit(X, y)
    ours = [model.weights[i] for i in range(8)]
    assert np.max(np.abs(other.coef_[0] - ours)) <= 1e-12
    assert abs(other.intercept_[0] - model.intercept) <= 1e-12


def test_equals_river_weight_by_weight() -> None:
    X, y = random_rows(2_000)
    ours, theirs = Perceptron(), linear_model.Perceptron()
    for row, label in zip(X.tolist(), y.tolist(), strict=True):
        x: dict[Any, float] = dict(enumerate(row))
        assert ours.predict_one(x) == theirs.predict_one(x)
        ours.learn_one(x, label)
        theirs.learn_one(x, label)
    assert ours.weights.keys() == theirs.weights.keys()
    assert all(abs(ours.weights[i] - theirs.weights[i]) <= 1e-12 for i in ours.weights)
    assert abs(ours.intercept - theirs.intercept) <= 1e-12
