"""Probabilities: symmetric, inside 0 and 1, summing to 1."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import Any

import pandas as pd
import pytest

from hinged import (
    AROW,
    SCW,
    AveragedPerceptron,
    CoinBetting,
    FTRLProximal,
    Hedge,
    HingeSGD,
    LinearClassifier,
    LinearUnit,
    LogisticSGD,
    MulticlassPerceptron,
    OneVsRest,
    PassiveAggressive,
    Perceptron,
    PocketPerceptron,
)

SCORES = [
    *(0.0, 5e-324, 1e-300, 1e-17, 1e-9, 0.1, 1.0, 2.5, 17.0, 36.0, 36.7, 36.9, 37.0, 40.0),
    *(700.0, 708.4, 709.0, 745.0, 746.0, 1e4, 1e100, 1e308),
]
ONE = pytest.approx(1.0, abs=2.0**-52)


def scoring() -> Perceptron:
    """Return a model whose score is the feature `s`."""
    return Perceptron(initial_weights={"s": 1.0}, fit_intercept=False)


@pytest.mark.parametrize("score", SCORES)
def test_the_two_labels_of_opposite_scores_mirror_each_other(score: float) -> None:
    here = scoring().predict_proba_one({"s": score})
    there = scoring().predict_proba_one({"s": -score})
    assert (here[True], here[False]) == (there[False], there[True])
    assert 0.0 < here[False] <= here[True] < 1.0
    assert math.fsum(here.values()) == ONE
    assert list(here) == [False, True]
    if score < 700.0:
        with localcontext(prec=50):
            low = 1 / (1 + Decimal(score).exp())
            assert here[False] == pytest.approx(float(low), rel=1e-15)
            assert here[True] == pytest.approx(float(1 - low), rel=2e-16)
    many = scoring().predict_proba_many(pd.DataFrame({"s": [score, -score]}))
    assert many[True].tolist() == many[False].tolist()[::-1] == [here[True], here[False]]


def test_a_larger_score_is_never_less_probable() -> None:
    signed = [*(-s for s in reversed(SCORES)), *SCORES]
    p = [scoring().predict_proba_one({"s": score})[True] for score in signed]
    assert p == sorted(p)


def test_every_binary_learner_answers_inside(binary: LinearClassifier) -> None:
    model: Any = binary.clone()
    for i in range(40):
        model.learn_one({"a": 1.0 + i % 3, "b": -0.5}, True)
        model.learn_one({"a": -1.0 - i % 3, "b": 0.5}, False)
    for size in (0.0, 1.0, 1e3, 1e12, 1e300):
        for sign in (1.0, -1.0):
            proba = model.predict_proba_one({"a": size * sign, "b": 0.0})
            assert all(0.0 < p < 1.0 for p in proba.values())
            assert math.fsum(proba.values()) == ONE


def test_a_turned_learner_gives_the_mirrored_probabilities() -> None:
    kinds: list[Any] = [Perceptron, AveragedPerceptron, PocketPerceptron, PassiveAggressive]
    kinds += [SCW, LogisticSGD, CoinBetting, FTRLProximal]
    for kind in [*kinds, LinearUnit, HingeSGD, AROW, Hedge]:
        straight, turned = kind(), kind()
        for i in range(50):
            x = {"a": math.sin(i) + 0.25, "b": math.cos(3.0 * i)}
            straight.learn_one(x, x["a"] > 0.5)
            turned.learn_one(x, x["a"] <= 0.5)
        for size in (0.5, 1e2, 1e200):
            here = straight.predict_proba_one({"a": size, "b": 0.1 * size})
            there = turned.predict_proba_one({"a": size, "b": 0.1 * size})
            assert (here[True], here[False]) == (there[False], there[True]), kind


@pytest.mark.parametrize("score", SCORES)
def test_two_classes_mirror_each_other(score: float) -> None:
    ranked = OneVsRest(scoring())
    ranked.learn_one({}, "a")
    ranked.learn_one({}, "b")
    vectors = {"0/weights": {"s": 1.0}, "1/weights": {}}
    ranked.set_state({**ranked.get_state(), "vectors": vectors})
    there, here = (ranked.predict_proba_one({"s": s}) for s in (-score, score))
    assert (here["a"], here["b"]) == (there["b"], there["a"])
    assert 0.0 < here["b"] <= here["a"] < 1.0
    assert math.fsum(here.values()) == ONE
    assert here["a"] == pytest.approx(scoring().predict_proba_one({"s": score})[True], rel=3e-16)


@pytest.mark.parametrize("size", [1.0, 40.0, 1e3, 1e154])
def test_no_class_of_several_has_0_or_1(size: float) -> None:
    model = MulticlassPerceptron(fit_intercept=False)
    model.learn_one({"a": size}, "x")
    assert model.predict_proba_one({"a": size}) == {"x": 1.0}  # the only one
    for label in "yzv":
        model.learn_one({"a": size}, label)
    proba = model.predict_proba_one({"a": size})
    assert len(proba) == 4
    assert all(0.0 < p < 1.0 for p in proba.values())
    assert math.fsum(proba.values()) == ONE
    frame = model.predict_proba_many(pd.DataFrame({"a": [size, -size]}))
    assert ((frame > 0.0) & (frame < 1.0)).all().all()


def test_experts_of_one_mind_leave_room_for_doubt() -> None:
    pool = [Perceptron(initial_weights={"a": weight}) for weight in (20.0, 1e6, 1e300)]
    least = math.exp(-15.0) / (1.0 + math.exp(-15.0))
    for count in (1, 2, 3):
        model = Hedge(pool[:count])
        # Half the trust is in the base rate, which is 1/2 before any label.
        sure = {False: 0.5 * least + 0.25, True: 0.5 * (1.0 - least) + 0.25}
        assert model.predict_proba_one({"a": 1.0}) == pytest.approx(sure, rel=1e-9)
        mirrored = {y: model.predict_proba_one({"a": 1.0})[not y] for y in (False, True)}
        assert model.predict_proba_one({"a": -1.0}) == pytest.approx(mirrored, rel=1e-12)
        assert model.predict_proba_one({"b": 1.0}) == {False: 0.5, True: 0.5}
