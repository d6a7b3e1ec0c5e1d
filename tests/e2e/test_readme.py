"""The README is run: its shell session, its table of settings, its list of dependencies."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis
from packaging.requirements import Requirement

from hinged_service.settings import Settings
from tests.ingest.kafka.broker import Broker
from tests.support.forked_command import ForkedCommand
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.service import Service

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
ADDRESS = "http://127.0.0.1:8000"


def section(title: str) -> str:
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The service as the README starts it, on a free port: its address and the data's folder."""
    serve = next(text for _, text in BLOCKS if text.startswith("hinged serve"))
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HINGED_")}
    environment["HINGED_DATA_DIR"] = str(tmp_path / "data")
    service = ForkedCommand([*serve.split()[1:], "--port", "0"], environment, session=True)
    try:
        address = re.search(r"http://\S+", service.stdout.readline())
        assert address is not None
        wait_until(lambda: ready(address[0]), 60)
        yield address[0], environment["HINGED_DATA_DIR"]
    finally:
        service.terminate()
        service.communicate()
    assert service.returncode == 0


def blocks_of(title: str) -> list[tuple[str, str]]:
    return [(kind, text) for kind, text in BLOCKS if text in section(title)]


@pytest.mark.skipif(shutil.which("curl") is None, reason="the session is written with curl")
def test_the_session_runs_and_answers_as_shown(served: tuple[str, str]) -> None:
    shown = 0
    answer = ""
    for kind, text in blocks_of("A session")[1:]:
        if kind == "sh":
            assert ADDRESS in text
            answer = run(text.replace(ADDRESS, served[0]))
        else:
            assert alike(json.loads(answer), json.loads(text)), answer
            shown += 1
    assert shown == 4


@pytest.mark.skipif(shutil.which("curl") is None, reason="the session is written with curl")
def test_the_life_of_a_model_runs(
    served: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = blocks_of("Pipelines, and the life of a model")
    assert len(blocks) == 3
    for kind, text in blocks:
        assert kind == "sh"
        run(text.replace(ADDRESS, served[0]))
    names = {model["name"] for model in httpx.get(f"{served[0]}/v1/models", verify=False).json()}
    assert {"tickets", "tickets-pa", "tickets-clean", "tickets-copy"} <= names
    assert httpx.get(f"{served[0]}/v1/aliases", verify=False).json()[0]["model"] == "tickets-pa"


@pytest.mark.skipif(shutil.which("curl") is None, reason="the session is written with curl")
def test_every_door_lets_its_events_in(
    served: tuple[str, str],
    own_server: RedisServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address, data = served
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HINGED_URL", address)
    monkeypatch.setenv("HINGED_DATA_DIR", data)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    (create,) = [text for _, text in blocks_of("A session") if "-X PUT" in text]
    run(create.replace(ADDRESS, address))
    event = {"x": {"free": 1}, "y": "spam"}
    with own_server.client() as queue:
        queue.xadd("mails", {"event": json.dumps({**event, "id": "m12"})})
    broker = Broker()
    broker.create("mails")
    broker.put("mails", [{**event, "id": "m13"}])
    try:
        for kind, text in blocks_of("Doors"):
            there = text.replace(ADDRESS, address).replace("127.0.0.1:9092", broker.bootstrap)
            there = there.replace("redis://127.0.0.1:6380/0", own_server.url)
            if kind == "python":
                run(f"{sys.executable} -c {shlex.quote(there)}")
            elif there.startswith("redis-cli"):
                command = shlex.split(there.removeprefix("redis-cli"))
                socket = (Path(data) / "valkey.socket").read_text()
                with redis.Redis(unix_socket_path=socket) as models:
                    models.execute_command(*command)
            else:
                run(there)
    finally:
        broker.close()
    url = f"{address}/v1/models/mail"
    wait_until(lambda: httpx.get(url, trust_env=False, verify=False).json()["events"] == 10, 30)
    assert httpx.get(url, trust_env=False, verify=False).json()["labels"]["joined"] == 1
    assert (
        httpx.get(f"{address}/v1/models/visits", trust_env=False, verify=False).json()["events"]
        == 2
    )


def ready(url: str) -> bool:
    try:
        return httpx.get(url + "/readyz", trust_env=False, verify=False).is_success
    except httpx.TransportError:
        return False


def run(command: str) -> str:
    quiet = command.replace("curl", "curl --silent --show-error --fail-with-body")
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", quiet], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def alike(answer: Any, shown: Any) -> bool:
    """Tell if an answer is the one shown, where "..." stands for any text."""
    if isinstance(shown, dict):
        return answer.keys() == shown.keys() and all(alike(answer[k], shown[k]) for k in shown)
    if isinstance(shown, list):
        return len(answer) == len(shown) and all(map(alike, answer, shown))
    return bool(answer == shown) or (shown == "..." and isinstance(answer, str))


def test_the_table_of_settings_is_complete_and_true() -> None:
    rows = re.findall(
        r"^\| `HINGED_(\w+)` \| (?:`(.*?)`)? ?\|", section("Running it"), re.MULTILINE
    )
    shown = {name.lower(): default for name, default in rows}
    assert list(shown) == list(Settings.model_fields)
    for name, field in Settings.model_fields.items():
        default = "" if field.default is None else str(field.default)
        assert shown[name].replace("~", str(Path.home())) == default, name


def test_the_pipeline_of_ones_own_is_served_as_shown(
    tmp_path: Path, own_server: RedisServer
) -> None:
    text = section("Your own pipelines")
    file = tmp_path / "my_models.py"
    file.write_text(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[0])
    spec = json.loads(re.findall(r'`(\{"learner".*?)`', text)[0])
    with Service(own_server.url, models=str(file)) as service, service.client() as client:
        assert client.put("/v1/models/mails", json=spec).status_code == 201
        event = {"x": {"text": "free prize", "hour": 3}, "y": True}
        assert client.post("/v1/models/mails/learn", json=event).json()["y_pred"] is False
        assert client.post("/v1/models/mails/predict", json={"x": event["x"]}).json()["y"] is True


def test_every_dependency_is_explained() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    explained = re.findall(r"`([a-z-]+)(?:\[\w+\])?`", section("What it stands on").split("MIT")[0])
    assert set(explained) == {Requirement(text).name for text in project["dependencies"]}


def test_the_two_commands_are_those_that_are_checked() -> None:
    check = (ROOT / ".ci" / "run").read_text()
    commands = [text.strip() for kind, text in BLOCKS if kind == "sh"][:2]
    assert commands == ["pip install . && hinged demo", "pip install -e '.[dev]' && pytest"]
    for command in commands:
        for part in command.split(" && "):
            assert part.replace("pip install", "pip install --quiet") in check
