"""Unit costs: what one prediction, event, opened model or index entry takes of each resource."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hinged_service.settings import RedisSettings
from hinged_service.store import index
from hinged_service.store.connection import Connection
from hinged_service.store.keys import StreamKeys
from tests.bench.http_calls import CONNECTIONS
from tests.bench.scale import Post, array_posts, made, posts, rate_of, scripts_run, touch, worker_on
from tests.bench.servers import cpu_s, running
from tests.bench.sizes import rss_bytes
from tests.support.redis_server import RedisServer

ARRAY = 100
SAMPLE = 50


@dataclass(frozen=True)
class Cost:
    """Cost of one request, event or entry.

    Attributes
    ----------
    worker_us, redis_us
        Processor time, in microseconds.
    scripts
        Scripts that Redis ran.
    net_bytes
        Bytes that Redis received and sent.

    """

    worker_us: float
    redis_us: float = 0.0
    scripts: float = 0.0
    net_bytes: float = 0.0


@dataclass(frozen=True)
class Costs:
    """Costs of a service of many small models, each called in turn; memory in bytes."""

    predict: Cost
    learn: Cost
    array_event: Cost
    opened: Cost
    entry: Cost
    logged_bytes: float
    model_bytes: float
    stored_model_bytes: float


def measured(folder: Path, count: int, seconds: int) -> Costs:
    """Measure with `count` models in memory, and then with a tenth of them."""
    names = [f"m{n}" for n in range(count)]
    with RedisServer(folder / "all") as redis:
        worker = worker_on(redis, count)
        with running(worker), redis.client() as client:
            empty: Any = client.info("memory")
            made(worker, names)
            bare: Any = client.info("memory")
            before = rss_bytes(worker.pid)
            touch(worker, names)
            model_bytes = (rss_bytes(worker.pid) - before) / count
            stored = (bare["used_memory"] - empty["used_memory"]) / count
            cost = {
                call: _cost(redis, worker, posts(call, names), seconds, 1)
                for call in ("predict", "learn")
            }
            logged = _logged_bytes(client, names[:SAMPLE])
            arrays = [(f"/v1/models/{name}/learn", body) for name, (_, body) in _arrays(names)]
            cost["array"] = _cost(redis, worker, arrays, seconds, ARRAY)
            entry = asyncio.run(_entry(redis, count))
    with RedisServer(folder / "tenth") as redis:
        worker = worker_on(redis, max(1, count // 10))
        with running(worker):
            made(worker, names)
            touch(worker, names)
            away = _cost(redis, worker, posts("predict", names), seconds, 1)
    opened = Cost(
        *(max(0.0, a - b) for a, b in zip(_words(away), _words(cost["predict"]), strict=True))
    )
    return Costs(
        cost["predict"], cost["learn"], cost["array"], opened, entry, logged, model_bytes, stored
    )


def _words(cost: Cost) -> tuple[float, ...]:
    return (cost.worker_us, cost.redis_us, cost.scripts, cost.net_bytes)


def _arrays(names: Sequence[str]) -> list[tuple[str, Post]]:
    bodies = array_posts(30, ARRAY)
    return [(name, bodies[n % len(bodies)]) for n, name in enumerate(names)]


def _cost(redis: RedisServer, worker: Any, sent: Sequence[Post], seconds: int, each: int) -> Cost:
    """Return the cost of a request, or of each of the events in it; the first round warms up."""
    rate_of([worker], [sent], seconds, CONNECTIONS)
    with redis.client() as client:
        net, ran = _net_bytes(client), scripts_run(redis)
        cpu, of_redis = worker.cpu_s(), cpu_s(redis.pid)
        count = rate_of([worker], [sent], seconds, CONNECTIONS) * seconds * each
        spent, of_redis = worker.cpu_s() - cpu, cpu_s(redis.pid) - of_redis
        net = _net_bytes(client) - net
    ran = scripts_run(redis) - ran
    return Cost(spent / count * 1e6, of_redis / count * 1e6, ran / count, net / count)


def _net_bytes(client: Any) -> int:
    stats = client.info("stats")
    return int(stats["total_net_input_bytes"] + stats["total_net_output_bytes"])


def _logged_bytes(client: Any, names: Sequence[str]) -> float:
    """Return the memory of an entry in logs of single events."""
    logs = [StreamKeys(name).log for name in names]
    used = sum(client.memory_usage(log, samples=0) or 0 for log in logs)
    return float(used / sum(client.xlen(log) for log in logs))


async def _entry(redis: RedisServer, count: int) -> Cost:
    """Return the cost of an entry when the index is read that was read before."""
    connection = Connection(redis.url, RedisSettings(redis_timeout_ms=20_000))
    try:
        await index.index(connection)
        of_redis, own_s, rounds = cpu_s(redis.pid), time.process_time(), 5
        with redis.client() as client:
            net = _net_bytes(client)
            for _ in range(rounds):
                await index.index(connection)
            net = _net_bytes(client) - net
        own_s, of_redis = time.process_time() - own_s, cpu_s(redis.pid) - of_redis
    finally:
        await connection.aclose()
    each = rounds * count
    return Cost(own_s / each * 1e6, of_redis / each * 1e6, net_bytes=net / each)
