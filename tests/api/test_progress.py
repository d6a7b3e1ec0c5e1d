"""Progress of long calls, for callers that accept lines."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx
import pytest

from hinged_service.store import checkpoints
from tests.support.slow_service import WEIGHTS, SlowService

M = "/v1/models/m"
LINES = {"accept": "application/x-ndjson"}
names = itertools.count()


@pytest.fixture
def caller(slow: SlowService) -> Iterator[httpx.Client]:
    with slow.service.client() as made:
        yield made


@pytest.fixture
def kept(caller: httpx.Client) -> str:
    """The uid of a fresh checkpoint."""
    uid: str = caller.post(f"{M}/checkpoints", json={}).json()["uid"]
    return uid


class Answer(NamedTuple):
    """An answer with progress, in its parts."""

    lines: list[dict[str, Any]]
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def steps(self) -> list[str]:
        return list(dict.fromkeys(line["step"] for line in self.lines))


def read_answer(answer: httpx.Response) -> Answer:
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/x-ndjson"
    lines: list[dict[str, Any]] = []
    rest = answer.content
    while True:
        line, _, rest = rest.partition(b"\n")
        document = json.loads(line)
        if "status" in document:
            return Answer(lines, document["status"], document["headers"], rest)
        assert document.keys() == {"step", "done", "total"}
        assert 0 <= document["done"] <= document["total"]
        lines.append(document)


def test_a_checkpoint_tells_how_much_is_written(caller: httpx.Client) -> None:
    answer = read_answer(caller.post(f"{M}/checkpoints", json={"name": "told"}, headers=LINES))
    assert answer.steps == ["write"]
    assert {line["total"] for line in answer.lines} == {WEIGHTS}
    done = [line["done"] for line in answer.lines]
    assert done == sorted(done)
    assert done[-1] > 0
    assert (answer.status, answer.headers["content-type"]) == (201, "application/json")
    (listed,) = [c for c in caller.get(f"{M}/checkpoints").json() if c["name"] == "told"]
    assert json.loads(answer.body) == listed


def test_an_export_sends_the_same_bytes_behind_its_lines(caller: httpx.Client, kept: str) -> None:
    plain = caller.get(f"{M}/checkpoints/{kept}/export")
    assert plain.headers["content-type"] == "application/json"
    assert abs(int(plain.headers["x-hinged-bytes"]) / len(plain.content) - 1) < 0.1
    answer = read_answer(caller.get(f"{M}/checkpoints/{kept}/export", headers=LINES))
    assert answer.steps == ["read"]
    assert answer.headers["x-hinged-bytes"] == plain.headers["x-hinged-bytes"]
    assert (answer.status, answer.body) == (200, plain.content)
    head = caller.head(f"{M}/checkpoints/{kept}/export", headers=LINES)
    assert (head.status_code, head.content) == (200, b"")


def test_an_import_and_a_restore_tell_their_progress(caller: httpx.Client, kept: str) -> None:
    document = caller.get(f"{M}/checkpoints/{kept}/export").content
    new = f"new-{next(names)}"
    headers = {"content-type": "application/json", **LINES}
    answer = read_answer(caller.post(f"/v1/models/{new}/import", content=document, headers=headers))
    assert answer.steps[-1] == "write"  # to check so few is quick
    assert (answer.status, json.loads(answer.body)["name"]) == (201, new)
    assert caller.get(f"/v1/models/{new}").json()["features"] == WEIGHTS
    answer = read_answer(caller.post(f"{M}/restore", json={"checkpoint": kept}, headers=LINES))
    assert answer.steps == ["read"]
    assert answer.status == 200
    assert json.loads(answer.body)["frozen"] is False


def test_what_is_over_soon_is_answered_as_ever(caller: httpx.Client) -> None:
    refused = caller.post(f"{M}/restore", json={"checkpoint": "never made"}, headers=LINES)
    assert refused.status_code == 404
    assert refused.headers["content-type"] == "application/problem+json"
    listed = caller.get("/v1/models", headers=LINES)
    assert (listed.status_code, listed.headers["content-type"]) == (200, "application/json")
    head = caller.head(f"{M}/checkpoints/never-made/export", headers=LINES)
    assert head.status_code == 404


def test_a_refusal_in_the_middle_is_told_in_the_end(
    caller: httpx.Client, slow: SlowService, kept: str
) -> None:
    caller.post(f"{M}/checkpoints", json={"name": "taken"}).raise_for_status()
    answer = read_answer(caller.post(f"{M}/checkpoints", json={"name": "taken"}, headers=LINES))
    assert answer.lines
    assert (answer.status, answer.headers["content-type"]) == (409, "application/problem+json")
    problem = json.loads(answer.body)
    assert (problem["status"], problem["title"]) == (409, "Conflict")
    counted = r'hinged_http_requests_total{.*checkpoints",status="409".*} 1\.0'
    assert re.search(counted, caller.get("/metrics").text)
    weights = f"hinged:{{m}}:checkpoint:{kept}:weights"
    assert slow.db.hdel(weights, "a name that takes some room 7") == 1
    answer = read_answer(caller.get(f"{M}/checkpoints/{kept}/export", headers=LINES))
    assert answer.lines
    assert (answer.status, json.loads(answer.body)["status"]) == (503, 503)
    plain = caller.get(f"{M}/checkpoints/{kept}/export")
    assert json.loads(answer.body)["detail"] == plain.json()["detail"]


def test_a_failure_in_the_middle_is_told_without_its_reason(
    caller: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise LookupError("a secret")

    monkeypatch.setattr(checkpoints, "enter", fail)
    answer = read_answer(caller.post(f"{M}/checkpoints", json={}, headers=LINES))
    assert answer.lines
    assert answer.status == 500
    assert b"a secret" not in answer.body
    assert json.loads(answer.body)["title"] == "Internal error"


def test_a_caller_that_hangs_up_ends_the_work(caller: httpx.Client) -> None:
    with caller.stream("POST", f"{M}/checkpoints", json={"name": "left"}, headers=LINES) as answer:
        assert b'"step":"write"' in next(answer.iter_bytes())
    # This one is kept later than the other would have been.
    again = caller.post(f"{M}/checkpoints", json={"name": "left"})
    assert again.status_code == 201


def test_a_model_that_is_not_in_memory_tells_how_much_is_loaded(
    caller: httpx.Client, kept: str
) -> None:
    new, alias = f"new-{next(names)}", f"alias-{next(names)}"
    document = caller.get(f"{M}/checkpoints/{kept}/export").content
    headers = {"content-type": "application/json"}
    caller.post(f"/v1/models/{new}/import", content=document, headers=headers).raise_for_status()
    caller.put(f"/v1/aliases/{alias}", json={"model": new}).raise_for_status()
    answer = read_answer(caller.get(f"/v1/models/{alias}", headers=LINES))
    assert answer.steps == ["load"]
    assert {line["total"] for line in answer.lines} == {WEIGHTS}
    assert (answer.status, json.loads(answer.body)["name"]) == (200, new)
    assert caller.get(f"/v1/models/{new}", headers=LINES).json()["features"] == WEIGHTS


def test_a_start_from_another_model_and_an_upgrade_tell_their_progress(
    caller: httpx.Client, kept: str
) -> None:
    new = f"new-{next(names)}"
    spec = {"learner": {"type": "perceptron"}, "start": {"model": "m"}}
    answer = read_answer(caller.put(f"/v1/models/{new}", json=spec, headers=LINES))
    assert (answer.steps, answer.status) == (["write"], 201)
    wanted = {"name": f"new-{next(names)}", "checkpoint": kept}
    answer = read_answer(caller.post(f"{M}/replay", json=wanted, headers=LINES))
    assert (answer.steps, answer.status) == (["read"], 201)
    assert json.loads(answer.body)["name"] == wanted["name"]
    answer = read_answer(caller.post(f"{M}/upgrade", headers=LINES))
    assert (answer.steps, answer.status) == (["read"], 200)
