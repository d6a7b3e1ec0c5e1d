"""ROC AUC: the share of pairs in the right order, counted pair by pair here."""

import json
import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from pydantic import TypeAdapter

from hinged_service.evaluation.metrics import Metrics
from hinged_service.evaluation.specs import MetricSpecs
from tests.support.shared_service import NewModel

OFF = 0.002
SPECS: Any = TypeAdapter(MetricSpecs).validate_json(
    json.dumps(["roc_auc", {"type": "rolling", "metric": "roc_auc", "window": 300}])
)
Stream = Iterator[tuple[bool, float]]


def counted(stream: list[tuple[bool, float]]) -> float | None:
    negative = [v for y, v in stream if not y]
    positive = [v for y, v in stream if y]
    if not (negative and positive):
        return None
    right = sum((p > n) + (p == n) / 2 for p in positive for n in negative)
    return right / (len(positive) * len(negative))


def gauss(rng: random.Random) -> Stream:
    while True:
        y = rng.random() < 0.3
        yield y, rng.gauss(float(y), 1.0)


def narrow(rng: random.Random) -> Stream:
    """A perfect ranking between scores that give the same probability to the last digit."""
    while True:
        y = rng.random() < 0.5
        yield y, 1000.0 + rng.random() + 2.0 * y


def ties(rng: random.Random) -> Stream:
    while True:
        y = rng.random() < 0.3
        yield y, float(rng.randrange(4) + y)


def rare(rng: random.Random) -> Stream:
    while True:
        y = rng.random() < 0.01
        yield y, rng.gauss(2.0 * y, 1.0)


def shrinking(rng: random.Random) -> Stream:
    """Scores that all end up between two that stood next to each other."""
    scale = 1000.0
    while True:
        y = rng.random() < 0.5
        scale *= 0.997
        yield y, scale * rng.gauss(float(y), 1.0)


def sorted_by_label(rng: random.Random) -> Stream:
    for y in (False, True):
        for i in range(3_000):
            yield y, i / 3_000 + 0.2 * y


@pytest.mark.parametrize("kind", [gauss, narrow, ties, rare, shrinking, sorted_by_label])
def test_it_is_near_the_count_of_all_pairs(kind: Callable[[random.Random], Stream]) -> None:
    ours = Metrics(SPECS, False, by_score=True)
    seen: list[tuple[bool, float]] = []
    for (y, score), number in zip(kind(random.Random(7)), range(6_000), strict=False):
        ours.update(y, score > 0.0, {}, score)
        seen.append((y, score))
        if number in (0, 30, 499, 5_999):
            report = ours.report()
            whole, recent = counted(seen), counted(seen[-300:])
            assert report["rolling_roc_auc_300"] == pytest.approx(recent, abs=1e-12)
            off = 1e-12 if number < 500 or kind is narrow else OFF
            assert report["roc_auc"] == pytest.approx(whole, abs=off)
    state = json.loads(json.dumps(ours.get_state(), allow_nan=False))
    assert len(json.dumps(state)) < 200_000
    again = Metrics(SPECS, False, by_score=True)
    again.set_state(state)
    assert again.report() == ours.report()
    for one in (ours, again):
        one.update(True, True, {}, 0.25)
    assert again.get_state() == ours.get_state()


def test_counts_of_an_earlier_version_between_ten_thresholds_are_read() -> None:
    counts = [[0, 0, 6, 2, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 2, 0, 0, 0, 0, 0, 6, 0]]
    old = {
        "version": 1,
        "counts": {
            "roc_auc": {"counts": counts, "window": []},
            "roc_auc/300": {"counts": counts, "window": [[0, 2], [0, 3], [1, 3], [1, 9]]},
        },
        "errors": {},
    }
    for by_score in (False, True):
        ours = Metrics(SPECS, False, by_score=by_score)
        ours.set_state(old)
        # 64 pairs, of which 4 are ties; 4 pairs, of which 1 is a tie
        assert ours.report() == {"roc_auc": 62 / 64, "rolling_roc_auc_300": 3.5 / 4}
        ours.update(True, True, {True: 0.9999}, math.log(0.9999 / 0.0001))
        assert ours.report()["roc_auc"] == pytest.approx(70 / 72)


@pytest.mark.parametrize("learner", ["perceptron", "averaged_perceptron", "hedge"])
def test_a_model_that_ranks_perfectly_scores_1(
    client: httpx.Client, new_model: NewModel, learner: str
) -> None:
    rolling = {"type": "rolling", "metric": "roc_auc", "window": 100}
    path = new_model(learner={"type": learner}, metrics=["roc_auc", rolling])

    def report() -> Any:
        return client.get(path).json()["metrics"]

    assert report() == {"roc_auc": None, "rolling_roc_auc_100": None}
    learn = f"{path}/learn"
    client.post(learn, json=[{"x": {"a": 1}, "y": True}] * 3).raise_for_status()
    assert report() == {"roc_auc": None, "rolling_roc_auc_100": None}, "one label only"
    client.post(learn, json=[{"x": {"a": -1}, "y": False}] * 3).raise_for_status()
    events = [{"x": {"a": 50 if y else -50}, "y": y} for y in (True, False)] * 100
    client.post(learn, json=events).raise_for_status()
    assert report()["rolling_roc_auc_100"] == 1.0
    assert report()["roc_auc"] > 0.98
