"""Nothing that `hinged serve` writes or answers tells a secret, though it logs all it can."""

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from hinged_service.api.api_keys import new_key
from tests.store.transport.workload import QUICK, work
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer

MARK = "zebra-crossing"
PASSWORD = "walrus-tusk"
SLOW = re.compile(r"Executing <.* took [\d.]+ seconds")
"""Python's own debugging of asyncio shows what a task on a machine that stood still returned."""
STRANGER = "hinged_stranger-danger"
SAFE_HEADERS = {"x-content-type-options": "nosniff", "cache-control": "no-store"}

BAD: list[tuple[str, bytes]] = [
    ("application/json", f'{{"x": {{"{MARK}": 1}}, "y": '.encode()),
    ("application/json", f'{{"x": {{"a": "{MARK}"}}, "y": true}}'.encode()),
    ("application/json", f'{{"x": {{"a": NaN}}, "y": "{MARK}"}}'.encode()),
    ("application/json", f'{{"x": {{"a": 1e999}}, "id": "{MARK * 40}", "y": true}}'.encode()),
    ("application/json", f'[{{"x": {{"a": 1}}, "y": true}}, "{MARK}"]'.encode()),
    ("application/json", f'{{"{MARK}": 1}}'.encode()),
    ("application/json", MARK.encode() + b"\xff\xfe"),
    ("application/json", b"[" * 100_000 + MARK.encode()),
    ("application/x-ndjson", f'{{"x": {{"{MARK}": []}}}}\n{MARK}\n'.encode()),
    ("text/csv", MARK.encode()),
    (f"text/{MARK}", MARK.encode()),
]


class Served:
    """`hinged serve` as a process, what it wrote, and the answers it gave."""

    def __init__(self, server: RedisServer, log: Path) -> None:
        self.log = log
        self.answers: list[httpx.Response] = []
        self.key, record = new_key("root", ("predict", "learn", "admin"), ("*",))
        environment = {k: v for k, v in os.environ.items() if not k.startswith("HINGED_")}
        settings = QUICK | {
            "redis_url": server.url.replace("://", f"://u:{PASSWORD}@"),
            "keys": json.dumps([record.model_dump(mode="json")]),
            "log_level": "debug",
            "log_format": "json",  # it says more than the text for people
        }
        environment |= {f"HINGED_{name.upper()}": str(value) for name, value in settings.items()}
        environment |= {"PYTHONASYNCIODEBUG": "1", "PYTHONUNBUFFERED": "1"}
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "hinged_service.cli.main", "serve", "--port", "0"],
                stdout=file,
                stderr=subprocess.STDOUT,
                env=environment,
            )
        wait_until(self._alive, 60)
        self.client = httpx.Client(
            base_url=self._address(),
            headers={"authorization": f"Bearer {self.key}"},
            timeout=30,
            event_hooks={"response": [self._keep]},
            verify=False,
        )

    def _keep(self, answer: httpx.Response) -> None:
        answer.read()
        self.answers.append(answer)

    def _alive(self) -> bool:
        with contextlib.suppress(httpx.HTTPError):
            return (
                bool(self._address())
                and httpx.get(f"{self._address()}/healthz", verify=False).is_success
            )
        return False

    def _address(self) -> str:
        found = re.search(r"http://127\.0\.0\.1:\d+", self.log.read_text("utf-8"))
        return "" if found is None else found[0]

    def stop(self) -> str:
        self.client.close()
        self.process.terminate()
        self.process.wait(30)
        return self.log.read_text("utf-8")


@pytest.fixture
def served(own_server: RedisServer, tmp_path: Path) -> Iterator[Served]:
    """The service before a Redis that wants a password."""
    _let_in(own_server)
    running = Served(own_server, tmp_path / "log")
    yield running
    running.client.close()
    running.process.kill()
    running.process.wait()


def _let_in(server: RedisServer) -> None:
    with server.client() as client:
        rights: dict[str, Any] = {"categories": ["+@all"], "keys": ["*"]}
        client.acl_setuser("u", enabled=True, passwords=[f"+{PASSWORD}"], **rights)


def test_neither_logs_nor_answers_tell(served: Served, own_server: RedisServer) -> None:
    client, learn = served.client, "/v1/models/m/learn"
    with own_server.client() as producer:
        work(client, producer, "m", MARK)
    for kind, body in BAD:
        client.post(learn, content=body, headers={"content-type": kind})
        client.post("/v1/models/m/predict", content=body, headers={"content-type": kind})
        client.put("/v1/models/n", content=body, headers={"content-type": kind})
    for stranger in (f"Bearer {STRANGER}", f"Basic {STRANGER}", STRANGER):
        assert client.get("/v1/models/m", headers={"authorization": stranger}).status_code == 401

    with own_server.client() as meddler:
        meddler.acl_setuser("u", enabled=False)
        meddler.client_kill_filter(_type="normal", skipme=True)
    _until(client, "/readyz", 503)
    _let_in(own_server)
    _until(client, "/readyz", 200)
    own_server.kill()
    event = {"x": {MARK: 1.0}, "y": True, "id": f"{MARK}-last"}
    assert client.post(learn, json=event).status_code == 503
    assert client.get("/readyz").status_code == 503
    own_server.start()
    _until(client, "/readyz", 503)
    _let_in(own_server)
    _until(client, "/readyz", 200)
    assert client.post(learn, json=event).status_code == 200
    with own_server.client() as meddler:
        meddler.hset("hinged:models", "damaged", f'{{"{MARK}": ')
        meddler.set("hinged:{n}:followers", MARK)
    assert client.get("/v1/models/damaged").status_code == 503
    assert client.put("/v1/models/n", json={"learner": {"type": "perceptron"}}).status_code == 503

    assert {answer.status_code for answer in served.answers} >= {200, 201, 400, 401, 415, 422, 503}
    assert all(answer.status_code != 500 for answer in served.answers)
    output = served.stop()
    assert "Redis" in output, "it did not log at all"
    for secret in (PASSWORD, served.key, STRANGER, MARK, "Traceback"):
        lines = [line for line in output.splitlines() if secret in line and not SLOW.match(line)]
        assert lines == [], f"{secret} was logged"
    for answer in served.answers:
        text = answer.text + str(answer.headers)
        assert not any(s in text for s in (PASSWORD, served.key, STRANGER, "Traceback", ".py"))
        assert SAFE_HEADERS.items() <= dict(answer.headers).items(), str(answer.request.url)


def _until(client: httpx.Client, path: str, status: int) -> None:
    wait_until(lambda: client.get(path).status_code == status, 30)
