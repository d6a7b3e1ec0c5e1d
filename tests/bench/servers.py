"""The servers that are measured: each one uvicorn worker, all but `hinged serve` started alike."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.support.redis_server import free_port

SERVICE = "hinged_service.app:create_app"
SERVE = "hinged serve"
"""The service as its users start it: its own protocol joins head and body of an answer."""
BARE = "tests.bench.peers.bare:app"
RIVER_MEMORY = "tests.bench.peers.river_memory:app"
RIVER_REDIS = "tests.bench.peers.river_redis:app"


class Server:
    """One uvicorn process that serves `target`, or more; `variables` go into the environment."""

    def __init__(self, target: str, workers: int = 1, **variables: str) -> None:
        self.port = free_port()
        self._workers = workers
        self._target = target
        self._variables = variables
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it; it may take a while until it answers."""
        if self._target == SERVE:
            command = ["hinged_service.cli.main", "serve"]
            self._variables.setdefault("HINGED_LOG_LEVEL", "warning")
        else:
            factory = ["--factory"] if self._target == SERVICE else []
            quiet = ["--log-level", "warning", "--no-access-log"]
            command = ["uvicorn", *factory, self._target, *quiet, "--host", "127.0.0.1"]
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", *command),
                *("--port", str(self.port), "--workers", str(self._workers)),
            ],
            env=os.environ | self._variables,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # to be killed with its workers
        )

    def wait(self) -> None:
        """Return once it listens, which uvicorn does when the app has started."""
        deadline_s = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
            except ConnectionRefusedError:
                assert self._process is not None
                if self._process.poll() is not None or time.monotonic() > deadline_s:
                    raise
                time.sleep(0.002)
            else:
                return

    def cpu_s(self) -> float:
        """Return the processor time it has used."""
        return cpu_s(self.pid)

    def kill(self) -> None:
        """Kill it hard."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None


def cpu_s(pid: int) -> float:
    """Return the processor time of a process, in steps of 10 ms; 0 where there is no /proc."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def running(*servers: Server) -> Iterator[None]:
    """Have the servers run."""
    try:
        for server in servers:
            server.start()
        for server in servers:
            server.wait()
        yield
    finally:
        for server in servers:
            server.kill()
