"""A flood before a Redis that stands still: bounded memory, and each answer is true."""

import asyncio
import json
from pathlib import Path

import pytest
import redis

import hinged
from tests.support.plain_fold import fold_log
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer
from tests.support.running import client_of
from tests.support.worker import Worker

MIB = 2**20
CLIENTS = 400
CALLS_EACH = 3
FEATURES = 8_000
X = json.dumps({f"feature-{k}": 1 for k in range(FEATURES)})
"""Decoded, with the names and numbers that it is made of, about a MiB."""


def status_bytes(pid: int, field: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise AssertionError(field)


def body_of(number: int) -> bytes:
    return f'{{"id": "e{number}", "y": {"true" if number % 2 else "false"}, "x": {X}}}'.encode()


async def call(port: int, numbers: range, became: dict[int, int]) -> None:
    """Learn one event after the other on one connection, until one is taken."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for number in numbers:
            body = body_of(number)
            head = f"POST /v1/models/m{number % 4}/learn HTTP/1.1\r\nHost: t\r\n"
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            headers = answer.lower()
            became[number] = int(answer.split()[1])
            length = int(headers.split(b"content-length: ")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            if became[number] != 429:
                return
            assert b"retry-after: 1" in headers
    finally:
        writer.close()


async def flood(port: int, proxy: Proxy, most: int) -> dict[int, int]:
    """Send everything while Redis answers nothing; let it answer once no more is refused."""
    became: dict[int, int] = {}
    starts = range(0, CLIENTS * CALLS_EACH, CALLS_EACH)
    calls = [asyncio.create_task(call(port, range(n, n + CALLS_EACH), became)) for n in starts]
    async with asyncio.timeout(60):
        while sum(not c.done() for c in calls) > most:  # noqa: ASYNC110 - the worker does not tell
            await asyncio.sleep(0.01)
    proxy.hold = False
    await asyncio.gather(*calls)
    return became


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limits", "most"),
    [
        # Of four models: five events that wait, and five on their way to Redis.
        ({"max_queued_events": 5, "max_batch_events": 5}, 4 * 11),
        ({"max_held_bytes": 20 * len(X)}, 20),
        ({"max_requests": 40}, 40),
    ],
    ids=["queues", "bytes", "requests"],
)
def test_what_is_taken_is_learned_what_is_refused_is_not_and_memory_is_bounded(
    own_server: RedisServer, own_db: redis.Redis, limits: dict[str, int], most: int
) -> None:
    proxy = Proxy(own_server.port)
    proxy.start()
    patient = {"append_timeout_ms": 60_000, "redis_timeout_ms": 60_000}
    worker = Worker(proxy.url, **(patient | limits))
    worker.start()
    try:
        with client_of(worker) as client:
            for n in range(4):
                client.put(f"/v1/models/m{n}", json={"learner": {"type": "perceptron"}})
                first = {"id": "first", "x": {"a": 1}, "y": True}
                assert client.post(f"/v1/models/m{n}/learn", json=first).status_code == 200
        assert worker._process is not None
        pid = worker._process.pid
        before = status_bytes(pid, "VmRSS")
        proxy.hold = True
        became = asyncio.run(flood(worker.port, proxy, most))
        grew = status_bytes(pid, "VmHWM") - before
    finally:
        proxy.hold = False
        worker.kill()
        proxy.stop()
    taken = {f"e{n}" for n, status in became.items() if status == 200}
    refused = {f"e{n}" for n, status in became.items() if status == 429}
    assert len(taken) + len(refused) == len(became)
    assert len(refused) > 2 * CLIENTS
    assert len(taken) >= 10
    logged = [
        name
        for n in range(4)
        for name in fold_log(own_db, f"m{n}", hinged.Perceptron()).counted_ids
    ]
    assert sorted(logged) == sorted([*taken, *["first"] * 4])
    # Taken all at once, the events of 400 clients would take as many MiB.
    assert grew < (2 * most + 100) * MIB, f"{grew / MIB:.0f} MiB"
