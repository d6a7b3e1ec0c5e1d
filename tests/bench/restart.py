"""From the start of a worker to its first prediction, and how fast a replica catches up."""

from __future__ import annotations

import time
import urllib.parse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from tests.bench.events import POOL, bodies, made_events
from tests.bench.http_calls import MODEL, create_model
from tests.bench.load import Caller
from tests.bench.servers import SERVICE, Server
from tests.bench.table import Row
from tests.support.redis_server import RedisServer

ARRAY = 1_000
TAIL = 20
TARGET_S = 2.0
BEHIND = (2_000, 20_000)


def measure(folder: Path, rounds: int, events: int) -> list[Row]:
    """Return the rows: a worker killed with a tail behind its snapshot, started again and again."""
    redis = RedisServer(folder / "restart")
    redis.start()
    service = Server(SERVICE, HINGED_REDIS_URL=redis.url)
    question = bodies(made_events(1, POOL), labelled=False)[0]
    arrays = _arrays()
    try:
        service.start()
        service.wait()
        create_model(service)
        _learn(service, arrays, events // ARRAY)
        worker: list[float] = []
        both: list[float] = []
        tails: list[float] = []
        for _ in range(rounds):
            _learn(service, arrays, TAIL)
            service.kill()
            tails.append(_unsaved(redis))
            worker.append(_first_prediction_s(service, question))
        for _ in range(rounds):
            _learn(service, arrays, TAIL)
            service.kill()
            redis.stop()
            started_s = time.perf_counter()
            redis.start()
            both.append(time.perf_counter() - started_s + _first_prediction_s(service, question))
    finally:
        service.kill()
        redis.kill()
    past = f"{events:,} events in the past"
    return [
        Row(f"worker restart, {past}", worker, "s", target=TARGET_S, at_most=True),
        Row(f"Redis and worker restart, {past}", both, "s"),
        Row("log entries behind the snapshot at the restart", tails, "entries of 1,000"),
    ]


def measure_growth(folder: Path, rounds: int, lengths: Sequence[int]) -> list[Row]:
    """Return the rows: a worker's start after so many events, a replica so many behind."""
    redis = RedisServer(folder / "growth")
    redis.start()
    learning = Server(SERVICE, HINGED_REDIS_URL=redis.url)
    other = Server(SERVICE, HINGED_REDIS_URL=redis.url, HINGED_AT_LEAST_TIMEOUT_MS="60000")
    question = bodies(made_events(1, POOL), labelled=False)[0]
    arrays, done = _arrays(), 0
    rows: list[Row] = []
    try:
        learning.start()
        learning.wait()
        create_model(learning)
        for length in lengths:
            _learn(learning, arrays, (length - done) // ARRAY)
            done = length
            first = []
            for _ in range(rounds):
                other.kill()
                first.append(_first_prediction_s(other, question))
            rows.append(
                Row(f"first prediction of a worker, {length:,} events in the past", first, "s")
            )
        for behind in BEHIND:
            rates = []
            for _ in range(rounds):
                position = _learn(learning, arrays, behind // ARRAY)
                with Caller(other.port, f"{MODEL}/predict?at_least={position}") as caller:
                    rates.append(behind / caller.timed_post(question)[0])
            rows.append(Row(f"a replica catches up, {behind:,} events behind", rates, "events/s"))
    finally:
        learning.kill()
        other.kill()
        redis.kill()
    return rows


def _arrays() -> Iterator[bytes]:
    made = made_events(20 * ARRAY, POOL)
    pieces = [orjson.dumps(made[i : i + ARRAY]) for i in range(0, len(made), ARRAY)]
    while True:
        yield from pieces


def _learn(service: Server, arrays: Iterator[bytes], count: int) -> str:
    """Learn so many arrays; return the position after them, quoted."""
    answer = b"[]"
    with Caller(service.port, f"{MODEL}/learn") as caller:
        for _ in range(count):
            answer = caller.post(next(arrays))
    last: dict[str, Any] = (orjson.loads(answer) or [{}])[-1]
    return urllib.parse.quote(str(last.get("position", "")))


def _unsaved(redis: RedisServer) -> int:
    with redis.client() as client:
        followers: dict[str, str] = client.hgetall("hinged:{m}:followers")
        position = next(iter(followers.values())).split()[0]
        found: list[object] = client.xrange("hinged:{m}:log", f"({position}")
        return len(found)


def _first_prediction_s(service: Server, question: bytes) -> float:
    started_s = time.perf_counter()
    service.start()
    service.wait()
    with Caller(service.port, f"{MODEL}/predict") as caller:
        caller.post(question)
    return time.perf_counter() - started_s
