"""The events that are sent: 30 numeric features each, labels that can be learned."""

from __future__ import annotations

import random
import sys
from typing import Any

import orjson

FEATURES = 30
POOL = 20_000

Event = dict[str, Any]


def made_events(count: int, names: int = FEATURES, seed: int = 1) -> list[Event]:
    """Return events of 30 features out of `names`, the label linear in them, 5 % wrong."""
    rng = random.Random(seed)
    all_names = [sys.intern(f"feature_{i}") for i in range(names)]
    truth = {name: rng.gauss(0, 1) for name in all_names}
    events: list[Event] = []
    for _ in range(count):
        present = all_names if names == FEATURES else rng.sample(all_names, FEATURES)
        x = {name: round(rng.gauss(0, 1), 6) for name in present}
        y = sum(truth[name] * value for name, value in x.items()) > 0
        events.append({"x": x, "y": y is not (rng.random() < 0.05)})
    return events


def named_bodies(events: list[Event], count: int, prefix: str) -> list[bytes]:
    """Return request bodies without labels, each with an id of its own."""
    chosen = (events[i % len(events)]["x"] for i in range(count))
    return [orjson.dumps({"id": f"{prefix}{i}", "x": x}) for i, x in enumerate(chosen)]


def bodies(events: list[Event], *, labelled: bool) -> list[bytes]:
    """Return each event as a request body, with or without its label."""
    return [orjson.dumps(event if labelled else {"x": event["x"]}) for event in events]
