"""Divergence: a step from a score beyond the floats is refused and counted, not learned from."""

from __future__ import annotations

import math
from typing import Any

import pytest

from hinged import (
    AROW,
    SCW,
    Hedge,
    LinearUnit,
    MulticlassAROW,
    MulticlassLogisticSGD,
    MulticlassPassiveAggressive,
    OneVsRest,
    PassiveAggressive,
    Perceptron,
)
from hinged.checks import plain_state


def diverging() -> LinearUnit:
    return LinearUnit(learning_rate=0.1, capped=False)


def test_a_diverging_unit_stops_at_the_last_score_that_is_finite() -> None:
    """Each step multiplies 1 - score by 1 - 0.1 (10^2 + 1) = -9.1; 9.1^323 is beyond the floats."""
    model = diverging()
    for number in range(1, 401):
        before = dict(model.weights), model.intercept
        finite = math.isfinite(10 * before[0].get("a", 0.0) + before[1])
        outcome = model.predict_learn_one({"a": 10}, True)
        assert outcome.updated is finite is (number <= 322)
        if not finite:
            assert (dict(model.weights), model.intercept) == before
    account = model.accounting
    assert (account.events, account.updates, account.overflows) == (400, 322, 78)
    assert model.predict_learn_one({"a": -1e-300}, True).updated, "a finite score is learned from"


def test_the_experts_of_a_hedge_refuse_and_the_others_go_on() -> None:
    model = Hedge([diverging(), Perceptron()])
    for _ in range(400):
        model.learn_one({"a": 10}, True)
    assert (model.accounting.overflows, model.accounting.updates) == (78, 322)
    assert model.experts[0].accounting.overflows == 78
    assert dict(model.experts[1].weights) == {"a": 10.0}


def test_the_classes_of_one_vs_rest_refuse_each_for_itself() -> None:
    model = OneVsRest(diverging())
    for number in range(400):
        model.learn_one({"a": 10}, "AB"[number % 2])
    members = [model.weights[label]["a"] for label in "AB"]
    assert all(map(math.isfinite, members))
    assert model.accounting.overflows >= 2 * 70
    before = {label: dict(model.weights[label]) for label in "AB"}
    assert not model.predict_learn_one({"a": 10}, "A").updated
    assert {label: dict(model.weights[label]) for label in "AB"} == before


LARGE = {"a": 1e150, "b": 1e-3}


@pytest.mark.parametrize(
    "model",
    [
        LinearUnit(fit_intercept=False),
        PassiveAggressive(1e300),
        PassiveAggressive(1e300, "II"),
        PassiveAggressive(mode="uncapped"),
        AROW(1e-300),
        AROW(1e-300, forgetting=0.5),
        SCW(1e300),
    ],
    ids=lambda m: f"{type(m).__name__}-{getattr(m, 'mode', '')}",
)
def test_no_binary_rule_takes_a_step_from_a_score_that_overflowed(model: Any) -> None:
    state = model.get_state()
    state["vectors"]["weights"].put({"a": 1e200})
    model = model.clone()
    model.set_state(state)
    before = plain_state(model)["vectors"]
    outcome = model.predict_learn_one(LARGE, False)
    assert (outcome.score, outcome.mistake) == (1.7976931348623157e308, True)
    assert not outcome.updated
    assert (model.accounting.updates, model.accounting.overflows) == (0, 1)
    assert plain_state(model)["vectors"] == before
    assert model.predict_learn_one({"b": 1.0}, False).updated, "others are learned as ever"


@pytest.mark.parametrize(
    "model",
    [
        MulticlassPassiveAggressive(1e300),
        MulticlassPassiveAggressive(1e300, "II"),
        MulticlassPassiveAggressive(mode="uncapped"),
        MulticlassAROW(1e-300),
        MulticlassLogisticSGD(1e300),
    ],
    ids=lambda m: f"{type(m).__name__}-{getattr(m, 'mode', '')}",
)
@pytest.mark.parametrize(
    "weights",
    [{"A": 1e200}, {"A": -1e200, "B": 1e200}, {"A": 1.5e158, "B": -1.5e158}],
    ids=["rival", "both", "difference"],
)
def test_no_multiclass_rule_takes_a_step_from_a_margin_that_overflowed(
    model: Any, weights: dict[str, float]
) -> None:
    model = model.clone()
    for label in ("A", "B"):
        model.learn_one({}, label, 1.0)
    state = model.get_state()
    for number, label in enumerate("AB"):
        state["vectors"][f"weights/{number}"].put({"a": weights.get(label, 0.0)})
    model.set_state(state)
    before, updates = plain_state(model)["vectors"], model.accounting.updates
    wrong = min("AB", key=lambda label: weights.get(label, 0.0))
    outcome = model.predict_learn_one(LARGE, wrong)
    assert (outcome.mistake, outcome.updated) == (True, False)
    assert (model.accounting.updates, model.accounting.overflows) == (updates, 1)
    assert plain_state(model)["vectors"] == before


def test_a_perceptron_needs_only_the_sign_of_a_score() -> None:
    model = Perceptron(initial_weights={"a": 1e308, "b": 1.0}, fit_intercept=False)
    outcome = model.predict_learn_one({"a": 10.0, "b": 2.0}, False)
    assert (outcome.updated, model.accounting.overflows) == (True, 0)
    assert model.weights["b"] == -1.0
