"""Nothing a learner holds or says is ever NaN or infinite, whatever finite numbers it is fed."""

from __future__ import annotations

import math
import pickle
import sys

import hypothesis.strategies as st
from hypothesis import given, settings

from hinged import Perceptron

HUGE = sys.float_info.max

values = st.one_of(
    st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 1e-200, 1e200, -1e200, HUGE, -HUGE, 1e154, 1.0]),
    st.floats(allow_nan=False, allow_infinity=False),
)
events = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from("abcd"), values, max_size=4),
        st.booleans(),
        st.sampled_from([1.0, 1.0, 0.0, 0.5, 5e-324, 1e300, HUGE]),
    ),
    max_size=30,
)
rates = st.sampled_from([1.0, 1e-300, 1e300, HUGE])


@settings(max_examples=200, deadline=None)
@given(events, rates)
def test_always_finite(stream: list[tuple[dict[str, float], bool, float]], rate: float) -> None:
    model = Perceptron(learning_rate=rate)
    for x, y, w in stream:
        before = pickle.dumps((dict(model.weights), model.intercept))
        overflows = model.accounting.overflows
        outcome = model.predict_learn_one(x, y, w)
        assert math.isfinite(outcome.score)
        assert math.isfinite(outcome.hinge_loss)
        assert all(map(math.isfinite, model.weights.values()))
        assert math.isfinite(model.intercept)
        assert math.isfinite(model.accounting.hinge_loss)
        assert all(0.0 <= p <= 1.0 for p in model.predict_proba_one(x).values())
        assert model.predict_one(x) is (model.score_one(x) > 0.0)
        if model.accounting.overflows > overflows:
            assert not outcome.updated
            assert pickle.dumps((dict(model.weights), model.intercept)) == before


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
    assert model.predict_proba_one({"a": -1e308}) == {False: 1.0, True: 0.0}
    outcome = model.predict_learn_one({"a": 1e308}, False, w=0.0)
    assert outcome.score == HUGE


def test_the_loss_sum_saturates() -> None:
    model = Perceptron(learning_rate=HUGE)
    model.learn_one({"a": 1.0}, True)
    for _ in range(3):
        outcome = model.predict_learn_one({"a": 1e300}, False, w=5e-324)
        assert outcome.hinge_loss == HUGE
    assert model.accounting.hinge_loss == HUGE
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
