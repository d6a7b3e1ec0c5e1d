"""Every command and every Python block of README and docs runs, and answers as shown.

A page's blocks run in order, in a folder of their own: `sh` in a shell, `python` in a Python,
`javascript` in Node.js where that is installed, and a `json` block is what the command before it
printed, where `"..."` stands for any text. A block with a title is a file. `hinged serve` is the
service that the following blocks talk to. Blocks of `console` need what a test does not have, a
registry or a cluster: their syntax is checked, and their options of `hinged`.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from shutil import which
from typing import Any

import httpx
import pytest
import typer
from typer.core import TyperGroup

from hinged_service.cli.main import cli
from tests.docs.pages import PAGES, ROOT, Block, blocks, name
from tests.ingest.kafka.broker import Broker
from tests.support.forked_command import ForkedCommand
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer

ADDRESS = "http://127.0.0.1:8000"
KINDS = {"sh", "python"} | ({"javascript"} if which("node") else set())
RUN = [page for page in PAGES if any(block.kind in KINDS for block in blocks(page))]
SHOWN = [page for page in PAGES if any(block.kind == "console" for block in blocks(page))]
EVENTS = 9 if "javascript" in KINDS else 8
"""Events that `send-events.md` brings in through its doors, the inbox among them."""
REDIS_CLI = """#!{python}
import sys, redis
_, option, socket, *command = sys.argv
assert option == "-s"
with redis.Redis(unix_socket_path=socket) as models:
    print(models.execute_command(*command))
"""


class Session:
    """A reader's machine: a folder, a service on a free port, and the servers that pages name."""

    def __init__(self, folder: Path, others: dict[str, str]) -> None:
        self._folder = folder
        self._others = others
        self._service: ForkedCommand | None = None
        self.url = ""
        tools = folder / ".tools"
        tools.mkdir()
        (tools / "redis-cli").write_text(REDIS_CLI.format(python=sys.executable))
        (tools / "redis-cli").chmod(0o755)
        path = [str(tools), str(Path(sys.executable).parent), os.environ["PATH"]]
        self._environment = {k: v for k, v in os.environ.items() if not k.startswith("HINGED_")}
        self._environment["PATH"] = os.pathsep.join(path)
        self._environment["HINGED_DATA_DIR"] = str(folder / "data")

    def serve(self, command: str) -> None:
        """Start the service as a page does, on a free port; the one before it ends."""
        self.stop()
        words = shlex.split(self._there(command))
        settings = dict(word.split("=", 1) for word in words[: words.index("hinged")])
        arguments = [*words[words.index("hinged") + 1 :], "--port", "0"]
        self._service = ForkedCommand(arguments, self._environment | settings, session=True)
        found = re.search(r"http://\S+", self._service.stdout.readline())
        assert found is not None
        self.url = found[0]
        wait_until(self._ready, 60)

    def stop(self) -> None:
        """End the service."""
        if self._service is not None:
            self._service.terminate()
            self._service.communicate()
            assert self._service.returncode == 0
            self._service = None

    def run(self, block: Block) -> str:
        """Run a block and return what it printed."""
        text = self._there(block.text.replace(ADDRESS, self.url))
        if block.kind == "sh":
            text = text.replace("curl ", "curl --silent --show-error --fail-with-body ")
        command = {
            "python": [sys.executable, "-c", text],
            "javascript": ["node", "--input-type=module", "-e", text],
            "sh": ["bash", "-euo", "pipefail", "-c", text],
        }[block.kind]
        done = subprocess.run(
            command,
            cwd=self._folder,
            env={**self._environment, "HINGED_URL": self.url},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, text + done.stdout + done.stderr
        return done.stdout

    def get(self, path: str) -> Any:
        """Return the JSON of a call."""
        return httpx.get(self.url + path, trust_env=False, verify=False).json()

    def _there(self, text: str) -> str:
        """Return a text with the addresses of the servers that the page names."""
        for documented, there in self._others.items():
            text = text.replace(documented, there)
        return text

    def _ready(self) -> bool:
        with suppress(httpx.TransportError):
            return httpx.get(self.url + "/readyz", trust_env=False, verify=False).is_success
        return False


@pytest.fixture
def session(tmp_path: Path, own_server: RedisServer) -> Iterator[Session]:
    with own_server.client() as queue:
        queue.xadd("mails", {"event": '{"x": {"free": 1}, "y": "spam", "id": "m12"}'})
    broker = Broker()
    broker.create("mails")
    broker.put("mails", [{"x": {"free": 1}, "y": "spam", "id": "m13"}])
    session = Session(
        tmp_path, {"127.0.0.1:9092": broker.bootstrap, "redis://127.0.0.1:6380/0": own_server.url}
    )
    try:
        yield session
    finally:
        session.stop()
        broker.close()


def alike(answer: Any, documented: Any) -> bool:
    """Return whether an answer is the one shown, where "..." stands for any text."""
    if isinstance(documented, dict):
        return answer.keys() == documented.keys() and all(
            alike(answer[k], documented[k]) for k in documented
        )
    if isinstance(documented, list):
        return len(answer) == len(documented) and all(map(alike, answer, documented))
    return bool(answer == documented) or (documented == "..." and isinstance(answer, str))


@pytest.mark.skipif(which("curl") is None, reason="the pages use curl")
@pytest.mark.parametrize("page", RUN, ids=name)
def test_the_blocks_of_a_page_run_and_answer_as_shown(
    page: Path, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    parts = blocks(page)
    if not _serves(parts[0]):
        session.serve("hinged serve")
    answer = ""
    for block in parts:
        if block.file:
            (tmp_path / block.file).write_text(block.text)
        elif block.kind == "stop":
            session.stop()
        elif _serves(block):
            session.serve(block.text)
        elif block.kind in KINDS:
            answer = session.run(block)
        elif block.kind == "json":
            assert alike(json.loads(answer), json.loads(block.text)), answer
    if name(page) == "docs/how-to/send-events.md":
        wait_until(lambda: session.get("/v1/models/mail")["events"] == EVENTS, 30)


def _serves(block: Block) -> bool:
    """Return whether a block starts the service."""
    return re.match(r"(HINGED_\w+=\S+ )*hinged serve\b", block.text) is not None


@pytest.mark.parametrize("page", SHOWN, ids=name)
def test_commands_that_are_only_shown_are_well_formed(page: Path) -> None:
    root = typer.main.get_command(cli)
    assert isinstance(root, TyperGroup)
    for block in blocks(page):
        if block.kind == "console":
            subprocess.run(["bash", "-n", "-c", block.text], check=True)
            for words in re.findall(r"(?<!-n )(?<!exec )\bhinged ([a-z].*)", block.text):
                first, *rest = words.split()
                command = root.commands[first]
                options = {
                    option
                    for one in (command, *getattr(command, "commands", {}).values())
                    for parameter in one.params
                    for option in (*parameter.opts, "--help")
                }
                assert {w for w in rest if w.startswith("--")} <= options, words


def test_the_two_commands_are_those_that_are_checked() -> None:
    check = (ROOT / ".ci" / "run").read_text()
    commands = [block.text.strip() for block in blocks(PAGES[0]) if block.kind == "console"][:2]
    assert commands == ["pip install . && hinged demo", "pip install -e '.[dev]' && pytest"]
    for command in commands:
        for part in command.split(" && "):
            assert part.replace("pip install", "pip install --quiet") in check
