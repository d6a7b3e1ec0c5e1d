"""Weights that a learner starts from, and the label at score 0."""

from __future__ import annotations

import hashlib
import math
import pickle
import random
import subprocess
import sys
from fractions import Fraction
from typing import Any

import pytest

from hinged import (
    AROW,
    AveragedPerceptron,
    BinaryLinearClassifier,
    HingeSGD,
    InvalidParameter,
    LinearUnit,
    MulticlassAROW,
    MulticlassAveragedPerceptron,
    MulticlassLogisticSGD,
    MulticlassPassiveAggressive,
    MulticlassPerceptron,
    MulticlassPocketPerceptron,
    OneVsRest,
    PassiveAggressive,
    Perceptron,
    PocketPerceptron,
    RandomWeights,
    mix,
)
from hinged.checks import plain_state

RULES: list[type[BinaryLinearClassifier]] = [
    *(Perceptron, AveragedPerceptron, PocketPerceptron, PassiveAggressive),
    *(LinearUnit, HingeSGD, AROW),
]


def by_hand(seed: int, name: str, scale: float) -> float:
    """Return the random weight of a name, in exact fractions."""
    digest = hashlib.blake2b(f"{seed} s{name}".encode(), digest_size=8).digest()
    drawn = int.from_bytes(digest, "big") // 2**11
    return float(Fraction(2 * drawn + 1, 2**53) - 1) * scale


def test_random_weights_are_a_function_of_seed_and_name() -> None:
    start = RandomWeights(seed=7, scale=0.25)
    for name in ("a", "", "größe", "price"):
        assert start(name) == by_hand(7, name, 0.25)
    assert RandomWeights(8)("a") != RandomWeights(7)("a")
    assert start(1) != start("1")
    code = "from hinged import RandomWeights; print(repr(RandomWeights(7, 0.25)('a')))"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(other.stdout) == start("a")


def test_random_weights_are_uniform_in_their_range() -> None:
    start = RandomWeights(1, 2.0)
    drawn = [start(f"f{i}") for i in range(10_000)]
    assert all(-2.0 < w < 2.0 and w != 0.0 for w in drawn)
    # mean 0 and variance (2 * 2)^2 / 12 = 4 / 3; four standard errors
    assert abs(math.fsum(drawn) / 10_000) < 4 * (4 / 3 / 10_000) ** 0.5
    assert math.fsum(w * w for w in drawn) / 10_000 == pytest.approx(4 / 3, abs=0.05)


@pytest.mark.parametrize("rule", RULES)
def test_a_random_start_predicts_before_anything_is_learned(rule: Any) -> None:
    start = RandomWeights(3, 0.5)
    model = rule(initial_weights=start, initial_intercept=0.125)
    x = {"a": 2.0, "b": -1.0}
    assert model.score_one(x) == 2.0 * start("a") - start("b") + 0.125
    assert not model.weights
    assert model.explain_one({"a": 2.0})["a"] == 2.0 * start("a")
    state = plain_state(model)
    assert not any(state["vectors"].values())
    same = random.Random(1)
    for _ in range(50):
        model.learn_one({n: same.gauss(0.0, 1.0) for n in "abc"}, same.random() < 0.5)
    assert model.score_one({"new": 1.0}) - model.score_one({}) == pytest.approx(start("new"))
    for copied in (model.clone(include_attributes=True), pickle.loads(pickle.dumps(model))):
        assert copied.score_one({"a": 1.0, "new": 1.0}) == model.score_one({"a": 1.0, "new": 1.0})


@pytest.mark.parametrize("rule", RULES)
def test_a_random_start_is_that_of_the_same_weights_given(rule: Any) -> None:
    start, chance = RandomWeights(9), random.Random(4)
    drawn = rule(initial_weights=start, label_at_zero=True)
    given = rule(initial_weights={name: start(name) for name in "abcde"}, label_at_zero=True)
    for number in range(200):
        x = {name: chance.gauss(0.0, 1.0) for name in chance.sample("abcde", 3)}
        y = chance.random() < 0.5
        assert drawn.predict_learn_one(x, y) == given.predict_learn_one(x, y)
        if number == 100:
            fresh = rule(initial_weights=start, label_at_zero=True)
            fresh.set_state(drawn.get_state())
            drawn = fresh
    for name in "abcde":
        assert drawn.score_one({name: 1.0}) == given.score_one({name: 1.0})


@pytest.mark.parametrize("rule", RULES)
def test_the_label_at_zero(rule: Any) -> None:
    assert rule(label_at_zero=True).predict_one({"a": 1.0}) is True
    assert rule().predict_one({"a": 1.0}) is False
    model = rule(label_at_zero=True)
    outcome = model.predict_learn_one({"a": 1.0}, True)
    assert (outcome.y_pred, outcome.mistake) == (True, False)
    assert rule(label_at_zero=True).predict_learn_one({"a": 1.0}, False).mistake


def test_given_weights_move_as_the_rules_say() -> None:
    start: Any = {"initial_weights": {"a": 0.5, "far": 3.0}, "initial_intercept": -0.25}
    x = {"a": 2.0}  # the score is 0.75
    model: Any = PassiveAggressive(mode="uncapped", **start)
    model.learn_one(x, True)  # loss 1/4, norm 5: tau 1/20
    assert dict(model.weights) == pytest.approx({"a": 0.6, "far": 3.0}, abs=1e-15)
    assert model.intercept == pytest.approx(-0.2, abs=1e-15)
    model = LinearUnit(0.1, capped=False, **start)
    model.learn_one(x, False)  # the error is -1.75
    assert dict(model.weights) == pytest.approx({"a": 0.15, "far": 3.0}, abs=1e-15)
    model = AROW(**start)
    model.learn_one(x, True)  # beta 1 / (4 + 1 + 1), step 1/24
    assert model.weights["a"] == pytest.approx(0.5 + 2 / 24, abs=1e-15)
    model = HingeSGD(0.5, "constant", l2=0.5, **start)
    model.learn_one(x, True)  # both weights shrink by 3/4, then a step of 1/2
    assert dict(model.weights) == pytest.approx({"a": 1.375, "far": 2.25}, abs=1e-15)
    assert model.intercept == 0.25
    model = HingeSGD(0.5, "constant", l1=0.5, **start)
    model.learn_one({"b": 1.0}, True)
    assert dict(model.weights) == pytest.approx({"a": 0.25, "far": 2.75, "b": 0.25}, abs=1e-15)
    model = AveragedPerceptron(**start)
    model.learn_one(x, True)
    model.learn_one(x, False)  # the weights after each: 1/2, and 1/2 - 2
    assert model.weights == pytest.approx({"a": (0.5 - 1.5) / 2, "far": 3.0}, abs=1e-15)
    model = PocketPerceptron(**start)
    assert (dict(model.weights), model.score_one({})) == ({"a": 0.5, "far": 3.0}, -0.25)
    for y in (True, True, False):
        model.learn_one(x, y)
    assert dict(model.weights) == {"a": 0.5, "far": 3.0}  # they were right twice


def test_a_full_learner_gives_no_weight_to_names_without_room() -> None:
    start = RandomWeights(1)
    model = Perceptron(initial_weights=start, max_features=1, fit_intercept=False)
    model.learn_one({"a": 1.0}, start("a") < 0.0)
    assert model.weights == pytest.approx({"a": start("a") + (1 if start("a") < 0.0 else -1)})
    assert model.score_one({"b": 1.0}) == 0.0


def test_mixing_counts_the_start_of_names_that_a_worker_never_met() -> None:
    start = RandomWeights(1)
    one, two = (Perceptron(initial_weights=start) for _ in range(2))
    one.learn_one({"a": 1.0}, start("a") < 0.0)
    mixed = mix([one, two])
    assert mixed.weights["a"] == pytest.approx((one.weights["a"] + start("a")) / 2)
    assert mixed.score_one({"b": 1.0}) - mixed.intercept == pytest.approx(start("b"))


def test_every_class_of_one_vs_rest_starts_alike() -> None:
    model = OneVsRest(Perceptron(initial_weights={"a": 0.5}, initial_intercept=1.0))
    model.learn_one({"b": 1.0}, "A")
    assert model.scores_one({"a": 2.0}) == {"A": 2.0}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    "params",
    [
        {"initial_intercept": 1.0, "fit_intercept": False},
        {"initial_intercept": math.nan},
        {"initial_weights": {"a": math.inf}},
        {"initial_weights": {"a": None}},
        {"initial_weights": [1.0]},
        {"initial_weights": "random"},
        {"initial_weights": {"a": 1.0, "b": 1.0}, "max_features": 1},
        {"label_at_zero": 1},
    ],
)
def test_refuses(rule: Any, params: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        rule(**params)


@pytest.mark.parametrize(
    "make",
    [
        lambda: RandomWeights(0.5),  # type: ignore[arg-type]
        lambda: RandomWeights(True),
        lambda: RandomWeights(1, 0.0),
        lambda: RandomWeights(1, math.inf),
        lambda: RandomWeights(1, 1e101),
        lambda: HingeSGD(l2=0.1, initial_weights=RandomWeights()),
        lambda: HingeSGD(l1=0.1, initial_weights=RandomWeights()),
    ],
)
def test_refuses_random_weights(make: Any) -> None:
    with pytest.raises(InvalidParameter):
        make()


MANY: list[type[Any]] = [
    *(MulticlassPerceptron, MulticlassAveragedPerceptron, MulticlassPocketPerceptron),
    *(MulticlassPassiveAggressive, MulticlassAROW, MulticlassLogisticSGD),
]


@pytest.mark.parametrize("rule", MANY)
def test_classes_that_are_given_are_known_from_the_start(rule: Any) -> None:
    start = {"A": {"a": 1.0}, "B": {"a": -1.0, "b": 2.0}}
    model = rule(initial_weights=start, initial_intercepts={"B": 0.5, "C": -0.25})
    assert model.classes == ["A", "B", "C"]
    assert model.scores_one({"a": 2.0, "b": 1.0}) == {"A": 2.0, "B": 0.5, "C": -0.25}
    assert model.predict_learn_one({"b": 1.0}, "A")[:3] == ("B", 2.5, True)
    assert model.clone().scores_one({"b": 1.0}) == {"A": 0.0, "B": 2.5, "C": -0.25}
    model.learn_one({"a": 1.0}, "D")
    other = rule(initial_weights=start)
    other.set_state(model.get_state())
    assert other.scores_one({"a": 1.0, "b": 3.0}) == model.scores_one({"a": 1.0, "b": 3.0})


def test_given_classes_move_as_the_perceptron_says() -> None:
    model = MulticlassPerceptron(initial_weights={"A": {"a": 1.0}, "B": {"a": -1.0}})
    model.learn_one({"a": -2.0}, "A")  # A has -2, B has 2
    assert {y: dict(w) for y, w in model.weights.items()} == {"A": {"a": -1.0}, "B": {"a": 1.0}}
    assert model.intercepts == {"A": 1.0, "B": -1.0}


@pytest.mark.parametrize("rule", MANY)
def test_random_weights_of_classes_are_those_of_their_own_seeds(rule: Any) -> None:
    start, chance = RandomWeights(4, 0.5), random.Random(2)
    assert start.of("A")("a") != start.of("B")("a") != start("a")
    drawn = rule(initial_weights=start)
    drawn.learn_one({}, "A")
    x = {"a": 2.0, "d": -1.0}
    assert drawn.scores_one(x) == pytest.approx(
        {"A": 2.0 * start.of("A")("a") - start.of("A")("d")}, abs=1e-15
    )
    for number in range(200):
        x = {name: chance.gauss(0.0, 1.0) for name in chance.sample("abcd", 3)}
        y = "ABC"[chance.randrange(3)]
        drawn.learn_one(x, y)
        if number == 100:
            fresh = rule(initial_weights=start)
            fresh.set_state(drawn.get_state())
            drawn = pickle.loads(pickle.dumps(fresh))
    scores = drawn.scores_one({"unseen": 1.0})
    for label in "ABC":
        seen = scores[label] - drawn.intercepts[label]
        assert seen == pytest.approx(start.of(label)("unseen"), abs=1e-12)


def test_a_class_is_scored_by_its_start_when_it_comes() -> None:
    start = RandomWeights(4)
    model = MulticlassPerceptron(initial_weights=start, fit_intercept=False)
    model.learn_one({"a": 1.0}, "A")
    a, b = start.of("A")("a"), start.of("B")("a")
    sign = 1.0 if b > a else -1.0  # B has the higher score already, so nothing moves
    model.learn_one({"a": sign}, "B")
    assert model.accounting.updates == 0
    assert model.scores_one({"a": 1.0}) == {"A": a, "B": b}


@pytest.mark.parametrize("rule", MANY)
@pytest.mark.parametrize(
    "params",
    [
        {"initial_weights": [1.0]},
        {"initial_weights": {"A": {"a": math.nan}}},
        {"initial_weights": {"A": {}, 1: {}}},
        {"initial_weights": {0.5: {}}},
        {"initial_weights": {"A": {}, "B": {}}, "max_classes": 1},
        {"initial_weights": {"A": {"a": 1.0}, "B": {"b": 1.0}}, "max_features": 1},
        {"initial_intercepts": {"A": math.inf}},
        {"initial_intercepts": {"A": 1.0}, "fit_intercept": False},
    ],
)
def test_refuses_starts_of_classes(rule: Any, params: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        rule(**params)
