"""`hinged doctor`: each thing that is wrong is named with what to change."""

from __future__ import annotations

import http.server
import json
import threading
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.api.test_startup import pretending
from tests.cli.conftest import run_hinged
from tests.support.redis_server import RedisServer, free_port
from tests.support.service import Service

FIT = "redis_version:7.2.4\r\nvalkey_version:9.1.2\r\naof_enabled:1"


def examined(url: str, *options: str, **variables: str) -> tuple[int, dict[str, tuple[str, str]]]:
    """Return the exit code and by thing its state and text."""
    ran = run_hinged("doctor", "--output", "json", *options, HINGED_REDIS_URL=url, **variables)
    assert ran.err == ""
    found: list[dict[str, Any]] = json.loads(ran.out)
    return ran.code, {one["what"]: (one["state"], one["text"]) for one in found}


def test_a_fit_redis_and_service(service: Service) -> None:
    url = service.settings.redis_url
    assert url is not None
    code, found = examined(url, "--url", service.url)
    assert code == 0
    assert {state for state, _ in found.values()} == {"ok"}
    assert {"eviction", "persistence", "memory", "clock", "replicas", "disk"} <= found.keys()
    ran = run_hinged("doctor", HINGED_REDIS_URL=url, HINGED_URL=service.url)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[0].split() == ["what", "state", "text"]


def test_a_redis_that_loses_the_log(own_server: RedisServer, own_db: redis.Redis) -> None:
    own_db.config_set("maxmemory-policy", "allkeys-lru")
    own_db.config_set("appendonly", "no")
    used = own_db.info("memory")["used_memory"]
    own_db.config_set("maxmemory", used)
    code, found = examined(own_server.url)
    assert code == 1
    assert found["eviction"][0] == "fault"
    assert "noeviction" in found["eviction"][1]
    assert found["persistence"][0] == "fault"
    assert "appendonly yes" in found["persistence"][1]
    assert found["memory"][0] == "warning"
    assert "maxmemory" in found["memory"][1]


def test_a_redis_that_takes_no_writes(own_server: RedisServer, own_db: redis.Redis) -> None:
    own_db.config_set("min-replicas-to-write", 1)
    code, found = examined(own_server.url)
    assert (code, found["redis"][0]) == (1, "fault")


@pytest.mark.parametrize(
    ("info", "what", "state", "code", "text"),
    [
        ("redis_version:7.0.15\r\naof_enabled:1", "version", "warning", 0, "Valkey 7.2.15"),
        ("redis_version:6.2.1\r\naof_enabled:1", "redis", "fault", 1, "too old"),
        (
            f"{FIT}\r\nserver_time_usec:1000000",
            *("clock", "warning", 0, "behind"),
        ),
        (
            f"{FIT}\r\nused_memory:600\r\nmaxmemory:0\r\ntotal_system_memory:1000",
            *("memory", "warning", 0, "60%"),
        ),
    ],
)
def test_the_facts_of_a_server_are_checked(
    info: str, what: str, state: str, code: int, text: str
) -> None:
    with pretending(info) as url:
        done, found = examined(url)
    assert (done, found[what][0]) == (code, state)
    assert text in found[what][1]


def test_what_is_not_there(own_server: RedisServer) -> None:
    nowhere = f"127.0.0.1:{free_port()}"
    code, found = examined(f"redis://{nowhere}/0")
    assert (code, found["redis"][0]) == (1, "fault")
    code, found = examined(own_server.url, "--url", f"http://{nowhere}")
    assert (code, found[f"http://{nowhere}"][0]) == (1, "fault")


@pytest.mark.parametrize(
    ("status", "body"),
    [(200, "[]"), (200, '{"warnings": 5}'), (503, '{"errors": ["away"]}'), (404, "<p>Not here")],
)
def test_another_program_answers(own_server: RedisServer, status: int, body: str) -> None:
    class Answering(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002

    with http.server.HTTPServer(("127.0.0.1", 0), Answering) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        code, found = examined(own_server.url, "--url", url)
        server.shutdown()
    text = f"Another program answers there, with {status}: check the address."
    assert (code, found[url]) == (1, ("fault", text))


def test_settings(own_server: RedisServer, tmp_path: Path) -> None:
    code, found = examined(own_server.url, HINGED_REDIS_ULR="x", HINGED_PURE="1")
    assert (code, found["HINGED_REDIS_ULR"][0], "HINGED_PURE" in found) == (0, "warning", False)
    code, found = examined(own_server.url, HINGED_MAX_MODELS="many")
    assert (code, found["HINGED_MAX_MODELS"][0]) == (1, "fault")
    code, found = examined(own_server.url, HINGED_KEYS_FILE=str(tmp_path / "none"))
    assert (code, found["HINGED_KEYS"][0]) == (1, "fault")
