"""Auto: which pool the labels decide for, and that it is its parts and no more."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from river import datasets, evaluate, metrics

from hinged import Auto, AutoScaler, Hedge, InvalidEvent, InvalidState, MulticlassHedge
from hinged.checks import plain_state

Rows = list[tuple[dict[str, float], Any]]


def rows(labels: list[Any], count: int, seed: int = 4) -> Rows:
    """Return events of numbers far from 0 and of different sizes, and the labels by turns."""
    chance = random.Random(seed)
    made: Rows = []
    for i in range(count):
        place = i % len(labels)
        x = {
            "large": chance.gauss(1e6 + 3e5 * place, 2e5),
            "small": chance.gauss(1e-4 * place, 2e-4),
        }
        made.append((x, labels[place]))
    return made


def by_hand(pool: Hedge | MulticlassHedge, events: Rows) -> list[float]:
    """Let a pool learn scaled events, each scaled once it is learned; return the scores before."""
    scaler, scores = AutoScaler(), []
    for x, y in events:
        scaler.learn_one(x)
        scores.append(pool.predict_learn_one(scaler.transform_one(x), y).score)
    return scores


def test_two_classes_at_most_are_a_scaler_and_a_hedge() -> None:
    model, pool, events = Auto(max_classes=2), Hedge(learning_rate=0.3), rows([True, False], 200)
    scores = by_hand(pool, events)
    for (x, y), score in zip(events, scores, strict=True):
        assert model.score_one(x) == score
        assert model.predict_one(x) is (score > 0.0)
        assert model.predict_learn_one(x, y).score == score
    assert model.pool.trust == pool.trust
    assert not model._multiclass
    for y in (1, 0, -1):
        model.learn_one({"large": 1e6}, y)
    for bad in ("ham", 2, None):
        with pytest.raises(InvalidEvent, match="y must be true or false"):
            model.learn_one({"large": 1e6}, bad)


@pytest.mark.parametrize("labels", [[False, True], ["ham", "spam"], [7, 3], [True, False]])
def test_two_labels_are_those_of_a_hedge(labels: list[Any]) -> None:
    model, pool, events = Auto(), Hedge(learning_rate=0.3), rows(labels, 200)
    scores = by_hand(pool, [(x, y == labels[1]) for x, y in events])
    for number, ((x, y), score) in enumerate(zip(events, scores, strict=True)):
        proba = model.predict_proba_one(x)
        if number >= 2:  # both are known
            assert proba[labels[1]] == pytest.approx(1.0 / (1.0 + math.exp(-score)), rel=1e-12)
            assert model.predict_one(x) == labels[score > 0.0]
        else:
            assert list(proba.values()) == [1.0] * number
        model.learn_one(x, y)
    assert (model.classes, type(model.pool)) == (labels, Hedge)
    assert len(model.get_state()["members"]) == (1 if labels[0] in (True, False) else 2)
    assert model.accounting.mistakes <= 40


def test_with_a_third_label_the_pool_of_many_goes_on_and_has_learned_everything() -> None:
    events = rows(["a", "b"], 100) + rows(["c", "a", "b"], 100, seed=5)
    model, pool = Auto(), MulticlassHedge()
    scores = by_hand(pool, events)
    for number, (x, y) in enumerate(events):
        if number == 100:
            assert type(model.pool) is Hedge
            before = model.predict_one(x), model.score_one(x)
        outcome = model.predict_learn_one(x, y)
        if number == 100:
            assert outcome[:3] == (*before, True)  # the pool of two predicts for the last time
            assert type(model.pool) is MulticlassHedge
        if number > 100:
            assert outcome.score == scores[number]
    assert model.classes == ["a", "b", "c"]
    assert (model.pool.trust, model.accounting.events) == (pool.trust, 200)
    assert model.pool.accounting.events == 200


@pytest.mark.parametrize("labels", [["a"], ["a", "b"], ["a", "b", "c"], [True], [True, False]])
def test_it_goes_on_from_a_state_of_every_phase(labels: list[Any]) -> None:
    model = Auto()
    for x, y in rows(labels, 50):
        model.learn_one(x, y)
    again = Auto()
    again.set_state(plain_state(model))
    more = labels if isinstance(labels[0], bool) else [*labels, "c", "d"]
    for x, y in rows(more, 60, seed=9):
        assert again.explain_one(x) == model.explain_one(x)
        assert again.predict_learn_one(x, y) == model.predict_learn_one(x, y)
    assert plain_state(again) == plain_state(model)
    before, state = plain_state(again), plain_state(model)
    for bad in ({**state, "scaler": None}, {**state, "members": state["members"][1:]}):
        with pytest.raises(InvalidState):
            again.set_state(bad)
        assert plain_state(again) == before


def test_each_class_is_explained() -> None:
    for labels in (["a", "b"], ["a", "b", "c"], [True, False]):
        model = Auto()
        for x, y in rows(labels, 60):
            model.learn_one(x, y)
        scores = model.scores_one(x)
        for label in labels:
            parts = model.explain_one(x, label)
            assert math.fsum(parts.values()) == pytest.approx(scores[label], rel=1e-9, abs=1e-12)
        assert math.fsum(map(math.exp, scores.values())) == pytest.approx(1.0, abs=1e-12)


def test_labels_are_of_one_type_and_not_too_many() -> None:
    model = Auto(max_classes=3)
    for y in "abc":
        model.learn_one({"x": 1.0}, y)
    before = plain_state(model)
    for bad in ("d", 1, True, None, 0.5):
        with pytest.raises(InvalidEvent, match="y must be"):
            model.learn_one({"x": 1.0, "new": 2.0}, bad)
    assert plain_state(model) == before


def test_raw_numbers_are_no_worse_than_scaled_ones() -> None:
    """Image segments have features of up to 1,000: Auto needs no scaler before it."""
    source: Any = datasets.ImageSegments
    measures: Any = metrics
    raw: Any = evaluate.progressive_val_score(source().take(1_000), Auto(), measures.Accuracy())
    assert raw.get() > 0.84
    loss: Any = evaluate.progressive_val_score(datasets.Phishing(), Auto(), measures.LogLoss())
    assert loss.get() < 0.3  # of the base rate: 0.686
