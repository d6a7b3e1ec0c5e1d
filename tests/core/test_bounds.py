"""The mistake bounds hold for every stream, and their values agree with hand and scikit-learn."""

from __future__ import annotations

import math
import random
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from river import optim
from sklearn.svm import LinearSVC

from hinged import (
    AveragedPerceptron,
    InvalidEvent,
    InvalidParameter,
    PassiveAggressive,
    Perceptron,
    PocketPerceptron,
    bounds,
)

Rows = list[tuple[dict[str, float], bool]]
AND: Rows = [({"a": a, "b": b}, a == b == 1.0) for a in (0.0, 1.0) for b in (0.0, 1.0)]
SLACK = 1e-9

vectors = st.fixed_dictionaries({n: st.floats(-3, 3).map(lambda v: round(v, 2)) for n in "abc"})
noisy = st.lists(st.tuples(vectors, st.booleans()), min_size=1, max_size=40)


def updates(model: Any, rows: Rows) -> int:
    before: int = model.accounting.updates
    for x, y in rows:
        model.learn_one(x, y)
    after: int = model.accounting.updates
    return after - before


def test_and() -> None:
    assert bounds.separable(AND, {"a": 2.0, "b": 2.0}, -3.0) == 51.0
    assert bounds.hinge(AND, {"a": 2.0, "b": 2.0}, -3.0) == 51.0
    assert bounds.separable(AND, {"a": 1.0, "b": 1.0}, 0.0) == math.inf
    passes = AND * 9
    assert updates(Perceptron(), passes) == 18
    assert bounds.separable(passes, {"a": 2.0, "b": 2.0}, -3.0) == 51.0


@pytest.mark.parametrize("labels", [(-1, 1), (-1.0, 1.0), (0, 1), (np.int8(-1), np.int8(1))])
def test_labels_of_any_spelling_bound_alike(labels: tuple[Any, Any]) -> None:
    spelled: list[Any] = [(x, labels[y]) for x, y in AND]
    u, b = {"a": 2.0, "b": 2.0}, -3.0
    assert bounds.separable(spelled, u, b) == bounds.hinge(spelled, u, b) == 51.0
    for form in (bounds.sharp, bounds.best_multiple):
        assert form(spelled, u, b) == form(AND, u, b)
    assert bounds.minimiser(spelled) == bounds.minimiser(AND)
    assert bounds.general(Perceptron(), spelled, u, b) == 51.0
    with pytest.raises(InvalidEvent, match="y must be true or false"):
        bounds.hinge([({"a": 1.0}, 2)], u)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.05, 0.3, 1.0]), st.booleans())
def test_separable_streams_in_any_order(seed: int, gap: float, intercept: bool) -> None:
    draw = random.Random(seed)
    u = {n: draw.gauss(0, 1) for n in "abcd"}
    b = draw.gauss(0, 1) if intercept else 0.0
    rows: Rows = []
    while len(rows) < 60:
        x = {n: draw.uniform(-2, 2) for n in "abcd"}
        score = math.fsum(u[n] * v for n, v in x.items()) + b
        if abs(score) >= gap:
            rows.append((x, score > 0.0))
    model = Perceptron(fit_intercept=intercept)
    done = 0
    for _ in range(4):
        draw.shuffle(rows)
        done += updates(model, rows)
    assert done <= bounds.separable(rows, u, b, fit_intercept=intercept) + SLACK
    assert model.accounting.radius == pytest.approx(
        max(math.sqrt(sum(v * v for v in x.values()) + intercept) for x, _ in rows)
    )


@settings(max_examples=100, deadline=None)
@given(noisy, vectors, st.floats(-2, 2), st.booleans(), st.sampled_from(["tie", "mistake"]))
def test_every_form_holds_for_every_u(
    rows: Rows, u: dict[str, float], b: float, intercept: bool, update_on: str
) -> None:
    model = Perceptron(fit_intercept=intercept, update_on=update_on)
    moved = [row for row in rows if model.predict_learn_one(*row).updated]
    done = model.accounting.updates
    form: dict[str, Any] = {"fit_intercept": intercept}
    for events in (rows, moved):
        hinge = bounds.hinge(events, u, b, **form)
        assert done <= hinge + SLACK
        assert done <= bounds.sharp(events, u, b, **form) + SLACK
        assert bounds.sharp(events, u, b, **form) <= hinge + SLACK
        multiple = bounds.best_multiple(events, u, b, **form)
        assert done <= multiple.bound + SLACK
        assert multiple.bound <= hinge + SLACK
        least = bounds.minimiser(events, max_passes=300, **form)
        assert done <= least.bound + SLACK


@pytest.mark.parametrize("size", [1e-244, 1.0, 1e244])
def test_the_best_multiple_does_not_depend_on_the_size(size: float) -> None:
    best = bounds.best_multiple([({"a": 1.0}, True)], {"a": size}, fit_intercept=False)
    assert best.bound == pytest.approx(1.0)
    assert best.weights["a"] == pytest.approx(1.0)


@settings(max_examples=60, deadline=None)
@given(noisy, vectors, st.floats(-2, 2))
def test_no_multiple_is_better_than_the_best(rows: Rows, u: dict[str, float], b: float) -> None:
    best = bounds.best_multiple(rows, u, b)
    assert bounds.hinge(rows, best.weights, best.intercept) == pytest.approx(best.bound)
    for factor in [0.0, *np.geomspace(1e-3, 1e3, 40).tolist()]:
        scaled = {n: factor * v for n, v in u.items()}
        assert best.bound <= bounds.hinge(rows, scaled, factor * b) + 1e-7


@settings(max_examples=100, deadline=None)
@given(
    noisy,
    noisy,
    vectors,
    st.floats(-2, 2),
    st.sampled_from([0.1, 1.0, 3.0]),
    st.sampled_from([0.0, 0.5, 2.0]),
)
def test_windows_from_any_start(
    past: Rows, window: Rows, u: dict[str, float], b: float, eta: float, gamma: float
) -> None:
    model = Perceptron(eta, margin=gamma, initial_weights={"a": 1.0, "z": -2.0})
    updates(model, past)
    start = Perceptron(eta, margin=gamma)
    start.set_state(model.get_state())
    assert updates(model, window) <= bounds.general(start, window, u, b) + SLACK
    for kind in (AveragedPerceptron, PocketPerceptron):
        other, before = kind(eta), kind(eta)
        updates(other, past)
        before.set_state(other.get_state())
        assert updates(other, window) <= bounds.general(before, window, u, b) + SLACK


def test_the_general_form_from_zero_is_the_hinge_form() -> None:
    u = {"a": 0.5, "b": 0.25}
    assert bounds.general(Perceptron(0.3), AND, u, -0.5) == pytest.approx(
        bounds.hinge(AND, u, -0.5)
    )


@pytest.mark.parametrize("seed", range(4))
def test_the_minimiser_is_the_support_vector_machine(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, 4))
    y = X @ rng.normal(size=4) + rng.normal(scale=1.0, size=120) > 0.0
    rows: Rows = [
        (dict(zip("abcd", row, strict=True)), bool(label))
        for row, label in zip(X.tolist(), y, strict=True)
    ]
    augmented = np.column_stack([X, np.ones(120)])
    radius2 = float(np.max(np.sum(augmented**2, axis=1)))
    svm = LinearSVC(
        loss="hinge",
        C=1 / radius2,
        fit_intercept=False,
        tol=1e-8,
        max_iter=1_000_000,
        random_state=0,
    ).fit(augmented, y)
    margins = np.where(y, 1.0, -1.0) * (augmented @ svm.coef_[0])
    objective = svm.coef_[0] @ svm.coef_[0] / 2 + np.maximum(0, 1 - margins).sum() / radius2
    ours = bounds.minimiser(rows)
    assert ours.bound == pytest.approx(2 * radius2 * objective, rel=1e-6)
    assert [*(ours.weights[n] for n in "abcd"), ours.intercept] == pytest.approx(
        svm.coef_[0].tolist(), abs=1e-4
    )


@pytest.mark.parametrize("passes", range(3))
def test_a_search_that_is_left_early_gives_a_bound(passes: int) -> None:
    asked: list[int] = []

    def enough() -> bool:
        asked.append(1)
        return len(asked) > passes

    left = bounds.minimiser(AND, enough=enough)
    assert len(asked) == passes + 1
    assert left.bound == pytest.approx(bounds.hinge(AND, left.weights, left.intercept))
    assert left.bound >= bounds.minimiser(AND).bound * (1 - 1e-9)


def test_learners_without_a_bound_are_refused() -> None:
    for start in (PassiveAggressive(), Perceptron(optim.schedulers.InverseScaling(1.0))):
        with pytest.raises(InvalidParameter):
            bounds.general(start, AND, {})
    with pytest.raises(InvalidEvent, match="w must be 1"):
        bounds.hinge([({"a": 1.0}, True, 0.5)], {})
    assert bounds.hinge([], {"a": 1.0}) == 0.0
    assert bounds.general(Perceptron(), [], {"a": 1.0}) == 0.0
    assert bounds.minimiser([]).bound == 0.0
    assert bounds.best_multiple([], {"a": 1.0}).bound == 0.0


@pytest.mark.parametrize("kind", [Perceptron, AveragedPerceptron, PocketPerceptron])
def test_a_learner_that_ignored_features_is_refused(kind: Any) -> None:
    full = kind(max_features=1)
    updates(full, [({"a": 1.0}, True), ({"b": -3.0}, False)])
    assert full.accounting.ignored == 1
    restored = kind(max_features=1)
    restored.set_state(full.get_state())
    for start in (full, restored):
        with pytest.raises(InvalidParameter, match="ignored 1 features"):
            bounds.general(start, [({"a": 1.0}, True)], {"a": 1.0})


@pytest.mark.parametrize("kind", [Perceptron, AveragedPerceptron, PocketPerceptron])
def test_a_learner_without_room_for_the_window_is_refused(kind: Any) -> None:
    start = kind(fit_intercept=False, max_features=2)
    updates(start, [({"a": 1.0}, True)])
    assert bounds.general(start, [({"a": 1.0, "b": 1.0}, True)], {"a": 1.0}) >= 0.0
    window: Rows = [({"b": 1.0}, True), *[({"c": 1.0}, True)] * 9]
    with pytest.raises(InvalidParameter, match="room for 2 of 3 features"):
        bounds.general(start, window, {"a": 1.0, "b": 1.0, "c": 1.0})
    # Rightly so: "c" is never learned and ties for ever, beyond the bound with room for it.
    roomy = kind(fit_intercept=False)
    roomy.set_state(start.get_state())
    bound = bounds.general(roomy, window, {"a": 1.0, "b": 1.0, "c": 1.0})
    assert updates(roomy, window) <= bound < updates(start, window)


@pytest.mark.parametrize("kind", [Perceptron, AveragedPerceptron, PocketPerceptron])
def test_a_learner_whose_update_overflowed_is_refused(kind: Any) -> None:
    start = kind(1e300)
    assert updates(start, [({"a": 1e10}, True)]) == 0
    assert start.accounting.overflows == 1
    with pytest.raises(InvalidParameter, match="updates that overflowed"):
        bounds.general(start, [({"b": 1.0}, True)], {"b": 1.0})


def test_the_general_form_by_hand() -> None:
    rows: Rows = [({"a": 1.0}, True)]
    fresh = Perceptron(0.5, margin=1.0, fit_intercept=False)
    assert bounds.general(fresh, rows, {"a": 1.0}) == 5.0  # Q = 1 + 2 * 1 / 0.5
    begun = Perceptron(0.5, margin=1.0, fit_intercept=False, initial_weights={"a": 1.0})
    # Q is 5 again, and u - w / (eta Q) is 1 - 1 / 2.5
    assert bounds.general(begun, rows, {"a": 1.0}) == pytest.approx(1.8, abs=1e-12)
