"""The events that a model `m` has in Redis, and a fold of them by hand."""

from __future__ import annotations

import json
from typing import Any

import hinged
from tests.support.plain_fold import fold_log
from tests.support.redis_server import RedisServer


def logged(server: RedisServer) -> list[Any]:
    """Return the events in the log, in its order."""
    with server.client() as client:
        entries: Any = client.xrange("hinged:{m}:log")
    found = []
    for _, fields in entries:
        skip = set(json.loads(fields.get("skip", "[]")))
        events = json.loads(fields.get("events", "[]"))
        found += [event for i, event in enumerate(events) if i not in skip]
    return found


def folded(server: RedisServer) -> hinged.BinaryLinearClassifier:
    """Return a perceptron that learned the log."""
    with server.client() as client:
        return fold_log(client, "m", hinged.Perceptron()).learner
