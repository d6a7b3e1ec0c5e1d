"""Quadratic: a learner of features and their squares, alone and in a hedge."""

import math
import random
from typing import Any

import pytest

import hinged
from hinged import AROW, SCW, Hedge, LinearUnit, Perceptron, Quadratic
from hinged.kernel import pure, with_squares

Rows = list[tuple[dict[Any, float], bool]]


def middle(n: int = 1_500) -> Rows:
    """Rows whose label is true for values near the mean."""
    r = random.Random(1)
    rows = []
    for _ in range(n):
        x = {"a": r.gauss(0.0, 1.0), "b": r.gauss(0.0, 1.0)}
        rows.append((x, abs(x["a"]) < 0.7))
    return rows


def accuracy(model: Any, rows: Any) -> float:
    right = 0
    for x, y in rows:
        right += model.predict_one(x) == y
        model.learn_one(x, y)
    return right / len(rows)


def test_by_hand() -> None:
    model = Quadratic(Perceptron(learning_rate=0.5))
    model.learn_one({"a": 3.0, "flag": 1.0}, True)
    # at score 0 the perceptron adds half of the features and of 3^2 - 1
    assert dict(model.weights) == {"a": 1.5, "flag": 0.5, "a²": 4.0}
    # 1.5 (-2) + 0.5 + 4 (2^2 - 1) and the intercept
    assert model.score_one({"a": -2.0, "flag": 1.0}) == -3.0 + 0.5 + 12.0 + 0.5
    assert model.explain_one({"a": -2.0}) == {"a": -3.0, "a²": 12.0, hinged.INTERCEPT: 0.5}


EVENTS: list[tuple[dict[Any, Any], dict[Any, float]]] = [
    ({}, {}),
    ({"zero": -0.0, "one": 1.0, "true": True}, {}),
    ({"a": 0.5, "b": 3}, {"a²": -0.75, "b²": 8.0}),
    ({"a": 2.0, "a²": 5.0}, {"a²²": 24.0}),
    ({7: 2.0, "7": 3.0}, {"7²": 3.0}),
    ({("a", 1): -2.0}, {"('a', 1)²": 3.0}),
    ({"a": 1e308, "b": -1e200}, {"a²": 1e150**2, "b²": 1e150**2}),
    ({"a": 5e-324}, {"a²": -1.0}),
    ({"a": 10**300}, {"a²": 1e150**2}),
]


@pytest.mark.parametrize(("x", "squares"), EVENTS)
def test_squares_come_behind_the_features(x: dict[Any, Any], squares: dict[Any, float]) -> None:
    for made in (with_squares(x), pure.with_squares(x)):
        assert list(made.items()) == [*x.items(), *squares.items()]
        assert all(map(math.isfinite, made.values()))


def test_a_missing_feature_has_no_square() -> None:
    for model in (Quadratic(), Hedge()):
        for x, y in middle(50):
            model.learn_one(x, y)
        assert model.score_one({"a": 0.5, "b": math.nan}) == model.score_one({"a": 0.5})
    for made in (with_squares({"a": math.nan}), pure.with_squares({"a": math.nan})):
        assert list(made) == ["a", "a²"]
        assert math.isnan(made["a²"])


def test_names_may_be_many() -> None:
    for i in range(25_000):
        assert list(with_squares({f"f{i}": 2.0})) == [f"f{i}", f"f{i}²"]


@pytest.mark.parametrize("rule", [LinearUnit(), AROW(r=0.1), SCW(max_features=3)])
def test_it_is_the_learner_of_features_and_squares(rule: Any) -> None:
    model, plain = Quadratic(rule), rule.clone()
    for x, y in middle(200):
        seen = {**x, **{f"{name}²": value * value - 1.0 for name, value in x.items()}}
        assert model.predict_proba_one(x) == plain.predict_proba_one(seen)
        assert model.missing_bytes(x) == plain.missing_bytes(seen)
        outcome = plain.predict_learn_one(seen, y, 0.5 if y else 1.0)
        assert model.predict_learn_one(x, y, 0.5 if y else 1.0) == outcome
    assert dict(model.weights) == dict(plain.weights)
    assert (model.threshold, model.clock) == (plain.threshold, plain.clock)
    assert model.accounting == plain.accounting
    assert rule.clock == 0


def test_a_flag_that_is_known_needs_no_more_room() -> None:
    model = Quadratic(Perceptron())
    both = 2 * 128 + len("a") + len("a²".encode())
    assert model.growth_bytes({"a": 0.0}, True) == both
    model.learn_one({"a": 1.0}, True)
    assert model.stored_bytes() == 128 + len("a")
    assert model.growth_bytes({"a": 1.0}, True) == 0
    assert model.growth_bytes({"a": 0.5}, True) == 128 + len("a²".encode())


def test_it_learns_middle_values_which_no_linear_learner_does() -> None:
    assert accuracy(SCW(phi=1.0), middle()) < 0.6
    assert accuracy(Quadratic(), middle()) > 0.92
    assert accuracy(Hedge(), middle()) > 0.92


def test_an_overflowing_update_is_left_out_and_counted() -> None:
    model = Hedge([Quadratic(hinged.PassiveAggressive(mode="uncapped")), Quadratic()])
    for value in (1e308, -1e308, 1e150):
        model.learn_one({"a": value, "b": 1e-200}, value > 0.0)
        assert math.isfinite(model.score_one({"a": value}))


def test_a_hedge_of_the_pool_before_goes_on_with_it() -> None:
    before = Hedge(hinged.hedge._linear_pool(None))
    for x, y in middle(50):
        before.learn_one(x, y)
    again = Hedge()
    again.set_state(before.get_state())
    assert [type(one).__name__ for one in again.experts][:2] == ["PassiveAggressive", "AROW"]
    for x, y in middle(20):
        assert again.predict_learn_one(x, y) == before.predict_learn_one(x, y)
    assert any(isinstance(one, Quadratic) for one in Hedge().experts)


def test_only_a_binary_learner_that_is_not_lifted_is_taken() -> None:
    for wrong in (Quadratic(), hinged.Curved(), hinged.MulticlassAROW(), "arow"):
        with pytest.raises(hinged.InvalidParameter, match="must be a binary learner"):
            Quadratic(wrong)  # type: ignore[arg-type]
