"""The command line as a process of its own, before the running service of all service tests."""

from __future__ import annotations

import itertools
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.forked import run_forked
from tests.support.service import Service

_names = itertools.count()


@dataclass(frozen=True)
class Ran:
    """The outcome of a command."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """The one JSON document on standard output, the command having succeeded in silence."""
        assert (self.code, self.err) == (0, ""), self
        return json.loads(self.out)


Run = Callable[..., Ran]


def run_hinged(*arguments: str, stdin: str = "", **variables: str) -> Ran:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("HINGED_")}
    done = run_forked(arguments, kept | {"COLUMNS": "200"} | variables, stdin)
    return Ran(done.returncode, done.stdout, done.stderr)


def environ(service: Service) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("HINGED_")}
    return kept | {"HINGED_URL": service.url, "COLUMNS": "200"}


def at_a_terminal(
    service: Service, words: list[str], stop: Callable[[str], bool], **streams: Any
) -> tuple[int, str]:
    """Run `hinged`, interrupt it when `stop` says so; return the code and what was shown."""
    ours, theirs = pty.openpty()
    environment = environ(service) | {"TERM": "xterm", "LINES": "20"}
    command = [sys.executable, "-m", "hinged_service.cli", *words]
    pipes: dict[str, Any] = {"stdin": theirs, "stdout": theirs, "stderr": theirs} | streams
    with subprocess.Popen(command, env=environment, **pipes) as process:
        os.close(theirs)
        screen, stopped = "", False
        with suppress(OSError):  # the other end is closed
            while part := os.read(ours, 65_536):
                screen += part.decode()
                if not stopped and stop(screen):
                    stopped = True
                    process.send_signal(signal.SIGINT)
    os.close(ours)
    return process.returncode, screen


@pytest.fixture
def run(service: Service) -> Run:
    """Run `hinged` with these arguments against the running service."""
    return lambda *arguments, **more: run_hinged(*arguments, **({"HINGED_URL": service.url} | more))


@pytest.fixture
def name() -> str:
    """A fresh name for a model."""
    return f"cli-{next(_names)}"


@pytest.fixture
def model(run: Run, name: str) -> str:
    """A fresh perceptron of that name."""
    run("create", name, "--learner", "perceptron", "--json").json()
    return name
