"""The agent of `dataflows.md` under Faust, killed and started again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from hinged_service.client import Client
from tests.streams.conftest import written
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.service import Service

pytestmark = pytest.mark.skipif(
    find_spec("faust") is None, reason="Faust is not installed: pip install faust-streaming"
)
ck = pytest.importorskip("confluent_kafka")

RECORDS = 400
PATIENCE_S = 90
MISSED_SOON = {"BROKER_SESSION_TIMEOUT": "6", "BROKER_HEARTBEAT_INTERVAL": "1"}


def test_a_worker_that_is_killed_learns_each_record_once(
    api: Client, server: RedisServer, service: Service, tmp_path: Path
) -> None:
    broker = ck.Producer({"bootstrap.servers": "x:1", "test.mock.num.brokers": 1})
    [node] = broker.list_topics(timeout=10).brokers.values()
    for n in range(RECORDS):
        event = {"x": {f"n{n % 9}": 1.0, "a": n / RECORDS}, "y": n % 3 == 0}
        broker.produce("mails", json.dumps(event).encode(), partition=n % 2)
    broker.flush(10)
    written("dataflows.md", "agent.py", tmp_path)
    environment = {
        **os.environ,
        **MISSED_SOON,
        "HINGED_REDIS_URL": server.url,
        "HINGED_URL": service.url,
        "KAFKA": f"{node.host}:{node.port}",
    }
    command = [sys.executable, "agent.py", "worker", "--without-web", "-l", "error"]

    def learned(at_least: int) -> None:
        wait_until(lambda: api.model("mail").events >= at_least, PATIENCE_S)

    first = subprocess.Popen(command, cwd=tmp_path, env=environment)
    learned(20)
    first.send_signal(signal.SIGKILL)
    first.wait()
    second = subprocess.Popen(command, cwd=tmp_path, env=environment)
    learned(RECORDS)
    second.terminate()
    second.wait(PATIENCE_S)
    assert api.model("mail").events == RECORDS
