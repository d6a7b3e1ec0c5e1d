"""A log folded in again, against the same events in a loop of one's own, already decoded."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable

import pandas as pd
from pydantic import TypeAdapter

import hinged
from hinged_service.engine.replica import Replica
from hinged_service.model.spec import ModelSpec
from hinged_service.pipelines import Pipeline
from hinged_service.pipelines.catalogue import Steps
from hinged_service.store.log_types import Entry
from hinged_service.store.snapshot import Loaded
from hinged_service.wire.decoding import parse_log
from hinged_service.wire.position import Position
from tests.bench.events import Event, bodies, made_events
from tests.bench.table import Row, ratios

SIZE = 500
MAX_FEATURES = 1_000
TARGET = 0.5
_SCALED = ModelSpec.model_validate_json(
    '{"learner": {"type": "perceptron"}, "pipeline": [{"type": "StandardScaler"}]}'
)
_PLAIN = ModelSpec.model_validate_json('{"learner": {"type": "perceptron"}}')


def measure(rounds: int, entries: int) -> list[Row]:
    """Return the rows: per round `entries` entries of 500 events, which each side takes in turn.

    Times are processor times, so that a busy machine does not choose who waits.
    """
    return [row for features in (10, 30) for row in _rows(rounds, entries, features)]


def _rows(rounds: int, entries: int, features: int) -> list[Row]:
    arrays = _arrays(entries, features)
    spent: dict[str, list[float]] = defaultdict(list)
    for number in range(rounds + 1):
        for name, seconds in _round(arrays).items():
            if number > 0:  # the first round warms up
                spent[name].append(seconds / (entries * SIZE) * 1e6)
    at = f"{features} features"
    scaled = ratios(spent["loop, scaled"], spent["replay, scaled"])
    plain = ratios(spent["learn_many, plain"], spent["replay, plain"])
    return [
        Row(f"speed of replay / loop, scaled, {at}", scaled, target=TARGET),
        Row(f"speed of replay / learn_many, plain, {at}", plain),
        *(Row(f"{name}, {at}", values, "µs/event") for name, values in spent.items()),
    ]


def _arrays(entries: int, features: int) -> list[list[Event]]:
    """Return the events of each entry, `features` numbers each."""
    events = made_events(entries * SIZE)
    for event in events:
        event["x"] = dict(list(event["x"].items())[:features])
    return [events[start : start + SIZE] for start in range(0, len(events), SIZE)]


def _round(arrays: list[list[Event]]) -> dict[str, float]:
    """Return the seconds that each side took, entry by entry in turn."""
    sides = {
        "loop, scaled": _loop(),
        "replay, scaled": _replay(_SCALED),
        "replay, plain": _replay(_PLAIN),
        "learn_many, plain": _learn_many(),
        "decoding": _decoding,
    }
    spent = dict.fromkeys(sides, 0.0)
    for events in arrays:
        for name, side in sides.items():
            work = side(events)
            started_s = time.process_time()
            work()
            spent[name] += time.process_time() - started_s
    return spent


Side = Callable[[list[Event]], Callable[[], object]]
"""Makes of the events of an entry the work that is measured."""


def _loop() -> Side:
    steps = TypeAdapter(Steps).validate_python([{"type": "StandardScaler"}])
    pipeline = Pipeline(steps, MAX_FEATURES)
    learner = hinged.Perceptron()

    def side(events: list[Event]) -> Callable[[], object]:
        pairs = [(event["x"], event["y"]) for event in events]

        def work() -> None:
            for x, y in pairs:
                z = pipeline.learn_transform_one(x)
                learner.learn_one(z, y)

        return work

    return side


def _replay(spec: ModelSpec) -> Side:
    replica = Replica("u", spec, Loaded(Position("0-0", ""), None, {}))

    def side(events: list[Event]) -> Callable[[], object]:
        entry = Entry(Position("1-0", ""), _payload(events), frozenset(), 0, 0)
        return lambda: replica.fold_entry(entry)

    return side


def _learn_many() -> Side:
    learner = hinged.Perceptron()

    def side(events: list[Event]) -> Callable[[], object]:
        frame = pd.DataFrame([event["x"] for event in events])
        labels = pd.Series([event["y"] for event in events])
        return lambda: learner.learn_many(frame, labels)

    return side


def _decoding(events: list[Event]) -> Callable[[], object]:
    payload = _payload(events)
    return lambda: parse_log(payload)


def _payload(events: list[Event]) -> bytes:
    return b"[" + b",".join(bodies(events, labelled=True)) + b"]"
