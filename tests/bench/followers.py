"""Followers: a prediction against that of the learner alone, and their cost for the service."""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import statistics
import time
import timeit
from collections.abc import AsyncIterator, Callable, Iterator
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import redis

import hinged
from hinged_service.follow import follow
from hinged_service.settings import Settings
from hinged_service.store.connection import Connection
from hinged_service.store.keys import StreamKeys
from hinged_service.store.log_reader import LogReader
from hinged_service.wire.position import Position
from tests.bench.events import made_events
from tests.bench.http_calls import MODEL, create_model
from tests.bench.load import Caller
from tests.bench.servers import SERVICE, Server, cpu_s, running
from tests.bench.table import Row, ratios
from tests.support.redis_server import RedisServer

FOLLOWERS = 100
PERIOD_S = 0.08
PER_CALL = 20
EVENTS_PER_S = 2_000
PREDICTION_TARGET = 1.3
LEARNING_TARGET = 1.05
BESIDE_S = 3.0
TURNS = 2_000


def measure(folder: Path, rounds: int, count: int) -> list[Row]:
    """Return the rows; each round has so many reads and learn calls of each kind."""
    with RedisServer(folder) as server:
        service = Server(SERVICE, HINGED_REDIS_URL=server.url, HINGED_APPEND_TIMEOUT_MS="15000")
        with running(service):
            create_model(service)
            calls = _calls()
            with Caller(service.port, f"{MODEL}/learn") as caller:
                caller.post(calls[0])
            predictions = _predictions(server.url, 10 * rounds)
            reads = _reads(service, server, calls, rounds, count)
            beside = _learning_beside(service, server, calls, rounds)
    return predictions + reads + beside


def _calls() -> list[bytes]:
    events = made_events(50 * PER_CALL)
    return [
        json.dumps(events[at : at + PER_CALL]).encode() for at in range(0, len(events), PER_CALL)
    ]


def _predictions(url: str, rounds: int) -> list[Row]:
    """Return how many times as long a prediction of a follower takes."""
    rows = []
    with follow(url, "m", max_staleness_ms=10_000) as model:
        learner: Any = model._replica().state.learner
        assert isinstance(learner, hinged.Perceptron)
        for count in (3, 10, 30):
            x = dict(list(made_events(1)[0]["x"].items())[:count])
            followed, alone = [], []
            for _ in range(rounds):
                followed.append(_best_ns(model.predict_one, x))
                alone.append(_best_ns(learner.predict_one, x))
            rows.append(
                Row(
                    f"predict, {count} features: follower / learner alone",
                    ratios(followed, alone),
                    target=PREDICTION_TARGET,
                    at_most=True,
                )
            )
    return rows


def _best_ns(predict: Callable[[Any], Any], x: dict[str, float]) -> float:
    timer = timeit.Timer("predict(x)", globals={"predict": predict, "x": x})
    return min(timer.repeat(5, TURNS)) / TURNS * 1e9


def _reads(
    service: Server, server: RedisServer, calls: list[bytes], rounds: int, count: int
) -> list[Row]:
    """Return what a read costs Redis, and what the reads of 100 followers come to.

    The readers read as followers do and fold nothing, which is no cost of the service. Processor
    time per read hardly depends on how busy the machine is; the worker has no part in reads.
    """
    new = round(EVENTS_PER_S * PERIOD_S / PER_CALL)
    with Caller(service.port, f"{MODEL}/learn") as caller:
        start = _end(server.url)
        for number in range(new):
            caller.post(calls[number])
    cost: dict[bool, list[float]] = {False: [], True: []}
    learned: list[float] = []
    for number in range(rounds):
        for anything in (False, True) if number % 2 else (True, False):
            position = start if anything else _end(server.url)
            cost[anything].append(asyncio.run(_read_us(server, position, count)))
    with Caller(service.port, f"{MODEL}/learn") as caller:
        for _ in range(rounds):
            used_s = cpu_s(server.pid)
            for number in range(count):
                caller.post(calls[number % len(calls)])
            learned.append((cpu_s(server.pid) - used_s) / count / PER_CALL * 1e6)
    per_s = FOLLOWERS / PERIOD_S
    return [
        Row(
            f"share of Redis's core that {FOLLOWERS} followers take, 2,000 events/s",
            [us * per_s / 1e4 for us in cost[True]],
            "%",
        ),
        Row("the same, nothing new", [us * per_s / 1e4 for us in cost[False]], "%"),
        Row(f"processor of Redis: a read of {new * PER_CALL} new events", cost[True], "µs"),
        Row("processor of Redis: a read of nothing new", cost[False], "µs"),
        Row(f"processor of Redis: learn, calls of {PER_CALL}", learned, "µs/event"),
    ]


def _learning_beside(
    service: Server, server: RedisServer, calls: list[bytes], rounds: int
) -> list[Row]:
    """Return how much longer learn calls take while 100 readers read as followers do."""
    took_ms: dict[bool, list[float]] = {False: [], True: []}
    with Caller(service.port, f"{MODEL}/learn") as caller:
        for number, beside in ((n, b) for n in range(rounds + 1) for b in (False, True)):
            with _readers(server.url) if beside else contextlib.nullcontext():
                found = _paced_ms(caller, calls)
            if number > 0:
                took_ms[beside].append(found)
    return [
        Row(
            f"learn, {EVENTS_PER_S:,} events/s: a call beside {FOLLOWERS} followers / without",
            ratios(took_ms[True], took_ms[False]),
            target=LEARNING_TARGET,
            at_most=True,
        )
    ]


def _paced_ms(caller: Caller, calls: list[bytes]) -> float:
    """Return the mean time of calls that are sent at an even pace."""
    took, begun_s, number = [], time.perf_counter(), 0
    while (now_s := time.perf_counter()) - begun_s < BESIDE_S:
        time.sleep(max(0.0, begun_s + number * PER_CALL / EVENTS_PER_S - now_s))
        sent_s = time.perf_counter()
        caller.post(calls[number % len(calls)])
        took.append((time.perf_counter() - sent_s) * 1e3)
        number += 1
    return statistics.mean(took)


@contextlib.contextmanager
def _readers(url: str) -> Iterator[None]:
    """Have as many readers as followers in another process."""
    context = multiprocessing.get_context("spawn")
    ready, stop = context.Event(), context.Event()
    process = context.Process(target=_read_along, args=(url, ready, stop))
    process.start()
    try:
        ready.wait()
        yield
    finally:
        stop.set()
        process.join()


def _read_along(url: str, ready: Event, stop: Event) -> None:
    async def one(number: int) -> None:
        position, at_s = _end(url), time.perf_counter() + PERIOD_S * number / FOLLOWERS
        async with _reader(url) as (reader, most):
            while not stop.is_set():
                await asyncio.sleep(max(0.0, at_s - time.perf_counter()))
                reply = await reader.catch_up(position, most)
                position = reply.entries[-1].position if reply.entries else position
                at_s += PERIOD_S

    async def all_of_them() -> None:
        readers = [asyncio.ensure_future(one(number)) for number in range(FOLLOWERS)]
        await asyncio.sleep(1.0)
        ready.set()
        await asyncio.gather(*readers)

    asyncio.run(all_of_them())


def _end(url: str) -> Position:
    client: Any = redis.Redis.from_url(url, decode_responses=True)
    with client:
        return Position(*client.hmget("hinged:{m}:meta", ["last", "chain"]))


async def _read_us(server: RedisServer, position: Position, count: int) -> float:
    """Return the processor time of Redis for a read from a position on, in µs."""
    async with _reader(server.url) as (reader, most):
        for _ in range(10):  # it learns how many to ask for
            await reader.catch_up(position, most)
        used_s = cpu_s(server.pid)
        for _ in range(count):
            await reader.catch_up(position, most)
        return (cpu_s(server.pid) - used_s) / count * 1e6


@contextlib.asynccontextmanager
async def _reader(url: str) -> AsyncIterator[tuple[LogReader, int]]:
    """Yield what reads the model's log as a follower does, and the bytes that it reads at once."""
    client: Any = redis.Redis.from_url(url, decode_responses=True)
    with client:
        keys = StreamKeys("m").model(json.loads(client.hget("hinged:models", "m"))["uid"])
    settings = Settings(redis_url=url, redis_timeout_ms=60_000)
    connection = Connection(url, settings, notes=False)
    try:
        yield LogReader(connection, keys), settings.reply_bytes
    finally:
        await connection.aclose()
