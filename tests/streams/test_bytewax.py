"""The dataflow of `dataflows.md` under Bytewax, killed and resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hinged_service.client import Client
from tests.streams.conftest import written
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.service import Service

pytest.importorskip("bytewax", reason="Bytewax is not installed: pip install bytewax")
ck = pytest.importorskip("confluent_kafka")

RECORDS = 400


def test_a_dataflow_that_is_killed_learns_each_record_once(
    api: Client, server: RedisServer, service: Service, tmp_path: Path
) -> None:
    broker = ck.Producer({"bootstrap.servers": "x:1", "test.mock.num.brokers": 1})
    [node] = broker.list_topics(timeout=10).brokers.values()
    for n in range(RECORDS):
        event = {"x": {f"n{n % 9}": 1.0, "a": n / RECORDS}, "y": n % 3 == 0}
        broker.produce("mails", json.dumps(event).encode())
    broker.flush(10)
    written("dataflows.md", "flow.py", tmp_path)
    (tmp_path / "recovery").mkdir()
    environment = os.environ | {
        "HINGED_REDIS_URL": server.url,
        "HINGED_URL": service.url,
        "KAFKA": f"{node.host}:{node.port}",
        "DRAIN": "1",
    }

    def bytewax(module: str, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", module, *options]
        return subprocess.Popen(command, cwd=tmp_path, env=environment)

    assert bytewax("bytewax.recovery", "recovery", "1").wait(60) == 0
    run = ("bytewax.run", "flow:flow", "-r", "recovery", "-s", "0", "-b", "0")
    first = bytewax(*run)
    wait_until(lambda: api.model("mail").events >= 20)
    first.send_signal(signal.SIGKILL)
    first.wait()
    before = api.model("mail").events
    assert before >= 20
    assert bytewax(*run).wait(120) == 0
    assert api.model("mail").events == RECORDS
