"""What a model `m` came to in Redis, and what it must: by hand, from the log."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import redis

import hinged
from tests.support.plain_fold import fold_log
from tests.support.redis_server import RedisServer


def taken(server: RedisServer) -> int:
    """Return how many records the sources of the model have passed, dead ones included."""
    with server.client() as client, contextlib.suppress(redis.RedisError):
        offsets: Any = client.hvals("hinged:{m}:offsets")
        return sum(map(int, offsets))
    return 0


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


def letters(server: RedisServer) -> list[dict[str, str]]:
    """Return the dead letters."""
    with server.client() as client:
        found: Any = client.xrange("hinged:{m}:dead")
    return [fields for _, fields in found]
