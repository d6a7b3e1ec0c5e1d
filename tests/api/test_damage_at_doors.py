"""A stored key of another type: each way into a model names the damage, and none fails."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
import redis

from tests.support.checks import check_problem
from tests.support.running import serving

MODEL = "/v1/models/m"
EVENT: dict[str, Any] = {"x": {"a": 1}, "y": True, "id": "e"}
QUESTION: dict[str, Any] = {"x": {"a": 1}, "id": "q"}


@pytest.mark.parametrize("lines", [False, True], ids=["JSON", "lines"])
@pytest.mark.parametrize(
    ("key", "call", "event"),
    [("pending:0", "predict", QUESTION), ("pending:0", "learn", EVENT), ("seen:0", "learn", EVENT)],
)
def test_damage_is_named(
    redis_url: str, db: redis.Redis, key: str, call: str, event: dict[str, Any], lines: bool
) -> None:
    with serving(redis_url) as client:
        client.put(MODEL, json={"learner": {"type": "perceptron"}}).raise_for_status()
        client.post(f"{MODEL}/predict", json={"x": {"a": 1}, "id": "first"}).raise_for_status()
        db.delete(f"hinged:{{m}}:{key}")
        db.set(f"hinged:{{m}}:{key}", "text")
        answer = _posted(client, f"{MODEL}/{call}", event, lines)
        problem = check_problem(answer, 503)
        assert problem["detail"] == "What Redis holds is damaged: a stored key is of another type."
        assert client.post(f"{MODEL}/predict", json={"x": {"a": 1}}).status_code == 200


def _posted(client: httpx.Client, path: str, event: dict[str, Any], lines: bool) -> httpx.Response:
    kind = "application/x-ndjson" if lines else "application/json"
    return client.post(path, content=json.dumps(event), headers={"content-type": kind})
