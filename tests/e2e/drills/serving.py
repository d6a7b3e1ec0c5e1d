"""Workers as an operator starts them: `hinged serve`, with the settings that it has by default."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping

import httpx

from hinged_service.settings import Settings
from tests.support.forked_command import ForkedCommand
from tests.support.long_timeouts import LONG_TIMEOUTS
from tests.support.processes import PROC
from tests.support.worker import Worker

_BUSY = {"snapshot_every_events": 100, "snapshot_every_ms": 200, "housekeeping_ms": 100}
_WORKERS = 2
_IDLE_BYTES, _MOVING_BYTES, _MODEL_BYTES = 160_000_000, 72 * 2**20, 13_000
_KEEP_ALL = {"retention_bytes": 2**40}


class Serving(Worker):
    """One `hinged serve` in a session of its own.

    It waits for Redis as long as a real one does, saves often, and keeps the
    whole log, so that a test can fold it.
    """

    def __init__(
        self,
        redis_url: str,
        workers: int = 1,
        variables: Mapping[str, str] | None = None,
        **settings: object,
    ) -> None:
        usual = {name: Settings.model_fields[name].default for name in LONG_TIMEOUTS}
        super().__init__(redis_url, **(usual | _BUSY | _KEEP_ALL | settings))
        self._workers = workers
        self._variables = dict(variables or {})

    def start(self, wait: bool = True) -> None:
        """Start it; wait until it answers."""
        arguments = ["serve", "--port", str(self.port), "--workers", str(self._workers)]
        environment = os.environ | self._environment | self._variables
        if self._variables:  # some of them tell the loader of programs something
            self._process = subprocess.Popen(
                [sys.executable, "-m", "hinged_service.cli.main", *arguments],
                env=environment,
                stdout=subprocess.DEVNULL,
            )
        else:
            self._process = ForkedCommand(arguments, environment, quiet=True)
        if wait:
            self.wait_until_alive()

    @property
    def pid(self) -> int:
        """The process that was started: the worker, or the parent of several."""
        assert self._process is not None
        return self._process.pid

    def pause(self) -> None:
        """Have it stand still."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Have it go on."""
        os.kill(self.pid, signal.SIGCONT)

    def children(self) -> list[int]:
        """Process ids of the workers, if there are several."""
        found = []
        for process in (PROC / str(self.pid) / "task").glob("*/children"):
            found += [int(pid) for pid in process.read_text().split()]
        return [pid for pid in found if "spawn_main" in _command(pid)]

    def open_files(self) -> int:
        """The number of files and connections that the process has open."""
        return len(list((PROC / str(self.pid) / "fd").iterdir()))

    def resident_bytes(self) -> int:
        """Memory that the process holds now."""
        pages = int((PROC / str(self.pid) / "statm").read_text().split()[1])
        return pages * resource.getpagesize()

    def budget_bytes(self) -> int:
        """Memory that the process should stay below, as docs/operations/sizing.md counts it."""
        models = httpx.get(f"{self.url}/v1/models", timeout=60, verify=False).json()
        infos = [
            httpx.get(f"{self.url}/v1/models/{one['name']}", timeout=60, verify=False).json()
            for one in models
        ]
        of_models = sum(_MODEL_BYTES + int(one["bytes"]) for one in infos)
        return _IDLE_BYTES + _MOVING_BYTES + of_models


def _command(pid: int) -> str:
    try:
        return (PROC / str(pid) / "cmdline").read_text()
    except OSError:
        return ""


@contextlib.contextmanager
def workers_on(
    redis_url: str, *variables: dict[str, str], **settings: object
) -> Iterator[list[Serving]]:
    """Have two workers run, or one for each set of variables of its own."""
    sets = variables or ({},) * _WORKERS
    workers = [Serving(redis_url, 1, one, **settings) for one in sets]
    try:
        for worker in workers:
            worker.start(wait=False)
        for worker in workers:
            worker.wait_until_alive()
        yield workers
    finally:
        for worker in workers:
            worker.kill()
