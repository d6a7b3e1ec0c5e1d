"""MulticlassQuadratic: a multiclass learner of features and their squares, alone and in a hedge."""

import math
import pickle
import random
from typing import Any

import pytest

import hinged
from hinged import (
    MulticlassAROW,
    MulticlassAveragedPerceptron,
    MulticlassHedge,
    MulticlassLogisticSGD,
    MulticlassPerceptron,
    MulticlassQuadratic,
    OneVsRest,
)
from hinged.multiclass_hedge import _pools_before
from tests.core.test_quadratic import accuracy

Rows = list[tuple[dict[Any, float], str]]


def rings(n: int = 1_500) -> Rows:
    """Rows whose class is how far from the mean their value is."""
    r = random.Random(1)
    rows = []
    for _ in range(n):
        x = {"a": r.gauss(0.0, 1.0), "b": r.gauss(0.0, 1.0)}
        rows.append((x, "inner" if abs(x["a"]) < 0.5 else "outer" if abs(x["a"]) > 1.0 else "ring"))
    return rows


def test_by_hand() -> None:
    model = MulticlassQuadratic(MulticlassPerceptron(learning_rate=0.5))
    model.learn_one({"a": 3.0}, "A")  # without a rival nothing moves
    model.learn_one({"a": 3.0, "flag": 1.0}, "B")
    # at equal scores the perceptron moves by half of the features and of 3^2 - 1
    assert model.weights == {
        "A": {"a": -1.5, "flag": -0.5, "a²": -4.0},
        "B": {"a": 1.5, "flag": 0.5, "a²": 4.0},
    }
    assert model.intercepts == {"A": -0.5, "B": 0.5}
    # 1.5 (-2) + 0.5 + 4 (2^2 - 1) and the intercept
    assert model.scores_one({"a": -2.0, "flag": 1.0}) == {"A": -10.0, "B": 10.0}
    assert model.predict_one({"a": -2.0}) == "B"
    assert model.explain_one({"a": -2.0}) == {"a": -3.0, "a²": 12.0, hinged.INTERCEPT: 0.5}
    assert model.explain_one({"a": -2.0}, "A") == {"a": 3.0, "a²": -12.0, hinged.INTERCEPT: -0.5}


def test_the_default_by_hand() -> None:
    model = MulticlassQuadratic()
    model.learn_one({}, "A")
    model.learn_one({"a": 2.0}, "B")
    # beta = 1 / (2 (2^2 + 3^2 + 1) + 1), of both classes' variances of 1
    expected = {"a": 2 / 29, "a²": 3 / 29}
    assert model.weights["B"] == pytest.approx(expected, abs=1e-15)
    assert model.intercepts["A"] == pytest.approx(-1 / 29, abs=1e-15)


RULES: list[Any] = [
    MulticlassAROW(r=0.1),
    MulticlassAveragedPerceptron(max_features=3),
    MulticlassLogisticSGD(),
    OneVsRest(hinged.AROW()),
]


@pytest.mark.parametrize("rule", RULES)
def test_it_is_the_learner_of_features_and_squares(rule: Any) -> None:
    model, plain = MulticlassQuadratic(rule), rule.clone()
    for x, y in rings(200):
        seen = {**x, **{f"{name}²": value * value - 1.0 for name, value in x.items()}}
        assert model.predict_proba_one(x) == plain.predict_proba_one(seen)
        assert model.growth_bytes(x, y) == plain.growth_bytes(seen, y)
        w = 0.5 if y == "ring" else 1.0
        assert model.predict_learn_one(x, y, w) == plain.predict_learn_one(seen, y, w)
    assert model.weights == plain.weights
    assert (model.intercepts, model.classes) == (plain.intercepts, plain.classes)
    assert (model.accounting, model.clock) == (plain.accounting, plain.clock)
    assert model.stored_bytes() == plain.stored_bytes()
    assert rule.clock == 0


def test_a_missing_feature_has_no_square() -> None:
    for model in (MulticlassQuadratic(), MulticlassHedge()):
        for x, y in rings(50):
            model.learn_one(x, y)
        known = model.scores_one({"a": 0.5})
        for missing in (math.nan, None):
            assert model.scores_one({"a": 0.5, "b": missing}) == known


def test_a_flag_takes_no_room_for_a_square() -> None:
    model = MulticlassQuadratic(MulticlassPerceptron())
    model.learn_one({}, "A")
    assert model.growth_bytes({"a": 1.0}, "B") == 2 * (128 + len("a"))
    model.learn_one({"a": 1.0}, "B")
    assert model.stored_bytes() == 2 * (128 + len("a"))
    assert model.growth_bytes({"a": 1.0}, "A") == 0
    assert model.growth_bytes({"a": 0.5}, "A") == 2 * (128 + len("a²".encode()))


def test_it_learns_middle_values_which_no_linear_learner_does() -> None:
    assert accuracy(MulticlassAROW(), rings()) < 0.5
    assert accuracy(MulticlassQuadratic(), rings()) > 0.7
    assert accuracy(MulticlassHedge(), rings()) > 0.7


def test_an_overflowing_update_is_left_out() -> None:
    greedy = hinged.MulticlassPassiveAggressive(mode="uncapped")
    model = MulticlassHedge([MulticlassQuadratic(greedy), MulticlassQuadratic()])
    for number, value in enumerate((1e308, -1e308, 1e150, -1e200)):
        model.learn_one({"a": value, "b": 1e-200}, "AB"[number % 2])
        assert all(map(math.isfinite, model.scores_one({"a": value}).values()))


def test_its_classes_are_bounded_by_the_learner() -> None:
    model = MulticlassQuadratic(MulticlassPerceptron(max_classes=2))
    for y in "AB":
        model.learn_one({"a": 2.0}, y)
    for one in (model, MulticlassHedge([model])):
        for y in "AB":
            one.learn_one({"a": 2.0}, y)
        with pytest.raises(hinged.InvalidEvent, match="all 2 are taken"):
            one.learn_one({"a": 2.0}, "C")
    assert model.max_classes == 2


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_hedge_of_a_pool_before_goes_on_with_it(number: int) -> None:
    before = MulticlassHedge(_pools_before(1_000, None)[number])
    for x, y in rings(50):
        before.learn_one(x, y)
    again = MulticlassHedge()
    again.set_state(before.get_state())
    assert [type(one) for one in again.experts] == [type(one) for one in before.experts]
    for x, y in rings(20):
        assert again.predict_learn_one(x, y) == before.predict_learn_one(x, y)
    assert isinstance(MulticlassHedge().experts[-1], MulticlassQuadratic)


def test_a_hedge_of_named_experts_takes_no_other() -> None:
    before = MulticlassHedge(_pools_before(1_000, None)[0]).get_state()
    with pytest.raises(hinged.InvalidState):
        MulticlassHedge([MulticlassAROW()]).set_state(before)


@pytest.mark.parametrize("w", [0.0, 1.0])
def test_a_hedge_keeps_no_event(w: float) -> None:
    model = MulticlassHedge([MulticlassAROW(), MulticlassQuadratic()])
    model.learn_one({"seen": 2.0}, "A", w)  # without a rival nothing moves
    assert b"seen" not in pickle.dumps(model)


def test_auto_goes_on_with_the_pool_that_it_was_saved_with() -> None:
    before = hinged.Auto()
    before._many = MulticlassHedge(_pools_before(1_000, None)[0])
    for x, y in rings(50):
        before.learn_one(x, y)
    again = hinged.Auto()
    again.set_state(before.get_state())
    for x, y in rings(20):
        assert again.predict_learn_one(x, y) == before.predict_learn_one(x, y)


def test_only_a_multiclass_learner_with_weights_is_taken() -> None:
    for wrong in (MulticlassQuadratic(), MulticlassHedge(), hinged.Quadratic(), hinged.Auto(), 1):
        with pytest.raises(hinged.InvalidParameter, match="must be a multiclass learner"):
            MulticlassQuadratic(wrong)  # type: ignore[arg-type]
