"""Calibrated learners: labels and scores stay, probabilities come right."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from hinged import (
    Auto,
    Calibrated,
    Hedge,
    InvalidParameter,
    InvalidState,
    MulticlassPerceptron,
    OneVsRest,
    Perceptron,
)
from hinged.temperature import Temperature


def noisy(count: int) -> list[tuple[dict[str, float], bool]]:
    """Events; one in four has the wrong label."""
    chance = random.Random(5)
    rows = []
    for _ in range(count):
        x = {name: chance.gauss(0.0, 1.0) for name in "ab"}
        rows.append((x, (x["a"] > x["b"]) is not (chance.random() < 0.25)))
    return rows


def test_the_first_events_by_hand() -> None:
    model, temperature = Calibrated(Perceptron()), Temperature()
    model.learn_one({"a": 1.0}, True)  # w = b = 1, and a score of 0 moved no temperature
    assert model.predict_proba_one({"a": 1.0})[True] == pytest.approx(1.0 / (1.0 + math.exp(-2.0)))
    assert model.predict_learn_one({"a": 1.0}, False) == (True, 2.0, True, True, 3.0)
    temperature.learn(2.0, False)
    model.learn_one({"a": 1.0}, True)  # from 0 up to w = b = 1
    p = 1.0 / (1.0 + math.exp(-2.0 * temperature.scale))
    assert temperature.scale == pytest.approx(1.0 / math.e)
    assert model.predict_proba_one({"a": 1.0})[True] == pytest.approx(p, rel=0.02)


@pytest.mark.parametrize("kind", [Perceptron, Hedge, Auto, MulticlassPerceptron, OneVsRest])
def test_it_answers_as_the_learner_but_for_probabilities(kind: Any) -> None:
    model, plain = Calibrated(kind()), kind()
    losses = {model: 0.0, plain: 0.0}
    for x, y in noisy(800):
        label = ("no", "yes")[y] if plain._multiclass else y
        for one in (model, plain):
            losses[one] -= math.log(one.predict_proba_one(x).get(label, 1.0))
        assert model.predict_learn_one(x, label) == plain.predict_learn_one(x, label)
        assert model.predict_one(x) == plain.predict_one(x)
        assert model.explain_one(x) == plain.explain_one(x)
    assert model.accounting == plain.accounting
    assert model.classes == getattr(plain, "classes", [False, True])
    least = 800 * (0.75 * math.log(4 / 3) + 0.25 * math.log(4.0))
    assert least < losses[model] < 800 * math.log(2.0)
    assert kind in (Auto, Hedge) or losses[model] < losses[plain]


def test_weight_0_moves_no_temperature() -> None:
    model = Calibrated(Perceptron())
    model.learn_one({"a": 1.0}, True)
    model.learn_one({"a": 1.0}, False, 0.0)
    assert model.temperature.scalars() == Temperature().scalars()


@pytest.mark.parametrize("wrong", [1, None, Perceptron, Calibrated(Perceptron())])
def test_it_takes_a_learner(wrong: Any) -> None:
    with pytest.raises(InvalidParameter, match="must be a learner of hinged"):
        Calibrated(wrong)


def test_the_state_of_another_learner_is_refused() -> None:
    model, other = Calibrated(Perceptron()), Calibrated(MulticlassPerceptron())
    with pytest.raises(InvalidState):
        model.set_state(other.get_state())
    with pytest.raises(InvalidState):
        model.set_state(Perceptron().get_state())
