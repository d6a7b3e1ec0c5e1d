"""Mixing of learners that were trained on parts of the data."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from river import datasets

from hinged import (
    AROW,
    AveragedPerceptron,
    InvalidParameter,
    LinearUnit,
    MulticlassPerceptron,
    PassiveAggressive,
    Perceptron,
    mix,
)
from tests.core.truth_tables import AND, Rows


def halves(model: Any) -> list[Any]:
    rows = list(datasets.Phishing().take(400))
    workers = []
    for shard in (rows[:200], rows[200:]):
        worker = model.clone()
        for x, y in shard:
            worker.learn_one(x, y)
        workers.append(worker)
    return workers


@pytest.mark.parametrize("model", [Perceptron(), PassiveAggressive(), LinearUnit()])
def test_mixing_is_the_weighted_mean(model: Any) -> None:
    one, two = halves(model)
    mixed = mix([one, two], [1.0, 3.0])
    names = {*one.weights, *two.weights}
    for name in names:
        expected = 0.25 * one.weights.get(name, 0.0) + 0.75 * two.weights.get(name, 0.0)
        assert mixed.weights[name] == pytest.approx(expected, abs=1e-15)
    assert mixed.intercept == pytest.approx(0.25 * one.intercept + 0.75 * two.intercept, abs=1e-15)
    assert mixed.accounting.events == 0
    assert mixed.clock == 200
    mixed.learn_one({"ip_in_url": 100.0}, not mixed.predict_one({"ip_in_url": 100.0}))
    assert one.accounting.events == 200


def test_mixing_averaged_perceptrons_mixes_both() -> None:
    one, two = halves(AveragedPerceptron())
    mixed: Any = mix([one, two])
    for name in {*one.weights, *two.weights}:
        mean = (one.weights.get(name, 0.0) + two.weights.get(name, 0.0)) / 2
        assert mixed.weights[name] == pytest.approx(mean, abs=1e-12)
    assert mixed.intercept == (one.intercept + two.intercept) / 2
    assert mixed.score_one({}) == pytest.approx((one.score_one({}) + two.score_one({})) / 2)


def test_mixing_averages_of_uneven_shards() -> None:
    one, two = AveragedPerceptron(), AveragedPerceptron()
    for x, y in datasets.Phishing().take(30):
        one.learn_one(x, y)
    for x, y in datasets.Phishing().take(90):
        two.learn_one(x, y)
    mixed = mix([one, two], [3.0, 1.0])
    for name in {*one.weights, *two.weights}:
        mean = 0.75 * one.weights.get(name, 0.0) + 0.25 * two.weights.get(name, 0.0)
        assert mixed.weights[name] == pytest.approx(mean, abs=1e-12)


def test_mixing_one_learner_gives_it_back() -> None:
    one, _ = halves(Perceptron())
    assert dict(mix([one]).weights) == dict(one.weights)


def test_iterative_mixing_separates_within_the_bound() -> None:
    shards = [AND[:2] * 2, AND[2:] * 2]
    model: Any = Perceptron()
    updates = 0
    for _ in range(60):
        workers = []
        for shard in shards:
            worker = Perceptron()
            worker.set_state(model.get_state())
            for x, y in shard:
                updates += worker.predict_learn_one(x, y).updated
            workers.append(worker)
        model = mix(workers)
    assert all(model.predict_one(x) is y for x, y in AND)
    assert updates / 2 <= 51  # uniform mixing: the mean over shards keeps Novikoff's bound


@pytest.mark.parametrize(
    ("models", "weights"),
    [
        ([], None),
        ([AROW()], None),
        ([MulticlassPerceptron()], None),
        ([Perceptron(), LinearUnit()], None),
        ([Perceptron(), Perceptron(0.5)], None),
        ([Perceptron()], [1.0, 1.0]),
        ([Perceptron()], [0.0]),
        ([Perceptron()], [-1.0]),
        ([Perceptron()], [math.nan]),
    ],
)
def test_mixing_refuses(models: Any, weights: Any) -> None:
    with pytest.raises(InvalidParameter):
        mix(models, weights)


@pytest.mark.parametrize(("rule", "parts"), [(AveragedPerceptron, 4), (PassiveAggressive, 8)])
def test_parts_of_a_stream_mixed_once_are_close_to_one_model(rule: Any, parts: int) -> None:
    """Each part learns its share of 2,000 events, one in ten of them with a wrong label."""
    rng = random.Random(1)
    truth = {f"f{i}": rng.gauss(0, 1) for i in range(30)}
    rows: Rows = []
    for _ in range(3_000):
        x = {name: rng.gauss(0, 1) for name in truth}
        right = sum(w * x[name] for name, w in truth.items()) > 0
        rows.append((x, right is not (rng.random() < 0.1)))
    make = {"C": 0.01} if rule is PassiveAggressive else {}
    one, apart = rule(**make), [rule(**make) for _ in range(parts)]
    for number, (x, y) in enumerate(rows[:2_000]):
        one.learn_one(x, y)
        apart[number % parts].learn_one(x, y)
    accuracy = [
        sum(model.predict_one(x) is y for x, y in rows[2_000:]) / 1_000
        for model in (one, mix(apart), apart[0])
    ]
    assert accuracy[1] > accuracy[0] - 0.02
    assert accuracy[1] > accuracy[2] + 0.01
