"""Balanced classes: the weights by hand, and what they do to each rule."""

from __future__ import annotations

import random
from typing import Any

import pytest

from hinged import (
    AROW,
    SCW,
    ClassBalance,
    CoinBetting,
    FTRLProximal,
    HingeSGD,
    InvalidState,
    LinearUnit,
    LogisticSGD,
    MulticlassPerceptron,
    PassiveAggressive,
    Perceptron,
)


@pytest.mark.parametrize(
    ("labels", "weights"),
    [
        # n / (k n_y), the event counted: 1/1, 2/2, 3/(2 * 1), 4/(2 * 3), 5/(2 * 2)
        ([False, False, True, False, True], [1.0, 1.0, 1.5, 4 / 6, 5 / 4]),
        (["a", "b", "c", "a", "a"], [1.0, 1.0, 1.0, 4 / 6, 5 / 9]),
        ([7] * 3, [1.0] * 3),
    ],
)
def test_weights_by_hand(labels: list[Any], weights: list[float]) -> None:
    balance = ClassBalance()
    assert [balance.weight(y) for y in labels[:1]] == weights[:1]
    assert [balance.next_weight(y) for y in labels] == pytest.approx(weights, abs=1e-15)
    assert (balance.events, sum(balance.counts.values())) == (len(labels), len(labels))


def test_no_weight_is_above_a_million() -> None:
    balance = ClassBalance()
    balance.set_state({"classes": ["usual"], "counts": [10**9]})
    assert balance.weight("rare") == 1e6
    assert balance.weight("usual") == 1.0


def test_a_restored_one_goes_on_alike() -> None:
    one, other = ClassBalance(), ClassBalance()
    for y in "abacabad":
        one.next_weight(y)
    other.set_state(one.get_state())
    assert [other.next_weight(y) for y in "ddab"] == [one.next_weight(y) for y in "ddab"]
    assert other.get_state() == one.get_state()


@pytest.mark.parametrize(
    "saved",
    [
        None,
        [],
        {"classes": ["a"]},
        {"classes": "a", "counts": [1]},
        {"classes": ["a"], "counts": [0]},
        {"classes": ["a"], "counts": [1.0]},
        {"classes": ["a"], "counts": [True]},
        {"classes": ["a", "b"], "counts": [1]},
        {"classes": ["a", "a"], "counts": [1, 1]},
        {"classes": ["a", 1], "counts": [1, 1]},
        {"classes": [["a"]], "counts": [1]},
    ],
)
def test_a_damaged_state_is_refused(saved: object) -> None:
    balance = ClassBalance()
    balance.count("x")
    with pytest.raises(InvalidState):
        balance.set_state(saved)
    assert balance.counts == {"x": 1}


def rare_found(model: Any, balanced: bool) -> float:
    """Return the part of the rare events found in the second half of a noisy stream."""
    chance, balance = random.Random(2), ClassBalance()
    found = rare = 0
    for i in range(4_000):
        y = chance.random() < 0.05
        x = {f"f{j}": chance.gauss(0.5 if y else 0.0, 1.0) for j in range(6)}
        if i >= 2_000 and y:
            rare += 1
            found += model.predict_one(x) is True
        model.learn_one(x, y, balance.next_weight(y) if balanced else 1.0)
    return found / rare


@pytest.mark.parametrize(
    ("model", "gain"),
    [
        *((kind(), 0.3) for kind in (HingeSGD, CoinBetting, FTRLProximal, LogisticSGD, AROW)),
        (LogisticSGD(0.1, "constant"), 0.3),
        (LinearUnit(), 0.3),
        (PassiveAggressive(0.01), 0.3),
        (SCW(0.01), 0.2),
    ],
    ids=lambda v: type(v).__name__ if not isinstance(v, float) else "",
)
def test_the_rare_class_is_found(model: Any, gain: float) -> None:
    assert rare_found(model.clone(), True) > rare_found(model.clone(), False) + gain


def test_weights_hardly_move_a_step_that_is_seldom_capped() -> None:
    assert abs(rare_found(PassiveAggressive(), True) - rare_found(PassiveAggressive(), False)) < 0.1


def test_many_classes() -> None:
    balance, model, plain = ClassBalance(), MulticlassPerceptron(), MulticlassPerceptron()
    rows: list[tuple[dict[str, float], str]] = [({"a": 1.0}, "A"), ({"b": 1.0}, "B")]
    for x, y in [*rows, ({"c": 1.0}, "C")]:
        model.learn_one(x, y, balance.next_weight(y))
        plain.learn_one(x, y)
    assert model.weights == plain.weights  # all weigh 1 so far
    w = balance.next_weight("A")  # 4 / (3 * 2)
    model.learn_one({"c": 1.0}, "A", w)
    assert w == 2 / 3
    assert model.weights["A"]["c"] == pytest.approx(plain.weights["A"].get("c", 0.0) + 2 / 3)


def test_a_perceptron_steps_as_far_as_the_weight() -> None:
    balance, model = ClassBalance(), Perceptron()
    for y in (False, False, False, True):
        model.learn_one({"a": 1.0}, y, balance.next_weight(y))
    # -1 at the first tie; right twice; 4 / (2 * 1)
    assert (model.weights["a"], model.intercept) == (1.0, 1.0)
