"""Real processes: the living, the users of a directory, and waits for what they do."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

import httpx

PROC = Path("/proc")


def gone(pid: int) -> bool:
    """Return whether a process has ended, even if its parent has not waited for it."""
    try:
        status = (PROC / str(pid) / "stat").read_text()
    except OSError:
        return True
    return status.rpartition(")")[2].split()[0] == "Z"


def embedded_servers(data_dir: Path) -> list[int]:
    """Process ids of the living Valkey servers that keep this directory or one below it."""
    found = []
    for process in PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if b"valkey-server" in (process / "cmdline").read_bytes() and (
                process / "cwd"
            ).resolve().is_relative_to(data_dir.resolve()):
                found.append(int(process.name))
    return found


def with_variable(name: str, value: str) -> list[int]:
    """Process ids of the living processes that were started with this environment variable."""
    wanted = os.fsencode(f"{name}={value}")
    found = []
    for process in PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
    return found


def wait_until(condition: Callable[[], bool], timeout_s: float = 60) -> None:
    """Return as soon as the condition holds; fail if it does not in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)


def wait_until_saved(client: httpx.Client, path: str) -> None:
    """Return once the snapshot in Redis is at the position of the model."""

    def is_saved() -> bool:
        model = client.get(path).json()
        return bool(model["position"].startswith(model["snapshot"] + "."))

    wait_until(is_saved)
