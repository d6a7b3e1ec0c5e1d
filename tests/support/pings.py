"""Another client of a Redis, in a process of its own: how long it ever waits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer

_PINGS = """
import socket, sys, time
link = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
print("ready", flush=True)
slowest = 0.0
while True:
    began = time.monotonic()
    link.sendall(b"PING\\r\\n")
    if not link.recv(64):
        break
    took = time.monotonic() - began
    if took > slowest:
        slowest = took
        print(slowest, flush=True)
    time.sleep(0.001)
"""


class Pings:
    """A client that pings a server again and again from here on; `output` is a file for it."""

    def __init__(self, server: RedisServer, output: Path) -> None:
        self._output = output
        with output.open("w") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PINGS, str(server.port)], stdout=file
            )
        wait_until(lambda: len(output.read_text().split()) > 1)

    def stop(self) -> float:
        """End it; return the longest that it waited for an answer, in milliseconds."""
        self._process.kill()
        self._process.wait()
        lines = self._output.read_text().split()
        assert lines[0] == "ready"
        return float(lines[-1]) * 1000
