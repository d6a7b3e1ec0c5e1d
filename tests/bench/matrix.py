"""The service at 1, 16 and 64 connections, with one worker and two, beside its peers.

The bare function is what the web server alone does; FastAPI and River in memory keeps
nothing and with two workers holds two models; with River pickled in Redis, updates get
lost: how many is counted.
"""

from __future__ import annotations

import contextlib
import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import redis

from tests.bench.events import bodies, made_events
from tests.bench.http_calls import MODEL, Sides, all_sides
from tests.bench.load import Load, loaded
from tests.bench.servers import Server
from tests.bench.table import Row, ratios
from tests.support.redis_server import RedisServer

__all__ = ["measure"]

CONNECTIONS = (1, 16, 64)
WORKERS = (1, 2)
PICKLED = "river redis learn"


class _Target(NamedTuple):
    name: str
    server: Server
    path: str
    sent: list[bytes]


def measure(folder: Path, rounds: int, seconds: int) -> list[Row]:
    """Return the rows: every server loaded in every round, one after the other."""
    rows: list[Row] = []
    for workers in WORKERS:
        rows += _with_workers(folder / f"workers-{workers}", workers, rounds, seconds)
    return rows


def _with_workers(folder: Path, workers: int, rounds: int, seconds: int) -> list[Row]:
    with contextlib.ExitStack() as stack:
        sides = all_sides(stack, folder, workers)
        store, targets = sides.stores["everysec"], _targets(sides)
        found: dict[tuple[str, int], list[Load]] = defaultdict(list)
        lost: list[float] = []
        for number in range(rounds + 1):
            for connections in CONNECTIONS:
                for target in targets:
                    before = _learned(store) if target.name == PICKLED else 0
                    load = loaded(
                        target.server.port,
                        [(target.path, body) for body in target.sent],
                        connections,
                        seconds,
                    )
                    if number == 0:  # the first round warms up
                        continue
                    found[target.name, connections].append(load)
                    if target.name == PICKLED and connections == max(CONNECTIONS):
                        kept = _learned(store) - before
                        lost.append(100 * (1 - kept / load.answers))
    return _rows(workers, found, lost)


def _targets(sides: Sides) -> list[_Target]:
    events = made_events(1_000)
    asked, taught = bodies(events, labelled=False), bodies(events, labelled=True)
    durable, bare = sides.services["everysec"], sides.bare
    return [
        _Target("bare predict", bare["predict"], "/", asked),
        _Target("predict", durable, f"{MODEL}/predict", asked),
        _Target("river predict", sides.memory, "/predict", asked),
        _Target("bare learn", bare["learn"], "/", taught),
        _Target("learn everysec", durable, f"{MODEL}/learn", taught),
        _Target("learn always", sides.services["always"], f"{MODEL}/learn", taught),
        _Target("river learn", sides.memory, "/learn", taught),
        _Target(PICKLED, sides.pickled, "/learn", taught),
    ]


def _learned(store: RedisServer) -> int:
    """Return how many updates the pickled model has seen."""
    with redis.Redis.from_url(store.url) as client:
        stored: Any = client.get("bench:river")
    return int(pickle.loads(stored)[1])


def _rows(workers: int, found: dict[tuple[str, int], list[Load]], lost: list[float]) -> list[Row]:
    rows: list[Row] = []
    for connections in CONNECTIONS:
        place = f"{workers} worker{'s' * (workers > 1)}, {connections} connections"
        rate = {
            name: [load.per_s for load in loads]
            for (name, number), loads in found.items()
            if number == connections
        }
        for call in ("predict", "learn everysec", "learn always"):
            verb = call.split()[0]
            rows.append(
                Row(f"{place}: {call} / bare ASGI", ratios(rate[call], rate[f"bare {verb}"]))
            )
            rows.append(
                Row(
                    f"{place}: {call} / FastAPI + River in memory",
                    ratios(rate[call], rate[f"river {verb}"]),
                )
            )
        rows.append(
            Row(
                f"{place}: learn everysec / FastAPI + River pickled in Redis",
                ratios(rate["learn everysec"], rate[PICKLED]),
            )
        )
        for name in rate:
            loads = found[name, connections]
            rows.append(Row(f"{place}: {name}", rate[name], "requests/s"))
            rows.append(Row(f"{place}: {name}, p50", [load.p50_ms for load in loads], "ms"))
            rows.append(Row(f"{place}: {name}, p99", [load.p99_ms for load in loads], "ms"))
    name = f"{workers} worker{'s' * (workers > 1)}, {max(CONNECTIONS)} connections"
    rows.append(Row(f"{name}: updates that River pickled in Redis lost", lost, "% of the answered"))
    return rows
