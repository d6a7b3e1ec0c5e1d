"""Learning over 16 connections while 50 watch the model live, against the same unwatched."""

from __future__ import annotations

import contextlib
import multiprocessing
import selectors
import socket
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any

from tests.bench.events import bodies, made_events
from tests.bench.http_calls import CONNECTIONS, MODEL, create_model
from tests.bench.load import requests_per_s
from tests.bench.servers import SERVICE, Server, running
from tests.bench.table import Row, ratios
from tests.support.redis_server import RedisServer

READERS = 50
TARGET = 0.9


def measure(folder: Path, rounds: int, seconds: int) -> list[Row]:
    """Return the rows; every round loads unwatched and watched, in alternating order."""
    return [
        row for workers in (1, 2) for row in _with(folder / str(workers), workers, rounds, seconds)
    ]


def _with(folder: Path, workers: int, rounds: int, seconds: int) -> list[Row]:
    sent = bodies(made_events(1_000), labelled=True)
    with RedisServer(folder) as redis:
        servers = [Server(SERVICE, HINGED_REDIS_URL=redis.url) for _ in range(workers)]
        rate: dict[bool, list[float]] = defaultdict(list)
        cpu: dict[bool, list[float]] = defaultdict(list)
        speeds: list[float] = []
        with running(*servers):
            create_model(servers[0])
            for number in range(rounds + 1):
                for watched in (False, True) if number % 2 else (True, False):
                    with _readers(servers if watched else []) as received:
                        used_s = sum(server.cpu_s() for server in servers)
                        measured = _learns_per_s(servers, sent, seconds)
                        used_s = sum(server.cpu_s() for server in servers) - used_s
                    if number == 0:  # it warms up
                        continue
                    rate[watched].append(measured)
                    cpu[watched].append(used_s / (measured * seconds) * 1e6)
                    if watched:
                        speeds.append(received.value / seconds / READERS / 1e3)
    name = f"learn, {workers} worker{'s' if workers > 1 else ''}"
    return [
        Row(
            f"{name}: watched by {READERS} / by nobody",
            ratios(rate[True], rate[False]),
            target=TARGET,
        ),
        Row(f"{name}: by nobody", rate[False], "learns/s"),
        Row(f"{name}: watched", rate[True], "learns/s"),
        Row(f"{name}: by nobody: processor of the workers", cpu[False], "µs/learn"),
        Row(f"{name}: watched: processor of the workers", cpu[True], "µs/learn"),
        Row(f"{name}: told to each who watches", speeds, "kB/s"),
    ]


def _learns_per_s(servers: list[Server], sent: list[bytes], seconds: int) -> float:
    """Return the learns per second of all workers together."""
    share = CONNECTIONS // len(servers)

    def learns(server: Server) -> float:
        return requests_per_s(server.port, f"{MODEL}/learn", sent, share, seconds)

    with ThreadPoolExecutor(len(servers)) as threads:
        return sum(threads.map(learns, servers))


@contextlib.contextmanager
def _readers(servers: list[Server]) -> Iterator[Any]:
    """Have a process read live feeds, shared out among the servers; the bytes that came."""
    received = multiprocessing.Value("q", 0)
    ready = multiprocessing.Event()
    ports = [servers[n % len(servers)].port for n in range(READERS)] if servers else []
    process = multiprocessing.get_context("fork").Process(
        target=_read, args=(ports, received, ready), daemon=True
    )
    process.start()
    try:
        if not ready.wait(30):
            raise RuntimeError("the live feeds did not open")
        received.value = 0
        yield received
        if not process.is_alive():
            raise RuntimeError("a live feed ended")
    finally:
        process.kill()
        process.join()


def _read(ports: list[int], received: Synchronized[int], ready: Any) -> None:
    waiting = selectors.DefaultSelector()
    for port in ports:
        one = socket.create_connection(("127.0.0.1", port))
        one.sendall(
            f"GET {MODEL}/live?features=true&weights=true HTTP/1.1\r\nHost: bench\r\n\r\n".encode()
        )
        if not one.recv(65536).startswith(b"HTTP/1.1 200"):
            return
        waiting.register(one, selectors.EVENT_READ)
    ready.set()
    while True:
        for key, _ in waiting.select(1.0):
            chunk = key.fileobj.recv(65536)  # type: ignore[union-attr]
            if not chunk:
                return
            received.value += len(chunk)
