"""Single predict and learn calls, against the peers, which run under uvicorn as it comes."""

from __future__ import annotations

import contextlib
import os
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.bench.events import Event, bodies, made_events, named_bodies
from tests.bench.load import Caller, requests_per_s
from tests.bench.servers import (
    BARE,
    RIVER_MEMORY,
    RIVER_REDIS,
    SERVE,
    SERVICE,
    Server,
    running,
)
from tests.bench.table import Row, ratios
from tests.support.redis_server import RedisServer

CONNECTIONS = 16
MANY = 64
MODEL = "/v1/models/m"
SPEC = b'{"learner":{"type":"perceptron"}}'
LATE = "/v1/models/late"
LATE_SPEC = b'{"learner":{"type":"perceptron"},"late_labels":{"wait_s":10,"max_waiting":10000000}}'
IDS_PER_S = 40_000


def create_model(service: Server) -> None:
    """Create the model that is measured."""
    with Caller(service.port, MODEL) as caller:
        caller.put(SPEC)


def one_answer(service: Server, call: str, body: bytes) -> bytes:
    """Return what the service answers to a body."""
    with Caller(service.port, f"{MODEL}/{call}") as caller:
        return caller.post(body)


def fsync_ms(folder: Path, count: int = 50) -> list[float]:
    """Return how long this disk takes to keep 8 KiB: what appendfsync always waits for."""
    times: list[float] = []
    with (folder / "fsync").open("wb", buffering=0) as file:
        for _ in range(count):
            started_s = time.perf_counter()
            file.write(b"x" * 8192)
            os.fdatasync(file.fileno())
            times.append((time.perf_counter() - started_s) * 1e3)
    return times


def measure(folder: Path, rounds: int, seconds: int) -> list[Row]:
    """Return the rows; every round loads all servers, one after the other."""
    return [
        *_as_served(folder, rounds, seconds),
        *_under_uvicorn(folder, rounds, seconds),
        Row("fdatasync of 8 KiB on this disk, without other load of ours", fsync_ms(folder), "ms"),
    ]


class Sides(NamedTuple):
    """Everything that is loaded side by side; by fsync or by call where there are two."""

    stores: dict[str, RedisServer]
    services: dict[str, Server]
    bare: dict[str, Server]
    memory: Server
    pickled: Server


def all_sides(stack: contextlib.ExitStack, folder: Path, workers: int) -> Sides:
    """Start the service on two Redis servers, and its peers; the model is there."""
    stores = {
        fsync: stack.enter_context(RedisServer(folder / fsync, fsync=fsync))
        for fsync in ("everysec", "always")
    }
    services = {
        fsync: Server(SERVE, workers, HINGED_REDIS_URL=store.url) for fsync, store in stores.items()
    }
    stack.enter_context(running(*services.values()))
    for service in services.values():
        create_model(service)
    bare = {
        call: Server(
            BARE, workers, BENCH_ANSWER=one_answer(services["everysec"], call, sent[0]).decode()
        )
        for call, sent in _plain_bodies().items()
    }
    memory = Server(RIVER_MEMORY, workers)
    pickled = Server(RIVER_REDIS, workers, BENCH_REDIS_URL=stores["everysec"].url)
    stack.enter_context(running(*bare.values(), memory, pickled))
    return Sides(stores, services, bare, memory, pickled)


class _Load(NamedTuple):
    name: str
    server: Server
    path: str
    sent: str
    """The kind of bodies."""
    connections: int = CONNECTIONS


class _Measured(NamedTuple):
    """Per load and round: requests per second, and processor time per request in µs."""

    rate: Mapping[str, list[float]]
    cpu: Mapping[str, list[float]]

    def over(self, one: str, other: str) -> list[float]:
        """Return how many times the rate of `other` that of `one` is."""
        return ratios(self.rate[one], self.rate[other])

    def rows(self) -> list[Row]:
        """Return all of it."""
        return [
            *(Row(name, values, "requests/s") for name, values in self.rate.items()),
            *(
                Row(f"{name}: processor of the worker", v, "µs/request")
                for name, v in self.cpu.items()
            ),
        ]


def _measured(loads: Sequence[_Load], rounds: int, seconds: int) -> _Measured:
    rate: dict[str, list[float]] = defaultdict(list)
    cpu: dict[str, list[float]] = defaultdict(list)
    sent = _plain_bodies()
    names_wanted = any(load.sent == "named" for load in loads)
    for number in range(rounds + 1):
        if names_wanted:  # an id is kept once
            sent["named"] = named_bodies(_events(), IDS_PER_S * seconds, f"{number}-")
        for load in loads:
            used_s = load.server.cpu_s()
            measured = requests_per_s(
                load.server.port, load.path, sent[load.sent], load.connections, seconds
            )
            used_s = load.server.cpu_s() - used_s
            if number > 0:  # the first round warms up
                rate[load.name].append(measured)
                cpu[load.name].append(used_s / (measured * seconds) * 1e6)
    return _Measured(rate, cpu)


def _events() -> list[Event]:
    return made_events(1_000)


def _plain_bodies() -> dict[str, list[bytes]]:
    events = _events()
    return {"predict": bodies(events, labelled=False), "learn": bodies(events, labelled=True)}


def _as_served(folder: Path, rounds: int, seconds: int) -> list[Row]:
    """Return what the service does as its users start it."""
    with contextlib.ExitStack() as stack:
        sides = all_sides(stack, folder, 1)
        services, bare, river, pickled = sides.services, sides.bare, sides.memory, sides.pickled
        with Caller(services["everysec"].port, LATE) as caller:
            caller.put(LATE_SPEC)
        always = services["always"]
        found = _measured(
            [
                _Load("bare predict", bare["predict"], "/", "predict"),
                _Load("predict", services["everysec"], f"{MODEL}/predict", "predict"),
                _Load("predict with id", services["everysec"], f"{LATE}/predict", "named"),
                _Load("river predict", river, "/predict", "predict"),
                _Load("bare learn", bare["learn"], "/", "learn"),
                _Load("learn everysec", services["everysec"], f"{MODEL}/learn", "learn"),
                _Load(f"bare learn, {MANY}", bare["learn"], "/", "learn", MANY),
                _Load(f"learn always, {MANY}", always, f"{MODEL}/learn", "learn", MANY),
                _Load("river learn", river, "/learn", "learn"),
                _Load("river redis learn", pickled, "/learn", "learn"),
            ],
            rounds,
            seconds,
        )
    always_over = found.over(f"learn always, {MANY}", f"bare learn, {MANY}")
    return [
        Row("predict / bare ASGI", found.over("predict", "bare predict"), target=1.2),
        Row("predict / FastAPI + River", found.over("predict", "river predict")),
        Row(
            "predict with id, kept for its label / predict",
            found.over("predict with id", "predict"),
            target=0.7,
        ),
        Row(
            "learn, fsync everysec / bare ASGI",
            found.over("learn everysec", "bare learn"),
            target=0.6,
            aim=0.8,
        ),
        *_beside_river("learn, fsync everysec", found, "learn everysec"),
        Row(
            f"learn, fsync always, {MANY} connections / bare ASGI",
            always_over,
            target=0.5,
        ),
        *found.rows(),
    ]


def _under_uvicorn(folder: Path, rounds: int, seconds: int) -> list[Row]:
    """Return what it does under uvicorn as it comes, without the fast path, beside River."""
    with contextlib.ExitStack() as stack:
        redis = stack.enter_context(RedisServer(folder / "uvicorn"))
        service = Server(SERVICE, HINGED_REDIS_URL=redis.url)
        river = Server(RIVER_MEMORY)
        stack.enter_context(running(service, river))
        create_model(service)
        found = _measured(
            [
                _Load("uvicorn: predict", service, f"{MODEL}/predict", "predict"),
                _Load("beside it: river predict", river, "/predict", "predict"),
                _Load("uvicorn: learn", service, f"{MODEL}/learn", "learn"),
                _Load("beside it: river learn", river, "/learn", "learn"),
            ],
            rounds,
            seconds,
        )
    predict = found.over("uvicorn: predict", "beside it: river predict")
    learn = found.over("uvicorn: learn", "beside it: river learn")
    return [
        Row("under plain uvicorn: predict / FastAPI + River", predict),
        Row("under plain uvicorn: learn / FastAPI + River in memory", learn),
        *found.rows(),
    ]


def _beside_river(name: str, found: _Measured, learn: str) -> list[Row]:
    memory, pickled = (found.over(learn, f"river{way} learn") for way in ("", " redis"))
    return [
        Row(f"{name} / FastAPI + River in memory", memory, target=2),
        Row(f"{name} / FastAPI + River pickled in Redis", pickled, target=50),
    ]
