"""Single predict and learn calls over 16 connections, against the peers."""

from __future__ import annotations

import contextlib
import os
import time
from collections import defaultdict
from pathlib import Path

from tests.bench.events import bodies, made_events, named_bodies
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
MODEL = "/v1/models/m"
SPEC = b'{"learner":{"type":"perceptron"}}'
LATE = "/v1/models/late"
LATE_SPEC = b'{"learner":{"type":"perceptron"},"late_labels":{"wait_s":10,"max_waiting":10000000}}'
IDS_PER_S = 10_000


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
    """Return the rows; every round loads all servers, one after the other.

    Parameters
    ----------
    folder
        For Redis's files.
    rounds
        How often.
    seconds
        How long each server is loaded in a round.

    """
    events = made_events(1_000)
    sent = {"predict": bodies(events, labelled=False), "learn": bodies(events, labelled=True)}
    with contextlib.ExitStack() as stack:
        redis = {}
        for name, fsync in (("everysec", "everysec"), ("always", "always"), (SERVE, "everysec")):
            redis[name] = RedisServer(folder / name, fsync=fsync)
            redis[name].start()
            stack.callback(redis[name].kill)
        services = {
            name: Server(SERVE if name == SERVE else SERVICE, HINGED_REDIS_URL=server.url)
            for name, server in redis.items()
        }
        stack.enter_context(running(*services.values()))
        for service in services.values():
            create_model(service)
        with Caller(services["everysec"].port, LATE) as caller:
            caller.put(LATE_SPEC)
        answers = {
            call: one_answer(services["everysec"], call, sent[call][0]).decode() for call in sent
        }
        bare = {call: Server(BARE, BENCH_ANSWER=answer) for call, answer in answers.items()}
        river = Server(RIVER_MEMORY)
        river_redis = Server(RIVER_REDIS, BENCH_REDIS_URL=redis["everysec"].url)
        stack.enter_context(running(*bare.values(), river, river_redis))

        loads = [
            ("bare predict", bare["predict"], "/", "predict"),
            ("predict", services["everysec"], f"{MODEL}/predict", "predict"),
            ("predict with id", services["everysec"], f"{LATE}/predict", "named"),
            ("predict, hinged serve", services[SERVE], f"{MODEL}/predict", "predict"),
            ("river predict", river, "/predict", "predict"),
            ("bare learn", bare["learn"], "/", "learn"),
            ("learn everysec", services["everysec"], f"{MODEL}/learn", "learn"),
            ("learn always", services["always"], f"{MODEL}/learn", "learn"),
            ("learn everysec, hinged serve", services[SERVE], f"{MODEL}/learn", "learn"),
            ("river learn", river, "/learn", "learn"),
            ("river redis learn", river_redis, "/learn", "learn"),
        ]
        rate: dict[str, list[float]] = defaultdict(list)
        cpu: dict[str, list[float]] = defaultdict(list)
        for number in range(rounds + 1):
            sent["named"] = named_bodies(events, IDS_PER_S * seconds, f"{number}-")
            for name, server, path, call in loads:
                used_s = server.cpu_s()
                measured = requests_per_s(server.port, path, sent[call], CONNECTIONS, seconds)
                used_s = server.cpu_s() - used_s
                if number > 0:  # the first round warms up
                    rate[name].append(measured)
                    cpu[name].append(used_s / (measured * seconds) * 1e6)
    return [
        *_rows(rate, cpu),
        Row("fdatasync of 8 KiB on this disk, without other load of ours", fsync_ms(folder), "ms"),
        *(Row(name, values, "requests/s") for name, values in rate.items()),
        *(Row(f"{name}: processor of the worker", v, "µs/request") for name, v in cpu.items()),
    ]


def _rows(rate: dict[str, list[float]], cpu: dict[str, list[float]]) -> list[Row]:
    serve = f", {SERVE}"
    rows = [
        Row(
            "predict / bare ASGI",
            ratios(rate["predict"], rate["bare predict"]),
            target=0.45,
            aim=0.7,
        ),
        Row(
            f"predict{serve} / FastAPI + River",
            ratios(rate[f"predict{serve}"], rate["river predict"]),
        ),
        Row(
            "predict with id, kept for its label / predict",
            ratios(rate["predict with id"], rate["predict"]),
            target=2 / 3,
        ),
        Row(
            "predict with id / predict, by the worker's processor",
            ratios(cpu["predict with id"], cpu["predict"]),
            target=1.5,
            at_most=True,
        ),
    ]
    for fsync in ("everysec", "always"):
        learn = rate[f"learn {fsync}"]
        rows.append(
            Row(
                f"learn, fsync {fsync} / bare ASGI",
                ratios(learn, rate["bare learn"]),
                target=0.4,
                aim=0.6,
            )
        )
    for name in (f"everysec{serve}", "everysec", "always"):
        learn = rate[f"learn {name}"]
        rows += [
            Row(
                f"learn, fsync {name} / FastAPI + River in memory",
                ratios(learn, rate["river learn"]),
                target=2,
            ),
            Row(
                f"learn, fsync {name} / FastAPI + River pickled in Redis",
                ratios(learn, rate["river redis learn"]),
                target=50,
            ),
        ]
    return rows
