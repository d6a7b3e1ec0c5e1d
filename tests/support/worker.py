"""A worker of the service as a real process on a loopback port."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import httpx

from tests.support.forked_command import ForkedCommand
from tests.support.long_timeouts import LONG_TIMEOUTS
from tests.support.redis_server import free_port


class Worker:
    """One uvicorn process that serves the app; `settings` become HINGED_ variables."""

    def __init__(self, redis_url: str, **settings: object) -> None:
        self.port = free_port()
        self._environment = {
            f"HINGED_{k.upper()}": str(v) for k, v in (LONG_TIMEOUTS | settings).items()
        }
        self._environment["HINGED_REDIS_URL"] = redis_url
        self._process: subprocess.Popen[bytes] | ForkedCommand | None = None

    @property
    def url(self) -> str:
        """The address of the service."""
        return f"http://127.0.0.1:{self.port}"

    def start(self, wait: bool = True) -> None:
        """Start it; wait until it answers."""
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "uvicorn", "--factory", "hinged_service.app:create_app"),
                *("--host", "127.0.0.1", "--port", str(self.port)),
                *("--log-level", "warning", "--no-access-log"),
            ],
            env=os.environ | self._environment,
        )
        if wait:
            self.wait_until_alive()

    def wait_until_alive(self, seconds: float = 60) -> None:
        """Return once the worker answers."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                if httpx.get(f"{self.url}/healthz", timeout=1, verify=False).status_code == 200:
                    return
            except httpx.HTTPError:
                pass
            ended = self._process is not None and self._process.poll() is not None
            if ended or time.monotonic() > deadline:
                raise RuntimeError("the worker did not start")
            time.sleep(0.02)

    def kill(self) -> None:
        """Kill it hard."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> int:
        """Stop it in order (SIGTERM) and return its exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(30)
        self._process = None
        return code
