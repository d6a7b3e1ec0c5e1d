"""Batch descent: to the least squares, and to the largest margin."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from sklearn.svm import SVC

from hinged import (
    HingeSGD,
    InvalidParameter,
    training,
)

POINTS = [({"x": 1.0}, 2.0), ({"x": 2.0}, 1.0), ({"x": 3.0}, 4.0), ({"x": 4.0}, 3.0)]


def test_batch_descent_on_four_points() -> None:
    steps: list[int] = []
    line = training.batch_gradient_descent(
        POINTS, tolerance=1e-12, progress=lambda number, loss: steps.append(number)
    )
    assert line.weights["x"] == pytest.approx(3 / 5, abs=1e-10)
    assert line.intercept == pytest.approx(1.0, abs=1e-10)
    assert line.converged
    assert steps == list(range(1, len(line.losses)))
    assert len(steps) < 20
    # residuals 0.4, -1.2, 1.2, -0.4: their squares sum to 3.2
    assert line.losses[-1] == pytest.approx(3.2 / 8, abs=1e-10)
    assert line.sums[-1] == pytest.approx(3.2 / 2, abs=1e-10)
    # at the start all outputs are 0: 4 + 1 + 16 + 9 = 30
    assert (line.losses[0], line.sums[0]) == (30 / 8, 30 / 2)
    early = training.batch_gradient_descent(POINTS, tolerance=1e-2)
    assert early.converged
    assert len(early.losses) < len(line.losses)
    short = training.batch_gradient_descent(POINTS, epochs=2)
    assert (short.converged, len(short.losses)) == (False, 3)


@pytest.mark.parametrize("xs", [range(11), range(-10, 11), range(101), range(5, 15)], ids=str)
def test_batch_descent_finds_the_square(xs: range) -> None:
    rows = [({"x": float(x), "x2": float(x * x)}, float(x * x)) for x in xs]
    fit = training.batch_gradient_descent(rows)
    assert fit.converged
    assert fit.weights == pytest.approx({"x": 0.0, "x2": 1.0}, abs=1e-7)
    assert fit.intercept == pytest.approx(0.0, abs=1e-7)
    assert len(fit.losses) < 200
    rounding = 1e-12 * fit.losses[0]
    assert all(b <= a + rounding for a, b in itertools.pairwise(fit.losses))
    largest = np.linalg.svd(np.array([[x, x * x, 1.0] for x in xs]))[1][0] ** 2
    constant = training.batch_gradient_descent(rows, learning_rate=1.0 / float(largest))
    assert not constant.converged
    assert len(constant.losses) == 1_001


def test_batch_descent_of_the_line_through_a_parabola() -> None:
    # x^2 on 0..10 without x^2: slope 10 (the sum of the ends), through (5, 35), the means
    fit = training.batch_gradient_descent([({"x": float(x)}, float(x * x)) for x in range(11)])
    assert fit.converged
    assert (fit.weights["x"], fit.intercept) == pytest.approx((10.0, -15.0), abs=1e-7)


def test_batch_descent_of_columns_that_depend_on_each_other() -> None:
    rows = [({"a": a, "b": 2.0 * a}, 5.0 * a) for a in (1.0, 2.0, 3.0)]
    fit = training.batch_gradient_descent([*rows, ({"c": 0.0}, 0.0)], fit_intercept=False)
    assert fit.converged
    assert fit.weights["a"] + 2.0 * fit.weights["b"] == pytest.approx(5.0, abs=1e-9)
    assert fit.weights["c"] == 0.0
    huge = training.batch_gradient_descent([({"a": 1e200}, 2.0), ({"b": 1e-160}, 3.0)])
    assert all(map(math.isfinite, [*huge.weights.values(), huge.intercept, *huge.losses]))
    assert training.batch_gradient_descent([]) == ({}, 0.0, [], [], True)


def test_batch_descent_converges_up_to_two_over_the_largest_eigenvalue() -> None:
    X = np.array([[x["x"], 1.0] for x, _ in POINTS])
    limit = 2.0 / float(np.linalg.eigvalsh(X.T @ X)[-1])
    line = training.batch_gradient_descent(POINTS, learning_rate=0.95 * limit, epochs=5_000)
    assert line.converged
    assert line.weights["x"] == pytest.approx(3 / 5, abs=1e-8)
    with pytest.raises(InvalidParameter, match="learning_rate"):
        training.batch_gradient_descent(POINTS, learning_rate=1.01 * limit)
    with pytest.raises(ValueError, match="finite"):
        training.batch_gradient_descent([({"x": 1.0}, math.nan)])
    through_zero = training.batch_gradient_descent(POINTS, epochs=200, fit_intercept=False)
    # sum of xy over sum of xx
    assert through_zero.weights["x"] == pytest.approx(28 / 30, abs=1e-10)
    assert through_zero.intercept == 0.0


def test_hinge_descent_approaches_the_largest_margin() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 2))
    side = X @ np.array([1.0, 0.5])
    X, side = X[np.abs(side) > 0.4], side[np.abs(side) > 0.4]
    y = side > 0.0
    svm = SVC(kernel="linear", C=1e6).fit(X, y)
    best = 1.0 / np.linalg.norm(svm.coef_[0])
    rows = [({"a": a, "b": b}, bool(t)) for (a, b), t in zip(X.tolist(), y, strict=True)]
    model = HingeSGD(steps="pegasos", l2=1e-3)
    training.fit(model, rows, epochs=300, order="shuffled", stop_without_mistakes=False)
    norm = math.hypot(*model.weights.values())
    margin = min((1 if t else -1) * model.score_one(x) / norm for x, t in rows)
    assert margin >= 0.9 * best
    assert margin <= best + 1e-9
