"""The linear unit with real targets."""

from __future__ import annotations

import json
import math
import pickle
import random
from typing import Any

import numpy as np
import pandas as pd
import pytest
from river import base, checks, datasets, evaluate, linear_model, metrics, optim, preprocessing
from sklearn.linear_model import SGDRegressor

from hinged import (
    INTERCEPT,
    InvalidEvent,
    InvalidParameter,
    InvalidState,
    LinearRegressionUnit,
    RandomWeights,
)
from hinged.checks import frame_makers

NAMES = ["a", "b", "c"]


def rows(count: int, seed: int = 5) -> list[tuple[dict[str, float], float]]:
    """Return noisy events of y = 3 a - 2 b + 5."""
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        x = {name: chance.gauss(0.0, 1.0) for name in NAMES}
        found.append((x, 3.0 * x["a"] - 2.0 * x["b"] + 5.0 + chance.gauss(0.0, 0.1)))
    return found


def learned(
    model: LinearRegressionUnit, events: list[tuple[dict[str, float], float]]
) -> LinearRegressionUnit:
    for x, y in events:
        model.learn_one(x, y)
    return model


def numbers(model: LinearRegressionUnit) -> dict[str, Any]:
    state = model.get_state()
    return {**state, "vectors": {n: dict(v.view()) for n, v in state["vectors"].items()}}


def test_the_textbook_step() -> None:
    model = LinearRegressionUnit(0.1, capped=False)
    outcome = model.predict_learn_one({"a": 2.0}, 10.0)
    assert outcome == (0.0, 10.0, True)
    # step 0.1 * 10 = 1
    assert (model.weights["a"], model.intercept) == (2.0, 1.0)
    outcome = model.predict_learn_one({"a": 1.0}, -1.0)
    assert outcome == (3.0, -4.0, True)
    assert (model.weights["a"], model.intercept) == pytest.approx((1.6, 0.6), abs=1e-15)
    account = model.accounting
    assert (account.events, account.updates) == (2, 2)
    assert (account.squared_loss, account.absolute_loss) == (50.0 + 8.0, 14.0)
    assert model.explain_one({"a": 2.0}) == pytest.approx({"a": 3.2, INTERCEPT: 0.6}, abs=1e-15)


def test_the_cap_meets_the_target() -> None:
    model = learned(LinearRegressionUnit(5.0), [({"a": 3.0, "b": 4.0}, 13.0)])
    assert model.predict_one({"a": 3.0, "b": 4.0}) == pytest.approx(13.0, abs=1e-14)
    assert dict(model.weights) == pytest.approx({"a": 1.5, "b": 2.0}, abs=1e-15)
    assert model.intercept == 0.5


def test_sample_weights_scale_the_rate_and_weight_zero_moves_nothing() -> None:
    one, other = LinearRegressionUnit(0.01), LinearRegressionUnit(0.02)
    one.learn_one({"a": 1.0}, 3.0, 2.0)
    other.learn_one({"a": 1.0}, 3.0)
    assert dict(one.weights) == dict(other.weights)
    assert one.predict_learn_one({"a": 1.0}, 100.0, 0.0).updated is False
    assert dict(one.weights) == dict(other.weights)
    assert (one.clock, one.accounting.events) == (1, 2)


def test_it_is_the_sgd_of_scikit_learn() -> None:
    events = rows(300)
    model = learned(LinearRegressionUnit(0.02, capped=False), events)
    other = SGDRegressor(
        penalty=None, learning_rate="constant", eta0=0.02, max_iter=1, tol=None, shuffle=False
    )
    other.fit(np.array([[x[n] for n in NAMES] for x, _ in events]), [y for _, y in events])
    assert [model.weights[n] for n in NAMES] == pytest.approx(other.coef_.tolist(), abs=1e-12)
    assert model.intercept == pytest.approx(float(other.intercept_[0]), abs=1e-12)


def test_it_is_the_linear_regression_of_river() -> None:
    # River's gradient of the squared error has a factor of 2, and its intercept a rate of its own.
    theirs: Any = linear_model.LinearRegression(optimizer=optim.SGD(0.01), intercept_lr=0.01)
    model = LinearRegressionUnit(0.02, capped=False)
    for x, y in rows(200):
        assert model.predict_one(x) == pytest.approx(theirs.predict_one(x), abs=1e-10)
        model.learn_one(x, y)
        theirs.learn_one(x, y)
    assert dict(model.weights) == pytest.approx(theirs.weights, abs=1e-10)
    assert model.intercept == pytest.approx(theirs.intercept, abs=1e-10)


def test_it_finds_least_squares() -> None:
    model = learned(LinearRegressionUnit(optim.schedulers.InverseScaling(0.5, 0.7)), rows(20_000))
    assert model.weights == pytest.approx({"a": 3.0, "b": -2.0, "c": 0.0}, abs=0.02)
    assert model.intercept == pytest.approx(5.0, abs=0.02)


def test_it_predicts_in_a_pipeline_of_rivers() -> None:
    trump: Any = datasets.TrumpApproval
    mae: Any = metrics.MAE
    found = [
        evaluate.progressive_val_score(trump(), preprocessing.StandardScaler() | last, mae()).get()
        for last in (LinearRegressionUnit(), linear_model.LinearRegression())
    ]
    assert found[0] < found[1]


@pytest.mark.parametrize(
    "model",
    [
        LinearRegressionUnit(),
        LinearRegressionUnit(0.01, capped=False, fit_intercept=False),
        LinearRegressionUnit(initial_weights=RandomWeights(1), initial_intercept=1.0),
    ],
)
def test_rivers_checks(model: LinearRegressionUnit) -> None:
    assert isinstance(model, base.Regressor)
    ran = 0
    for check in checks.yield_checks(model):
        check(model.clone())
        ran += 1
    assert ran > 20


@pytest.mark.parametrize(
    "model",
    [
        LinearRegressionUnit(),
        LinearRegressionUnit(initial_weights=RandomWeights(1), max_features=2),
        LinearRegressionUnit(initial_weights={"a": 1.0}),
    ],
)
def test_it_goes_on_from_a_saved_state_bit_for_bit(model: LinearRegressionUnit) -> None:
    learned(model, rows(50))
    other = model.clone()
    other.set_state(json.loads(json.dumps(numbers(model))))
    copied = pickle.loads(pickle.dumps(model))
    for x, y in rows(50, seed=6):
        outcome = model.predict_learn_one(x, y)
        assert other.predict_learn_one(x, y) == outcome == copied.predict_learn_one(x, y)
    assert numbers(other) == numbers(model) == numbers(copied)
    good = numbers(model)
    scalars = good["scalars"]
    for bad in (
        None,
        {**good, "type": "LinearUnit"},
        {**good, "vectors": {}},
        {**good, "vectors": {"weights": {"a": math.nan}}},
        {**good, "scalars": {**scalars, "clock": -1}},
        {**good, "scalars": {n: v for n, v in scalars.items() if n != "squared_loss"}},
    ):
        with pytest.raises(InvalidState):
            model.set_state(bad)  # type: ignore[arg-type]
    assert numbers(model) == good


def test_frames_are_learned_as_their_rows() -> None:
    events = rows(40)
    one = learned(LinearRegressionUnit(), events)
    for frame, series in frame_makers().values():
        many = LinearRegressionUnit()
        X = frame({n: [x[n] for x, _ in events] for n in NAMES})
        many.learn_many(X, series([y for _, y in events]))
        assert numbers(many) == numbers(one)
        assert list(many.predict_many(X).to_numpy()) == [one.predict_one(x) for x, _ in events]
        with pytest.raises(InvalidEvent, match="row 1: y"):
            many.learn_many(frame({"a": [1.0, 2.0]}), series([1.0, math.nan]))
        assert numbers(many) == numbers(one)
    X = pd.DataFrame({"a": [1.0, 2.0]}, index=[7, 9])
    found = one.predict_many(X)
    assert (list(found.index), found.dtype) == ([7, 9], float)


@pytest.mark.parametrize(
    ("x", "y", "w", "field"),
    [
        ({"a": "red"}, 1.0, 1.0, "x['a']"),
        ({"a": math.inf}, 1.0, 1.0, "x['a']"),
        ({"a": 1.0}, None, 1.0, "y"),
        ({"a": 1.0}, "3", 1.0, "y"),
        ({"a": 1.0}, math.nan, 1.0, "y"),
        ({"a": 1.0}, 10**400, 1.0, "y"),
        ({"a": 1.0}, 1.0, -1.0, "w"),
    ],
)
def test_bad_events_are_refused(x: Any, y: Any, w: Any, field: str) -> None:
    model = learned(LinearRegressionUnit(), rows(5))
    before = numbers(model)
    with pytest.raises(InvalidEvent) as refusal:
        model.learn_one(x, y, w)
    assert refusal.value.field == field
    assert numbers(model) == before


def test_missing_is_absent() -> None:
    one, other = LinearRegressionUnit(), LinearRegressionUnit()
    one.learn_one({"a": 1.0, "b": math.nan, "c": None}, 2.0)
    other.learn_one({"a": 1.0}, 2.0)
    assert numbers(one) == numbers(other)
    assert one.predict_one({"a": None}) == one.intercept


@pytest.mark.parametrize("capped", [True, False])
def test_it_stays_finite(capped: bool) -> None:
    chance = random.Random(3)
    values = [0.0, 5e-324, 1e200, -1e200, 1.7e308, -1.7e308, 1e154, 1.0]
    model = LinearRegressionUnit(1.0, capped=capped)
    for _ in range(500):
        x = {name: chance.choice(values) for name in NAMES}
        outcome = model.predict_learn_one(x, chance.choice(values), chance.choice([1.0, 1e300]))
        assert math.isfinite(outcome.y_pred)
        assert math.isfinite(outcome.error)
        state = numbers(model)
        assert all(map(math.isfinite, state["scalars"].values()))
        assert all(map(math.isfinite, state["vectors"]["weights"].values()))
    assert model.accounting.overflows > 0


def test_a_full_one_goes_on_with_the_names_it_has() -> None:
    model = learned(LinearRegressionUnit(max_features=1), [({"a": 1.0}, 1.0), ({"b": 1.0}, 1.0)])
    assert list(model.weights) == ["a"]
    assert model.accounting.ignored == 1


@pytest.mark.parametrize(
    "params",
    [
        {"learning_rate": 0.0},
        {"capped": 1},
        {"max_features": 0},
        {"initial_intercept": 1.0, "fit_intercept": False},
        {"initial_weights": {"a": math.nan}},
    ],
)
def test_refuses(params: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        LinearRegressionUnit(**params)


def test_a_new_rate_may_be_set() -> None:
    model = LinearRegressionUnit(0.1)
    model.mutate({"learning_rate": 0.2})
    assert model.learning_rate == 0.2
