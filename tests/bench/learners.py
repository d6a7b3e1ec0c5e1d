"""The learner in process, against River's own perceptron."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from statistics import median
from typing import Any

from river import linear_model

import hinged
from tests.bench.events import POOL, Event, made_events
from tests.bench.table import Row

SLICE = 500


def measure(rounds: int, count: int) -> list[Row]:
    """Return the rows: per round `count` events, in slices that both learners take in turn.

    Times are processor times, so that a busy machine does not choose who waits.
    """
    events = made_events(count, POOL)
    slices = [events[start : start + SLICE] for start in range(0, count, SLICE)]
    values: dict[str, list[float]] = defaultdict(list)
    for number in range(rounds + 1):
        times = _round(slices)
        if number > 0:  # the first round warms up
            for call in ("learn_one", "predict_one"):
                river, ours = times[call, "river"], times[call, "hinged"]
                quotients = [a / b for a, b in zip(river, ours, strict=True)]
                values[f"{call}: River / hinged"].append(median(quotients))
                values[f"{call}, River"].append(median(river) / SLICE * 1e6)
                values[f"{call}, hinged"].append(median(ours) / SLICE * 1e6)
    targets = {"learn_one: River / hinged": 2.0, "predict_one: River / hinged": 1.5}
    return [
        Row(name, found, "×" if name in targets else "µs", target=targets.get(name))
        for name, found in values.items()
    ]


def _round(slices: list[list[Event]]) -> dict[tuple[str, str], list[float]]:
    learners: dict[str, Any] = {"hinged": hinged.Perceptron(), "river": linear_model.Perceptron()}
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    for number, events in enumerate(slices):
        order = list(learners) if number % 2 else list(reversed(learners))
        for name in order:
            times["learn_one", name].append(_learn_s(learners[name].learn_one, events))
        for name in order:
            times["predict_one", name].append(_predict_s(learners[name].predict_one, events))
    return times


def _learn_s(learn_one: Callable[[Any, Any], Any], events: list[Event]) -> float:
    pairs = [(event["x"], event["y"]) for event in events]
    started_s = time.process_time()
    for x, y in pairs:
        learn_one(x, y)
    return time.process_time() - started_s


def _predict_s(predict_one: Callable[[Any], Any], events: list[Event]) -> float:
    xs = [event["x"] for event in events]
    started_s = time.process_time()
    for x in xs:
        predict_one(x)
    return time.process_time() - started_s
