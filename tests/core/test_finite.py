"""No number of a learner is ever NaN or infinite, for any finite numbers that it is fed."""

from __future__ import annotations

import math
import sys
from decimal import Decimal
from fractions import Fraction
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from river.optim.schedulers import InverseScaling

from hinged import (
    HingeSGD,
    InvalidEvent,
    LinearClassifier,
    MulticlassPassiveAggressive,
    MulticlassPocketPerceptron,
    PassiveAggressive,
    Perceptron,
    PocketPerceptron,
)
from hinged.checks import assert_finite, check_finite

HUGE = sys.float_info.max

values = st.one_of(
    st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 1e-200, 1e200, -1e200, HUGE, -HUGE, 1e154, 1.0]),
    st.floats(allow_nan=False, allow_infinity=False),
)
events = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from("abcd"), values, max_size=4),
        st.integers(0, 2),
        st.sampled_from([1.0, 1.0, 0.0, 0.5, 5e-324, 1e300, HUGE]),
    ),
    max_size=20,
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(stream=events)
def test_always_finite(
    learner: LinearClassifier, stream: list[tuple[dict[str, float], int, float]]
) -> None:
    check_finite(learner.clone(), stream)


@pytest.mark.parametrize("pocket", [PocketPerceptron(), MulticlassPocketPerceptron()])
def test_the_pocket_takes_weights_whose_run_an_overflowing_event_ends(
    pocket: LinearClassifier,
) -> None:
    good = [({"a": 1.0}, 1, 1.0), ({"a": 1.0}, 0, 1.0), ({"a": 1.0}, 0, 1.0), ({"a": 1.0}, 0, 1.0)]
    check_finite(pocket, [*good, ({"a": 1e200}, 1, 1e300)])
    assert pocket.accounting.overflows == 1


def test_an_overflowing_update_is_left_out_whole_and_counted() -> None:
    model = Perceptron()
    model.learn_one({"a": 1.5e308}, True)
    model.learn_one({"a": -1.5e308, "b": 1.0}, True)
    assert dict(model.weights) == {"a": 0.0, "b": 1.0}
    model = Perceptron(fit_intercept=False)
    model.learn_one({"a": 1.5e308}, True)
    model.learn_one({"b": 1.5e308}, False)
    model.learn_one({"a": 1.5e308, "b": 1.5e308, "c": 1.0}, False, w=2.0)
    assert dict(model.weights) == {"a": 1.5e308, "b": -1.5e308}
    assert model.accounting.overflows == 1
    assert model.accounting.updates == 2


def test_scores_saturate_with_the_right_sign() -> None:
    model = Perceptron()
    model.learn_one({"a": 1e308}, True)
    assert model.score_one({"a": 1e308}) == HUGE
    assert model.score_one({"a": -1e308}) == -HUGE
    least = sys.float_info.min
    assert model.predict_proba_one({"a": -1e308}) == {False: 1.0 - 2.0**-53, True: least}
    assert model.predict_proba_one({"a": 1e308}) == {False: least, True: 1.0 - 2.0**-53}
    outcome = model.predict_learn_one({"a": 1e308}, False, w=0.0)
    assert outcome.score == HUGE


def test_the_loss_sum_saturates() -> None:
    model = Perceptron(learning_rate=HUGE)
    model.learn_one({"a": 1.0}, True)
    for _ in range(3):
        outcome = model.predict_learn_one({"a": 1e300}, False, w=5e-324)
        assert outcome.hinge_loss == HUGE
    assert model.accounting.hinge_loss == HUGE
    assert model.accounting.perceptron_loss == HUGE
    assert model.accounting.mistakes == 4


def test_opposite_halves_of_a_huge_sum_cancel() -> None:
    model = Perceptron(fit_intercept=False)
    model.learn_one({"a": 1e200, "b": 1e200}, True)
    assert model.score_one({"a": 1e200, "b": -1e200}) == 0.0


def test_an_empty_event_after_a_huge_one_is_learned() -> None:
    model = Perceptron()
    model.learn_one({"a": HUGE}, True)
    model.learn_one({}, False)
    assert (dict(model.weights), model.intercept) == ({"a": HUGE}, 0.0)
    assert model.accounting.overflows == 0


def test_a_step_from_an_infinite_norm_is_none() -> None:
    model = PassiveAggressive()
    model.learn_one({"a": HUGE, "b": HUGE}, True)
    assert dict(model.weights) == {}
    assert model.accounting.radius == HUGE


def test_an_infinite_cap_divides_by_no_zero() -> None:
    model = PassiveAggressive(1e300, "II", fit_intercept=False)
    model.learn_one({}, True, 1e100)
    many = MulticlassPassiveAggressive(1e300, "II", fit_intercept=False)
    for y in ("A", "B"):
        many.learn_one({"a": 0.0}, y, 1e100)
    assert model.accounting.updates == many.accounting.updates == 0


def test_a_rate_fallen_below_every_float_moves_nothing() -> None:
    falling = InverseScaling(1.0, 2000.0)  # 2 ** 2000 is more than a float can hold
    for model in (Perceptron(falling), HingeSGD(falling, "constant", l1=0.1, l2=0.1)):
        model.learn_one({"a": 1.0}, True)
        before = dict(model.weights)
        model.learn_one({"a": 1.0}, False)
        assert dict(model.weights) == before != {}
        assert model.accounting.overflows == 1
        assert_finite(model, {"a": 1.0})


def test_a_step_of_pegasos_beyond_every_float_is_left_out() -> None:
    model = HingeSGD(steps="pegasos", l2=5e-324)
    model.learn_one({"a": 1.0}, True)
    assert (dict(model.weights), model.accounting.overflows) == ({}, 1)
    assert_finite(model, {"a": 1.0})


@pytest.mark.parametrize(
    "value",
    [
        *(1, True, 10**400, -(10**400), Fraction(1, 3), Decimal("0.5"), np.float64(0.5)),
        *(np.float32(0.5), np.int64(3), np.bool_(True), np.array([0.5]), np.array([1.0, 2.0])),
        *(1j, "1", b"1", None, [1.0], math.nan, math.inf),
    ],
    ids=repr,
)
@pytest.mark.parametrize("l1", [0.0, 0.01])
def test_a_penalised_learner_takes_the_numbers_that_all_take(value: Any, l1: float) -> None:
    """One that keeps its weights without the penalties scores them by a loop of its own."""

    def taught(model: HingeSGD) -> tuple[str, str]:
        said = []
        for x in ({"a": value}, {"a": 1.0}, {"a": value, "b": 2.0}, {"b": 1.0, "a": value}):
            try:
                model.learn_one(x, True)
                said.append(f"{type(model.score_one(x)).__name__} {model.predict_one(x)}")
            except InvalidEvent as error:
                said.append(f"{error.field} {error.reason}")
        return "; ".join(said), str({type(weight) for weight in model.weights.values()})

    # too small a penalty to change a label
    penalised = HingeSGD(0.1, "constant", l2=1e-9, l1=l1 * 1e-9)
    assert taught(penalised) == taught(HingeSGD(0.1, "constant"))
