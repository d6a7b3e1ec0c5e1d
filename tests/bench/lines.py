"""Bodies of lines against arrays of 500 of the same events, and where the time goes."""

from __future__ import annotations

import itertools
import re
import socket
import threading
import time
from pathlib import Path

from tests.bench import arrays
from tests.bench.arrays import SIZE, Bodies
from tests.bench.http_calls import MODEL, create_model
from tests.bench.load import Caller
from tests.bench.servers import SERVICE, Server, cpu_s, running
from tests.bench.table import Costs, Row
from tests.support.redis_server import RedisServer

TARGET = 1.2
SEPARATOR = re.compile(rb'(?<=[}]),(?=[{]"(?:x|id)")')


def measure(folder: Path, rounds: int, calls: int) -> list[Row]:
    """Return the rows; every round learns `calls` times 500 events of each kind, each way."""
    with RedisServer(folder / "lines") as server:
        service = Server(SERVICE, HINGED_REDIS_URL=server.url)
        with running(service):
            create_model(service)
            rows: list[Row] = []
            for with_ids, sparse in itertools.product((False, True), repeat=2):
                bodies = Bodies(with_ids, sparse)
                name = f"lines {'with' if with_ids else 'without'} ids, " + (
                    "30 of 20,000 names" if sparse else "30 names"
                )
                rows += _compared(service, server, name, bodies, rounds, calls)
    return rows


def _compared(
    service: Server, redis: RedisServer, name: str, bodies: Bodies, rounds: int, calls: int
) -> list[Row]:
    costs = Costs()
    for number in range(rounds + 1):
        for way in ("array", "each", "summary"):
            sent = [bodies.next() for _ in range(calls)]
            worker_s, redis_s = service.cpu_s(), cpu_s(redis.pid)
            if way == "array":
                took_s = _arrays_s(service, sent)
            else:
                took_s = _lines_s(service, way, [_as_lines(body) for body in sent])
            if number > 0:  # the first round warms up
                worker_s, redis_s = service.cpu_s() - worker_s, cpu_s(redis.pid) - redis_s
                costs.add(way, calls * SIZE, took_s, worker_s, redis_s)
    return [
        *(
            Row(
                f"{name}, results={way} / array",
                costs.over(way, "array"),
                target=TARGET,
                at_most=True,
            )
            for way in ("each", "summary")
        ),
        *costs.rows(lambda way: f"{name}, {way}"),
    ]


def _as_lines(array: bytes) -> bytes:
    lines = SEPARATOR.sub(b"\n", array[1:-1]) + b"\n"
    assert lines.count(b"\n") == SIZE
    return lines


def _arrays_s(service: Server, sent: list[bytes]) -> float:
    with Caller(service.port, arrays.PATH) as caller:
        started_s = time.perf_counter()
        for body in sent:
            caller.post(body)
        return time.perf_counter() - started_s


def _lines_s(service: Server, results: str, sent: list[bytes]) -> float:
    """Return the seconds until the last byte of the answer, which is read meanwhile."""
    length = sum(map(len, sent))
    head = (
        f"POST {MODEL}/learn?results={results} HTTP/1.1\r\nhost: bench\r\nconnection: close\r\n"
        f"content-type: application/x-ndjson\r\ncontent-length: {length}\r\n\r\n"
    ).encode()
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as connection:

        def send() -> None:
            connection.sendall(head)
            for body in sent:
                connection.sendall(body)

        started_s = time.perf_counter()
        sender = threading.Thread(target=send)
        sender.start()
        parts: list[bytes] = []
        while data := connection.recv(2**18):
            parts.append(data)
        took_s = time.perf_counter() - started_s
        sender.join()
    answer = b"".join(parts)
    if results == "summary":
        found = re.search(rb'"learned":(\d+)', answer)
        learned = int(found[1]) if found else 0
    else:
        learned = len(re.findall(rb'"duplicate":false', answer.replace(b"\r\n", b"")))
    if learned != len(sent) * SIZE:
        raise RuntimeError(f"{learned} of {len(sent) * SIZE} lines were learned")
    return took_s
