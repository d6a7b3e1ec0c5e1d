"""Positions: a client reads its own writes on any worker, and a wrong position is told apart."""

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import redis

from tests.support.checks import check_problem
from tests.support.redis_server import RedisServer
from tests.support.running import serving
from tests.support.service import Service

CHAIN = "0" * 40


def ask(client: httpx.Client, call: str, model: str, position: str) -> httpx.Response:
    params = {"at_least": position}
    if call == "predict":
        return client.post(f"{model}/predict", json={"x": {"a": 1}}, params=params)
    path = model if call == "info" else f"{model}/weights"
    return client.get(path, params=params)


CALLS = pytest.mark.parametrize("call", ["predict", "info", "weights"])


@CALLS
@pytest.mark.parametrize(
    "position",
    [
        "",
        "x",
        "1",
        "1-1",
        "1-1.",
        f"1-1.{CHAIN[1:]}",
        f"1-1.{CHAIN}0",
        f"1-1.{CHAIN[1:]}G",
        f"1-1.{CHAIN[1:]}A",
        f"-1-1.{CHAIN}",
        f"+1-1.{CHAIN}",
        f"1.5-1.{CHAIN}",
        f" 1-1.{CHAIN}",
        f"1-1.{CHAIN}\n",
        f"1-1.{CHAIN}\x00",
        f"*.{CHAIN}",
        f"$.{CHAIN}",
        f"1-*.{CHAIN}",
        f"\u0661-\u0661.{CHAIN}",
        f"\uff11-\uff11.{CHAIN}",
        f"{'1' * 21}-1.{CHAIN}",
        f"{'1' * 5000}-1.{CHAIN}",
        f"1-{'9' * 20}.{CHAIN}",
        f"{'9' * 20}-1.{CHAIN}",
    ],
)
def test_a_text_that_is_not_a_position_is_refused_by_name(
    client: httpx.Client, model: str, position: str, call: str
) -> None:
    answer = ask(client, call, model, position)
    check_problem(answer, 422)
    assert [e["field"] for e in answer.json()["errors"]] == ["at_least"]


@CALLS
def test_a_position_is_waited_for_told_apart_or_taken_as_reached(
    client: httpx.Client, model: str, call: str
) -> None:
    positions = [client.get(model).json()["base"]]
    for n in range(3):
        time.sleep(0.002)  # entries of one millisecond would leave no id between them
        answer = client.post(f"{model}/learn", json={"x": {"a": 1}, "y": n % 2 == 0})
        positions.append(answer.json()["position"])
    assert len(set(positions)) == 4
    for position in positions:
        answer = ask(client, call, model, position)
        assert answer.status_code == 200
        assert answer.json()["position"] == positions[-1]
    entry_id, chain = positions[2].split(".")
    ms, seq = (int(part) for part in entry_id.split("-"))
    for other in (
        f"{entry_id}.{CHAIN}",
        f"{entry_id}.{positions[1].split('.')[1]}",
        f"{ms}-{seq + 1000}.{chain}",
    ):
        refused = ask(client, call, model, other)
        check_problem(refused, 409)
    before_the_log = ask(client, call, model, f"1-1.{CHAIN}")
    assert before_the_log.status_code == 200
    if call == "predict":
        started = time.monotonic()
        future = ask(client, call, model, f"{ms + 60_000}-0.{chain}")
        assert future.status_code == 503
        assert int(future.headers["retry-after"]) >= 1
        assert 0.5 < time.monotonic() - started < 3
    assert client.get(model).json()["events"] == 3


def test_a_position_older_than_a_trimmed_log_counts_as_reached(
    own_server: RedisServer, own_db: redis.Redis
) -> None:
    settings: dict[str, Any] = {
        "retention_bytes": 0,
        "snapshot_every_events": 1,
        "housekeeping_ms": 10,
    }
    with serving(own_server.url, **settings) as client:
        client.put("/v1/models/m", json={"learner": {"type": "perceptron"}})
        first = client.post("/v1/models/m/learn", json={"x": {"a": 1}, "y": True}).json()
        deadline = time.monotonic() + 10
        while own_db.exists("hinged:{m}:log") and _holds(own_db.xrange("hinged:{m}:log"), first):
            client.post("/v1/models/m/learn", json={"x": {"a": 1}, "y": True})
            assert time.monotonic() < deadline, "the log was not trimmed"
        assert ask(client, "predict", "/v1/models/m", first["position"]).status_code == 200


def _holds(entries: object, learned: dict[str, str]) -> bool:
    assert isinstance(entries, list)
    return learned["position"].split(".")[0] in [entry_id for entry_id, _ in entries]


@pytest.fixture
def two(own_server: RedisServer) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    settings: dict[str, Any] = {"max_staleness_ms": 60_000}
    with (
        Service(own_server.url, **settings) as a,
        Service(own_server.url, **settings) as b,
        a.client() as to_a,
        b.client() as to_b,
    ):
        yield to_a, to_b


def test_a_client_reads_its_own_writes_on_another_worker(
    two: tuple[httpx.Client, httpx.Client],
) -> None:
    writer, reader = two
    writer.put("/v1/models/m", json={"learner": {"type": "perceptron"}})
    asked = {"x": {"a": 1}}
    assert reader.post("/v1/models/m/predict", json=asked).json()["score"] == 0.0
    for n in range(1, 20):
        event = {"x": {"a": 1}, "y": n % 2 == 1}
        position = writer.post("/v1/models/m/learn", json=event).json()["position"]
        answer = reader.post("/v1/models/m/predict", json=asked, params={"at_least": position})
        # Odd turns learn true from (0, 0): score 2. Even turns learn false from (1, 1): score 0.
        assert answer.json()["score"] == (2.0 if n % 2 == 1 else 0.0)
        assert answer.json()["position"] == position


def test_a_worker_that_has_not_opened_the_model_yet_reaches_the_position_too(
    two: tuple[httpx.Client, httpx.Client],
) -> None:
    writer, reader = two
    writer.put("/v1/models/m", json={"learner": {"type": "perceptron"}})
    learned = writer.post("/v1/models/m/learn", json={"x": {"a": 1}, "y": True}).json()
    info = reader.get("/v1/models/m", params={"at_least": learned["position"]}).json()
    assert (info["events"], info["position"]) == (1, learned["position"])
