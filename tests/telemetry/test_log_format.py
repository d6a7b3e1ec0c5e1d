"""Logs: a line per change of state, lines of JSON, ids of requests, and nothing that was posted."""

import contextvars
import io
import json
import logging
import sys
import threading
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from hinged_service.store.keys import StreamKeys
from hinged_service.telemetry.log_format import JsonLines, Rarely
from hinged_service.telemetry.request_context import current
from hinged_service.telemetry.state_log import StateChangeLog
from tests.cli.conftest import run_hinged
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.running import serving
from tests.support.service import Service

SPEC = {"learner": {"type": "perceptron"}}


class Lines:
    def __init__(self) -> None:
        self._stream = io.StringIO()
        self.handler = logging.StreamHandler(self._stream)
        self.handler.setFormatter(JsonLines())

    @property
    def text(self) -> str:
        return self._stream.getvalue()

    def all(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]

    def messages(self) -> list[str]:
        return [line["message"] for line in self.all()]


@pytest.fixture
def lines() -> Iterator[Lines]:
    logger, lines = logging.getLogger("hinged_service"), Lines()
    level = logger.level
    logger.addHandler(lines.handler)
    logger.setLevel(logging.DEBUG)
    yield lines
    logger.setLevel(level)
    logger.removeHandler(lines.handler)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    """A server that loses nothing when it is killed."""
    server = RedisServer(tmp_path / "redis", fsync="always")
    server.start()
    yield server
    server.kill()


def test_redis_killed_under_load_is_two_lines(server: RedisServer, lines: Lines) -> None:
    stop = threading.Event()
    statuses: list[int] = []

    def load(service: Service, model: str) -> None:
        with service.client() as client:
            while not stop.is_set():
                for call in ("learn", "predict"):
                    body = {"x": {"payload": 1}, "y": True} if call == "learn" else {"x": {"a": 1}}
                    answer = client.post(f"/v1/models/{model}/{call}", json=body)
                    statuses.append(answer.status_code)

    service = Service(server.url, append_timeout_ms=2_000, max_staleness_ms=0)
    with service, service.client() as client:
        names = [f"m{i}" for i in range(4)]
        for name in names:
            assert client.put(f"/v1/models/{name}", json=SPEC).status_code == 201
        threads = [threading.Thread(target=load, args=(service, name)) for name in names]
        for thread in threads:
            thread.start()
        try:
            wait_until(lambda: len(statuses) > 100, 30)
            assert lines.messages() == []
            server.kill()
            wait_until(lambda: statuses.count(503) >= len(names), 30)
            server.start()
            wait_until(lambda: "Redis is back." in lines.text, 30)
            seen = len(statuses)
            wait_until(lambda: len(statuses) > seen + 100, 30)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
    logged = [line for line in lines.messages() if "Redis" in line]
    assert len(logged) == 2, logged
    assert logged[1] == "Redis is back."
    assert len(lines.messages()) <= 2 + len(names)  # one per model whose log lost its end
    assert "payload" not in lines.text


def test_a_model_set_aside_is_one_line(
    own_server: RedisServer, own_db: redis.Redis, lines: Lines
) -> None:
    with Service(own_server.url) as service, service.client() as client:
        client.put("/v1/models/m", json=SPEC)
        client.post("/v1/models/m/learn", json={"x": {"a": 1}, "y": True})
    own_db.hset(StreamKeys("m").meta, "chain", "0" * 40)  # the log has another past
    own_db.delete(StreamKeys("m").log)
    own_db.xadd(StreamKeys("m").log, {"another": "log"})
    assert lines.messages() == []
    with Service(own_server.url) as service, service.client() as client:
        answers = [client.post("/v1/models/m/predict", json={"x": {"a": 1}}) for _ in range(20)]
    assert {answer.status_code for answer in answers} == {503}
    rebuilt, line = lines.all()
    assert "loading the snapshot" in rebuilt["message"]
    assert len(rebuilt["position"].partition(".")[2]) == 40
    assert line["message"].startswith("model m is set aside: ")
    assert (line["level"], line["logger"]) == ("error", "hinged_service.engine.group_commit")
    assert line["model"] == "m"
    assert datetime.fromisoformat(line["time"]).tzinfo is not None


@pytest.fixture
def client(redis_url: str) -> Iterator[httpx.Client]:
    with serving(redis_url) as client:
        client.put("/v1/models/m", json=SPEC)
        yield client


@pytest.mark.parametrize("path", ["/v1/models/none/learn", "/v1/models/none", "/made/up"])
def test_an_error_has_the_id_of_its_request(client: httpx.Client, path: str) -> None:
    method = "POST" if path.endswith("learn") else "GET"
    answer = client.request(method, path, content=b"{", headers={"x-request-id": "mine-1"})
    assert answer.status_code in (400, 404)
    assert answer.headers.get_list("x-request-id") == ["mine-1"]
    assert answer.json()["request_id"] == "mine-1"


@pytest.mark.parametrize("given", [b"", b"a b", b"x" * 129, b"tab\there", b"\xff\xfe"])
def test_an_id_that_is_none_is_replaced(client: httpx.Client, given: bytes) -> None:
    answers = [client.get("/made/up", headers={b"x-request-id": given}) for _ in range(2)]
    ids = [answer.headers["x-request-id"] for answer in answers]
    assert [answer.json()["request_id"] for answer in answers] == ids
    assert len(set(ids)) == 2
    assert all(len(text) == 16 and text.isalnum() for text in ids)


def test_an_answer_without_error_has_it_too(client: httpx.Client) -> None:
    answer = client.get("/v1/models/m", headers={"x-request-id": "mine-2"})
    assert answer.headers["x-request-id"] == "mine-2"
    assert client.get("/healthz").headers["x-request-id"]


def test_a_record_as_json() -> None:
    try:
        json.loads("of\nits own")
    except ValueError:
        record = logging.getLogger("a.b").makeRecord(
            *("a.b", logging.ERROR, "file", 1, 'say "%s"\n', ("it",)),
            exc_info=sys.exc_info(),
            extra={"model": "m", "position": "1-0"},
        )
    line = JsonLines().format(record)
    assert "\n" not in line
    found = json.loads(line)
    assert found["message"] == 'say "it"\n'
    assert (found["level"], found["logger"]) == ("error", "a.b")
    assert (found["model"], found["position"]) == ("m", "1-0")
    assert "JSONDecodeError: Expecting value" in found["exception"]
    assert "request_id" not in found


def test_a_record_of_a_request() -> None:
    def logged_record() -> dict[str, Any]:
        current.set({"headers": [(b"x-request-id", b"mine")], "path_params": {"model": "m" * 999}})
        record = logging.getLogger("a").makeRecord("a", logging.INFO, "file", 1, "text", (), None)
        found: dict[str, Any] = json.loads(JsonLines().format(record))
        return found

    found = contextvars.copy_context().run(logged_record)
    assert (found["request_id"], found["model"]) == ("mine", "m" * 256)


def test_hinged_serve_logs_lines_of_json(redis_url: str, tmp_path: Path) -> None:
    done = run_hinged(
        *("serve", "--port", "0"),
        HINGED_LOG_FORMAT="json",
        HINGED_LOG_LEVEL="error",
        HINGED_REDIS_URL=redis_url,
        HINGED_METRICS_DIR=str(tmp_path / "none"),
    )
    assert done.code == 1
    lines = [json.loads(line) for line in done.err.splitlines()]
    assert any("HINGED_METRICS_DIR" in line["message"] for line in lines)
    assert not any("Traceback" in line["message"] for line in lines)
    assert {line["level"] for line in lines} == {"error"}


def test_a_state_is_told_when_it_changes(lines: Lines) -> None:
    logger, changes = logging.getLogger("hinged_service.test"), StateChangeLog()
    for _ in range(100):
        changes.enter("a", logger, "%s is bad", "a")
        changes.enter("b", logger, "100 % bad")
    changes.enter("a", logger, "%s is worse", "a")
    for _ in range(100):
        changes.leave("a", logger, "%s is good", "a")
        changes.leave("b", logger)
    changes.enter("b", logger, "100 % bad")
    assert lines.messages() == ["a is bad", "100 % bad", "a is worse", "a is good", "100 % bad"]


def test_a_state_that_lasts_is_told_again_with_how_often(lines: Lines) -> None:
    logger, changes = logging.getLogger("hinged_service.test"), StateChangeLog()
    for _ in range(4):
        changes.enter("a", logger, "bad", every_s=3600)
    changes.enter("a", logger, "bad", every_s=0)
    assert lines.messages() == ["bad", "bad (and 3 times more since it was last logged)"]


def test_not_more_than_a_thousand_states_are_remembered(lines: Lines) -> None:
    logger, changes = logging.getLogger("hinged_service.test"), StateChangeLog()
    for i in range(1_001):
        changes.enter(i, logger, "bad")
    changes.enter(1_000, logger, "bad")
    changes.enter(0, logger, "bad")
    assert len(lines.messages()) == 1_002


def test_repeated_errors_of_exporters_are_logged_once_a_minute() -> None:
    rarely, logger = Rarely(), logging.getLogger("opentelemetry.exporter")

    def passes(message: str, at_s: float) -> bool:
        record = logger.makeRecord(logger.name, logging.WARNING, "file", 1, message, (at_s,), None)
        record.created = at_s
        return bool(rarely.filter(record))

    assert [passes("failed %s", at_s) for at_s in (1000, 1001, 1059, 1061)] == [
        *(True, False, False, True)
    ]
    assert passes("other %s", 1061)
