"""Two workers and their Redis, shared by the drills that leave them whole."""

from __future__ import annotations

import itertools
from pathlib import Path

import httpx

from tests.e2e.drills.serving import Serving
from tests.support.fleet.processes import ProcessFleet
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer, valkey_binary

WORKERS = 2
_READY_S = 60.0
_USUAL = {"maxmemory": "0", "min-replicas-to-write": "0", "appendfsync": "everysec"}


def patient_binary(folder: Path) -> str:
    """Return a server whose writes fail when a file may not grow, as if its disk were full."""
    script = folder / "server"
    script.write_text(f"#!/bin/sh\ntrap '' XFSZ\nexec {valkey_binary()} \"$@\"\n")
    script.chmod(0o755)
    return str(script)


class Fleet(ProcessFleet[Serving]):
    """Workers, each behind a proxy of its own; what a drill does to them can be undone.

    Parameters
    ----------
    folder
        Where the servers keep their data.

    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count()
        super().__init__(self.new_server(), Serving, WORKERS, proxies=WORKERS)

    def new_server(self) -> RedisServer:
        """Return another server, not started."""
        folder = self._folder / f"redis{next(self._numbers)}"
        folder.mkdir()
        return RedisServer(folder, patient_binary(folder))

    def start(self) -> None:
        """Start everything and wait until the workers are ready."""
        super().start()
        self.until_ready()

    def move_to(self, server: RedisServer) -> None:
        """Point the workers' address at another server, as a failover does."""
        self.server = server
        for proxy in self.proxies:
            proxy.target_port = server.port
            proxy.cut()

    def heal(self) -> None:
        """Undo what a drill may have left when it failed."""
        for proxy in self.proxies:
            proxy.hold = proxy.hold_replies = proxy.refuse = False
            proxy.delay_s, proxy.drop_replies = 0.0, 0
        self.server.fsync = _USUAL["appendfsync"]
        if not self.server.alive:
            self.server.start()
        with self.server.client() as client:
            for name, value in _USUAL.items():
                client.config_set(name, value)
        self.until_ready()

    def until_ready(self) -> None:
        """Wait until every worker can serve."""
        self.until_alive()
        wait_until(lambda: all(_is_ready(worker) for worker in self.workers), _READY_S)


def _is_ready(worker: Serving) -> bool:
    try:
        return httpx.get(f"{worker.url}/readyz", timeout=5, verify=False).is_success
    except httpx.TransportError:
        return False
