"""Weights, strengths and room: rules that all learners share."""

from __future__ import annotations

import functools
import math
import random
from typing import Any

import pytest

from hinged import (
    AROW,
    SCW,
    AveragedPerceptron,
    CoinBetting,
    FTRLProximal,
    Hedge,
    HingeSGD,
    InvalidParameter,
    LinearClassifier,
    LinearUnit,
    LogisticSGD,
    MulticlassAROW,
    MulticlassAveragedPerceptron,
    MulticlassDiscriminant,
    MulticlassHedge,
    MulticlassLogisticSGD,
    MulticlassPassiveAggressive,
    MulticlassPerceptron,
    MulticlassPocketPerceptron,
    OneVsRest,
    PassiveAggressive,
    Perceptron,
    PocketPerceptron,
)
from hinged.multiclass_hedge import default_multiclass_pool
from tests.core.by_hand.learned import learned


def test_weight_zero_moves_nothing(learner: LinearClassifier) -> None:
    labels = ["A", "B"] if learner._multiclass else [True, False]
    events = [({"a": 1.0, "b": -0.5}, labels[0]), ({"a": -1.0}, labels[1]), ({"b": 2.0}, labels[0])]
    model, spaced = learner.clone(), learner.clone()
    for x, y in events:
        spaced.learn_one({"a": 7.0, "c": 1.0}, labels[1], 0.0)
        assert spaced.predict_learn_one(x, y) == model.predict_learn_one(x, y)
    assert spaced.accounting.events == 6
    left: Any = model.get_state()
    right: Any = spaced.get_state()
    assert {n: dict(v.view()) for n, v in left["vectors"].items()} == {
        n: dict(v.view()) for n, v in right["vectors"].items()
    }
    assert left["scalars"]["clock"] == right["scalars"]["clock"] == 3


@pytest.mark.parametrize(
    ("model", "name"),
    [
        *((kind(), "learning_rate") for kind in (AveragedPerceptron, PocketPerceptron, LinearUnit)),
        *((kind(), "learning_rate") for kind in (HingeSGD, MulticlassPerceptron, Hedge)),
        (MulticlassHedge(), "learning_rate"),
        *((kind(), "C") for kind in (PassiveAggressive, MulticlassPassiveAggressive, SCW)),
        *((kind(), "learning_rate") for kind in (LogisticSGD, FTRLProximal)),
        (SCW(), "phi"),
        *((kind(), "r") for kind in (AROW, MulticlassAROW)),
    ],
    ids=lambda v: v if isinstance(v, str) else type(v).__name__,
)
def test_strengths_must_be_positive_and_may_change(model: Any, name: str) -> None:
    for bad in (0, -1, math.nan, math.inf, "0.1", None, True):
        with pytest.raises(InvalidParameter, match=f"0 < {name}"):
            type(model)(**{name: bad})
        with pytest.raises(InvalidParameter, match=f"0 < {name}"):
            model.mutate({name: bad})
    model.mutate({name: 0.125})
    assert getattr(model, name) == 0.125


def test_a_full_learner_ignores_new_names_and_counts_them() -> None:
    for kind in (Perceptron, AROW, HingeSGD, SCW, LogisticSGD, CoinBetting, FTRLProximal):
        model: Any = kind(max_features=3)
        for i in range(10):
            model.learn_one({f"user_{i}": 1.0, "known": 0.5}, i % 2 == 0)
        assert len(model.weights) == 3
        assert set(model.weights) == {"known", "user_0", "user_1"}
        assert model.accounting.ignored > 0
        model.predict_one({"user_9": 1.0})
        assert len(model.weights) == 3
    small = Perceptron(max_features=3)
    pair, one = Hedge([small, small]), OneVsRest(small)
    pair.learn_one({f"user_{i}": 1.0 for i in range(5)}, True)
    one.learn_one({f"user_{i}": 1.0 for i in range(5)}, "A")
    assert (pair.accounting.ignored, one.accounting.ignored) == (4, 2)
    many = MulticlassPerceptron(max_features=3)
    for i in range(10):
        many.learn_one({f"user_{i}": 1.0, "known": 0.5}, "AB"[i % 2])
    assert len({name for weights in many.weights.values() for name in weights}) == 3


@pytest.mark.parametrize("far", [3.0, 1e200])
def test_features_without_room_do_not_count_in_the_step(far: float) -> None:
    x, ignored = {"a": 1.0, "b": far, "c": -4.0}, 2
    for mode, margin in (("uncapped", 1.0), ("I", 1.0), ("II", 40 / 41)):
        model: Any = learned(PassiveAggressive(10.0, mode, max_features=1), [(x, True)])
        # tau = 1 / 2, in II 1 / (2 + 1 / 20), times a squared norm of 2
        assert model.score_one(x) == pytest.approx(margin, abs=1e-15)
        assert dict(model.weights) == pytest.approx({"a": margin / 2}, abs=1e-15)
        assert model.accounting.ignored == ignored
        model = learned(
            MulticlassPassiveAggressive(10.0, mode, max_features=1), [(x, "A"), (x, "B")]
        )
        scores = model.scores_one(x)
        # II: tau = 1 / (4 + 1 / 20), and both scores move by 2 tau
        margin = 80 / 81 if mode == "II" else 1.0
        assert scores["B"] - scores["A"] == pytest.approx(margin, abs=1e-15)
    model = learned(LinearUnit(5.0, max_features=1), [(x, False)])
    assert model.score_one(x) == -1.0
    bare = PassiveAggressive(mode="uncapped", fit_intercept=False, max_features=1)
    learned(bare, [({"a": 2.0, "b": far}, True), ({"b": far}, True)])
    assert (dict(bare.weights), bare.accounting.updates) == ({"a": 0.5}, 1)


CAPPED: list[Any] = [
    *(kind for kind in (Perceptron, AveragedPerceptron, PocketPerceptron, LinearUnit, AROW)),
    *(functools.partial(PassiveAggressive, mode=mode) for mode in ("uncapped", "I", "II")),
    *(kind for kind in (SCW, LogisticSGD, CoinBetting, FTRLProximal)),
    functools.partial(AROW, forgetting=0.1),
    functools.partial(LogisticSGD, 0.1, "constant"),
    functools.partial(Perceptron, margin=0.5),
    functools.partial(LinearUnit, 5.0, fit_intercept=False),
    HingeSGD,
    functools.partial(HingeSGD, l1=0.001, l2=0.01),
    functools.partial(HingeSGD, 0.1, "sqrt", l2=0.1),
    functools.partial(HingeSGD, steps="pegasos", l1=0.001, l2=0.1),
    MulticlassPerceptron,
    MulticlassAveragedPerceptron,
    MulticlassPocketPerceptron,
    MulticlassAROW,
    MulticlassLogisticSGD,
    MulticlassDiscriminant,
    *(
        functools.partial(MulticlassPassiveAggressive, mode=mode)
        for mode in ("uncapped", "I", "II")
    ),
    lambda max_features=None: OneVsRest(PassiveAggressive(max_features=max_features)),
    lambda max_features=None: Hedge(
        [AROW(max_features=max_features), PassiveAggressive(max_features=max_features)]
    ),
    lambda max_features=None: MulticlassHedge(default_multiclass_pool(max_features=max_features)),
]


@pytest.mark.parametrize("make", CAPPED, ids=range(len(CAPPED)))
def test_a_full_learner_learns_as_if_there_were_no_other_features(make: Any) -> None:
    full, free = make(max_features=2), make()
    labels = ["A", "B"] if full._multiclass else [True, False]
    chance = random.Random(7)
    for i in range(60):
        kept = {"a": chance.gauss(0.0, 1.0), "b": chance.gauss(0.0, 1.0)}
        others = {f"user_{i}": 7.0, "c": chance.gauss(0.0, 9.0)} if i > 3 else {}
        y = labels[kept["a"] + chance.gauss(0.0, 0.5) > 0.0]
        got, expected = (
            full.predict_learn_one({**kept, **others}, y),
            free.predict_learn_one(kept, y),
        )
        assert got == expected
    left, right = full.get_state()["vectors"], free.get_state()["vectors"]
    assert {n: dict(v.view()) for n, v in left.items()} == {
        n: dict(v.view()) for n, v in right.items()
    }
    assert full.accounting.ignored > 0 == free.accounting.ignored
