"""The learner in process, against River's own perceptron."""

from __future__ import annotations

import time
from typing import Any

from river import linear_model

import hinged
from tests.bench.events import POOL, Event, made_events
from tests.bench.table import Row, ratios


def measure(rounds: int, count: int) -> list[Row]:
    """Return the rows: `count` events per round, both learners in each round, taking turns."""
    events = made_events(count, POOL)
    learning: dict[str, list[float]] = {"hinged": [], "river": []}
    predicting: dict[str, list[float]] = {"hinged": [], "river": []}
    for number in range(rounds + 1):
        learners = {"hinged": hinged.Perceptron(), "river": linear_model.Perceptron()}
        order = list(learners) if number % 2 else list(reversed(learners))
        for name in order:
            learn_s = _learn_s(learners[name], events)
            predict_s = _predict_s(learners[name], events)
            if number > 0:  # the first round warms up
                learning[name].append(learn_s / count * 1e6)
                predicting[name].append(predict_s / count * 1e6)
    return [
        Row("learn_one: River / hinged", ratios(learning["river"], learning["hinged"]), target=2),
        Row(
            "predict_one: River / hinged",
            ratios(predicting["river"], predicting["hinged"]),
            target=1.5,
        ),
        *(Row(f"learn_one, {name}", values, "µs") for name, values in learning.items()),
        *(Row(f"predict_one, {name}", values, "µs") for name, values in predicting.items()),
    ]


def _learn_s(learner: Any, events: list[Event]) -> float:
    learn_one = learner.learn_one
    pairs = [(event["x"], event["y"]) for event in events]
    started_s = time.perf_counter()
    for x, y in pairs:
        learn_one(x, y)
    return time.perf_counter() - started_s


def _predict_s(learner: Any, events: list[Event]) -> float:
    predict_one = learner.predict_one
    xs = [event["x"] for event in events]
    started_s = time.perf_counter()
    for x in xs:
        predict_one(x)
    return time.perf_counter() - started_s
