"""Predictions while others learn: how long the slowest take beside the usual ones."""

from __future__ import annotations

import random
import selectors
import socket
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import redis

from tests.bench.events import POOL, bodies, made_events
from tests.bench.http_calls import MODEL, create_model
from tests.bench.servers import SERVICE, Server, running
from tests.bench.table import Row, ratios
from tests.support.redis_server import RedisServer

CONNECTIONS, WORKERS = 64, 2
PREDICTIONS = 0.8
TARGET = 10
BUSY = {
    "HINGED_SNAPSHOT_EVERY_EVENTS": "500",
    "HINGED_SNAPSHOT_EVERY_MS": "200",
    "HINGED_RETENTION_BYTES": str(2**18),
}
"""A length at which many snapshots and trims come in a few seconds."""


class _Question(NamedTuple):
    call: str
    request: bytes


class _Connection:
    """One connection that asks one question after the other."""

    def __init__(self, port: int, questions: Iterator[_Question]) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._questions = questions
        self._missing = 0
        self._received = b""
        self.call = ""
        self.asked_s = 0.0

    def ask(self) -> None:
        """Send the next question."""
        self.call, request = next(self._questions)
        self._received = b""
        self.asked_s = time.perf_counter()
        self.socket.sendall(request)

    def is_answered(self) -> bool:
        """Take what came; return whether the answer is whole."""
        self._received += self.socket.recv(2**16)
        head, found, body = self._received.partition(b"\r\n\r\n")
        if not found:
            return False
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(head.decode())
        length = head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0]
        return len(body) >= int(length)


def measure(folder: Path, rounds: int, seconds: int) -> list[Row]:
    """Return the rows; the first round warms up and counts for nothing."""
    events = made_events(5_000, POOL)
    posts = {
        "predict": _requests("predict", bodies(events, labelled=False)),
        "learn": _requests("learn", bodies(events, labelled=True)),
    }
    with RedisServer(folder) as server:
        services = [Server(SERVICE, 1, HINGED_REDIS_URL=server.url, **BUSY) for _ in range(WORKERS)]
        middle: dict[str, list[float]] = {"predict": [], "learn": []}
        late: dict[str, list[float]] = {"predict": [], "learn": []}
        latest: list[float] = []
        rate: list[float] = []
        trims: list[float] = []
        with running(*services), server.client() as client:
            create_model(services[0])
            ports = [service.port for service in services]
            for number in range(rounds + 1):
                before = _trims(client)
                times_s = _load(ports, posts, seconds, random.Random(number))
                if number == 0:
                    continue
                for call, found in times_s.items():
                    found.sort()
                    middle[call].append(found[len(found) // 2] * 1e3)
                    late[call].append(found[len(found) * 99 // 100] * 1e3)
                latest.append(times_s["predict"][-1] * 1e3)
                rate.append(sum(map(len, times_s.values())) / seconds)
                trims.append((_trims(client) - before) / seconds)
    return [
        Row(
            "predict: 99 of 100 came within / half came within",
            ratios(late["predict"], middle["predict"]),
            target=TARGET,
            at_most=True,
        ),
        Row("learn: the same", ratios(late["learn"], middle["learn"])),
        Row("predict: half came within", middle["predict"], "ms"),
        Row("predict: 99 of 100 came within", late["predict"], "ms"),
        Row("predict: the slowest", latest, "ms"),
        Row("learn: half came within", middle["learn"], "ms"),
        Row("learn: 99 of 100 came within", late["learn"], "ms"),
        Row("both together", rate, "requests/s"),
        Row("snapshots with a trim meanwhile", trims, "per s"),
    ]


def _requests(call: str, sent: Sequence[bytes]) -> list[_Question]:
    head = f"POST {MODEL}/{call} HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n"
    return [
        _Question(call, f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        for body in sent
    ]


def _questions(posts: dict[str, list[_Question]], rng: random.Random) -> Iterator[_Question]:
    while True:
        yield rng.choice(posts["predict" if rng.random() < PREDICTIONS else "learn"])


def _load(
    ports: Sequence[int], posts: dict[str, list[_Question]], seconds: int, rng: random.Random
) -> dict[str, list[float]]:
    """Have every connection always wait for one answer; return how long each took, in s."""
    times_s: dict[str, list[float]] = {call: [] for call in posts}
    questions = _questions(posts, rng)
    with selectors.DefaultSelector() as waiting:
        for number in range(CONNECTIONS):
            one = _Connection(ports[number % len(ports)], questions)
            waiting.register(one.socket, selectors.EVENT_READ, one)
            one.ask()
        end_s = time.perf_counter() + seconds
        while time.perf_counter() < end_s:
            for key, _ in waiting.select(10):
                one = key.data
                if one.is_answered():
                    times_s[one.call].append(time.perf_counter() - one.asked_s)
                    one.ask()
        for key in list(waiting.get_map().values()):
            key.data.socket.close()
    return times_s


def _trims(client: redis.Redis) -> int:
    """Return how often the log was trimmed so far, which each snapshot does."""
    about: Any = client.info("commandstats")
    return int(about.get("cmdstat_xtrim", {"calls": 0})["calls"])
