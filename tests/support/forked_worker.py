"""A worker of the service as a process forked from one that has imported everything.

It starts in a tenth of the time of `tests.support.worker.Worker`.
"""

from __future__ import annotations

import multiprocessing.process
import os
import signal
from collections.abc import Callable

from tests.support.forked import fresh, processes
from tests.support.worker import Worker

__all__ = ["ForkedWorker"]


class ForkedWorker(Worker):
    """One uvicorn process; `prepare` runs in it before the app is made."""

    prepare: Callable[[], None] | None = None
    _forked: multiprocessing.process.BaseProcess | None = None

    def start(self, wait: bool = True) -> None:
        """Start it; wait until it answers."""
        self._forked = processes.Process(
            target=_serve, args=(self.port, os.environ | self._environment, self.prepare)
        )
        with fresh():
            self._forked.start()
        if wait:
            self.wait_until_alive()

    def kill(self) -> None:
        """Kill it hard."""
        if self._forked is not None:
            self._forked.kill()
            self._forked.join()
            self._forked = None

    def stop(self) -> int:
        """Stop it in order (SIGTERM) and return its exit code."""
        assert self._forked is not None
        assert self._forked.pid is not None
        os.kill(self._forked.pid, signal.SIGTERM)
        self._forked.join(60)
        code = self._forked.exitcode
        assert code is not None, "it does not stop"
        self._forked = None
        return code


def _serve(port: int, environment: dict[str, str], prepare: Callable[[], None] | None) -> None:
    import uvicorn

    os.environ.clear()
    os.environ.update(environment)
    if prepare is not None:
        prepare()
    uvicorn.run(
        "hinged_service.app:create_app",
        factory=True,
        host="127.0.0.1",
        port=port,
        log_level="warning",
        access_log=False,
    )
