"""Weight by weight against scikit-learn's and River's implementations, one pass in order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from river import linear_model, optim
from sklearn.linear_model import SGDClassifier

from hinged import AveragedPerceptron, HingeSGD, LinearUnit, PassiveAggressive, Perceptron, training

Array = np.ndarray[Any, Any]
ONE_PASS: dict[str, Any] = {"shuffle": False, "max_iter": 1, "tol": None}
NAMES = [f"x{i}" for i in range(6)]


@pytest.fixture(scope="module", params=[1, 2, 3])
def rows(request: pytest.FixtureRequest) -> tuple[Array, Array]:
    rng = np.random.default_rng(request.param)
    X = rng.normal(size=(1_500, 6))
    y = X @ rng.normal(size=6) + rng.normal(scale=1.0, size=1_500) > 0.2
    return X, y


def learned(model: Any, X: Array, y: Array) -> Array:
    for row, label in zip(X.tolist(), y.tolist(), strict=True):
        model.learn_one(dict(zip(NAMES, row, strict=False)), label)
    return np.array([*(model.weights[n] for n in NAMES), model.score_one({})])


def fitted(model: Any, X: Array, y: Array) -> Array:
    model.fit(X, y)
    return np.append(model.coef_[0], model.intercept_[0])


def close(ours: Array, theirs: Array) -> None:
    assert np.max(np.abs(ours - theirs)) <= 1e-12


def test_averaged_perceptron(rows: tuple[Array, Array]) -> None:
    other = SGDClassifier(
        loss="perceptron", penalty=None, learning_rate="constant", eta0=1, average=True, **ONE_PASS
    )
    close(learned(AveragedPerceptron(), *rows), fitted(other, *rows))


@pytest.mark.parametrize(
    ("steps", "eta", "l2", "theirs"),
    [
        ("constant", 0.05, 0.01, {"learning_rate": "constant", "eta0": 0.05}),
        ("constant", 0.05, 0.5, {"learning_rate": "constant", "eta0": 0.05}),
        ("sqrt", 0.5, 0.01, {"learning_rate": "invscaling", "eta0": 0.5, "power_t": 0.5}),
        ("pegasos", 0.3, 0.1, {"learning_rate": "invscaling", "eta0": 10.0, "power_t": 1.0}),
    ],
)
def test_hinge_with_l2(
    rows: tuple[Array, Array], steps: str, eta: float, l2: float, theirs: dict[str, Any]
) -> None:
    other = SGDClassifier(loss="hinge", penalty="l2", alpha=l2, **theirs, **ONE_PASS)
    close(learned(HingeSGD(eta, steps, l2=l2, project=False), *rows), fitted(other, *rows))


@pytest.mark.parametrize(("mode", "rate"), [("I", "pa1"), ("II", "pa2")])
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_passive_aggressive(rows: tuple[Array, Array], mode: str, rate: str, C: float) -> None:
    X, y = rows
    other = SGDClassifier(
        loss="hinge", penalty=None, learning_rate=rate, eta0=C, fit_intercept=False, **ONE_PASS
    )
    other.fit(np.column_stack([X, np.ones(len(X))]), y)
    close(learned(PassiveAggressive(C, mode), X, y), other.coef_[0])


def both(ours: Any, theirs: Any, rows: tuple[Array, Array], constant: bool) -> None:
    for row, label in zip(rows[0].tolist(), rows[1].tolist(), strict=True):
        x = dict(zip(NAMES, row, strict=False))
        theirs.learn_one({**x, "one": 1.0} if constant else x, label)
        ours.learn_one(x, label)
    intercept = theirs.weights["one"] if constant else theirs.intercept
    assert ours.intercept == pytest.approx(intercept, abs=1e-12)
    for name in NAMES:
        assert ours.weights[name] == pytest.approx(theirs.weights[name], abs=1e-12)


@pytest.mark.parametrize(("mode", "theirs"), [("uncapped", 0), ("I", 1), ("II", 2)])
def test_rivers_passive_aggressive(rows: tuple[Array, Array], mode: str, theirs: int) -> None:
    other: Any = linear_model.PAClassifier  # untyped in River
    both(PassiveAggressive(0.5, mode), other(0.5, theirs, learn_intercept=False), rows, True)


def test_rivers_perceptron(rows: tuple[Array, Array]) -> None:
    both(Perceptron(), linear_model.Perceptron(), rows, False)


@pytest.mark.parametrize("l2", [0.0, 0.05])
def test_rivers_hinge_descent(rows: tuple[Array, Array], l2: float) -> None:
    other = linear_model.LogisticRegression(
        optim.SGD(0.1), loss=optim.losses.Hinge(), l2=l2, intercept_lr=0.1
    )
    both(HingeSGD(0.1, "constant", l2=l2), other, rows, False)


def test_the_linear_unit_meets_least_squares(rows: tuple[Array, Array]) -> None:
    X, y = rows
    targets = np.where(y, 1.0, -1.0)
    exact = np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), targets, rcond=None)[0]
    data = [
        (dict(zip(NAMES, row, strict=False)), t) for row, t in zip(X.tolist(), targets, strict=True)
    ]
    batch = training.batch_gradient_descent(data, epochs=500)
    found = np.array([*(batch.weights[n] for n in NAMES), batch.intercept])
    assert np.max(np.abs(found - exact)) <= 1e-9
    assert batch.losses[-1] <= batch.losses[0]
    unit = LinearUnit(optim.schedulers.InverseScaling(0.2, 0.6), capped=False)
    for _ in range(20):
        online = learned(unit, X, y)
    assert np.max(np.abs(online - exact)) <= 0.02
