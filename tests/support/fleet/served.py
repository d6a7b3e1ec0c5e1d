"""Served and stored state, in a form that is equal only bit for bit."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import httpx
import redis

from tests.support.plain_fold import Stored, read_snapshot
from tests.support.worker import Worker

GIVE_UP_S = 60.0
_COUNTERS = ("events", "mistakes", "updates", "hinge_loss", "perceptron_loss", "radius")


def bits(values: Mapping[str, float]) -> dict[str, str]:
    """Return the numbers in a form that is equal only if they are, the sign of zero included."""
    return {name: float(value).hex() for name, value in values.items()}


def fetch(worker: Worker, path: str, at_least: str) -> Any:
    """Return what a worker says once it has reached a position."""
    deadline_s = time.monotonic() + GIVE_UP_S
    while True:
        response = httpx.get(
            f"{worker.url}{path}", params={"at_least": at_least}, timeout=10, verify=False
        )
        if response.status_code == 200:
            return response.json()
        assert response.status_code == 503, response.text
        assert time.monotonic() < deadline_s, response.text


def served(worker: Worker, path: str, end: str) -> tuple[dict[str, float], dict[str, int | float]]:
    """Return the weights and the accounts of a model that a worker serves at the log's end."""
    model, weights = fetch(worker, path, end), fetch(worker, f"{path}/weights", end)
    assert model["position"] == weights["position"] == end
    assert model["features"] == len(weights["weights"])
    assert model["rejected"] == 0
    accounts = {name: model[name] for name in (*_COUNTERS, "overflows")}
    accounts |= {"ignored": model["ignored_features"], "intercept": weights["intercept"]}
    return weights["weights"], accounts


def wait_for_snapshot(client: redis.Redis, stream: str, uid: str, position: str) -> Stored:
    """Return the snapshot once it stands at `position`."""
    deadline_s = time.monotonic() + GIVE_UP_S
    while True:
        stored = read_snapshot(client, stream, uid)
        if stored is not None and stored.position == position:
            return stored
        assert time.monotonic() < deadline_s, "no snapshot was taken at the end of the log"
        time.sleep(0.02)
