"""The growth of rates, processor time and memory with models, features and workers.

First what many models cost beside few, as ratios of rates that were measured one right after the
other, and the scripts that Redis ran for each request. Then the costs one by one.

A rate on one machine ends where its cores do, and client and Redis want some of them. What a
request costs the worker and Redis in processor time hardly depends on that: those numbers
say what a cluster takes.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from tests.bench.events import bodies, made_events
from tests.bench.http_calls import CONNECTIONS, SPEC
from tests.bench.load import Caller, mixed_requests_per_s
from tests.bench.servers import SERVE, SERVICE, Server, cpu_s, running
from tests.bench.sizes import rss_bytes
from tests.bench.table import Row, ratios
from tests.support.redis_server import RedisServer

FEATURES = (10, 30, 100, 1_000)
WORKERS = (1, 2, 3, 4)
MODELS_OF_WORKERS = 64
MODELS_OF_FEW = 10
ARRAY = 100
FEW_CONNECTIONS = 4
"""For arrays of megabytes, or the service turns some away."""
DEFAULT_REPLICAS = 1_000

Post = tuple[str, bytes]


@dataclass
class _Load:
    """Cost of a load, round by round."""

    rate: list[float] = field(default_factory=list)
    worker_us: list[float] = field(default_factory=list)
    redis_us: list[float] = field(default_factory=list)

    def rows(self, name: str, unit: str) -> list[Row]:
        return [
            Row(name, self.rate, f"{unit}s/s"),
            Row(f"{name}: processor of the workers", self.worker_us, f"µs/{unit}"),
            Row(f"{name}: processor of Redis", self.redis_us, f"µs/{unit}"),
        ]


def measure(folder: Path, rounds: int, seconds: int, most_models: int) -> list[Row]:
    """Return the rows: one worker with 1 to `most_models` models, wider events, more workers."""
    rows = _many_beside_few(folder / "many", most_models, rounds, seconds)
    counts = itertools.takewhile(lambda n: n <= most_models, (10**k for k in itertools.count()))
    for count in counts:
        place = folder / f"models-{count}"
        rows += _models(place, count, max(count, DEFAULT_REPLICAS), rounds, seconds)
    if most_models > DEFAULT_REPLICAS:
        rows += _models(folder / "capped", most_models, DEFAULT_REPLICAS, rounds, seconds)
    for width in FEATURES:
        rows += _features(folder / f"features-{width}", width, rounds, seconds)
    for workers in WORKERS:
        rows += _workers(folder / f"workers-{workers}", workers, rounds, seconds)
    for size in (1, ARRAY):
        rows += _learning_over_workers(folder / f"over-workers-{size}", size, rounds, seconds)
    return rows


def _many_beside_few(folder: Path, count: int, rounds: int, seconds: int) -> list[Row]:
    """Return the ratios of `count` models to a hundredth, all in memory and a tenth of them.

    Each call is to any model: of the last fleet, one in ten finds its model in memory.
    """
    few, kept = max(count // 100, MODELS_OF_FEW), max(count // 10, 1)
    rates: dict[tuple[str, str], list[float]] = {}
    scripts: dict[tuple[str, str], list[float]] = {}
    many, capped = f"{count:,} models", f"{count:,} models, {kept:,} in memory"
    with contextlib.ExitStack() as stack:
        fleets: dict[str, tuple[RedisServer, Server, list[str]]] = {}
        for title, models, replicas in (
            ("few", few, few),
            (many, count, count),
            (capped, count, kept),
        ):
            redis = stack.enter_context(RedisServer(folder / str(len(fleets))))
            worker, names = worker_on(redis, replicas), [f"m{n}" for n in range(models)]
            stack.enter_context(running(worker))
            made(worker, names)
            touch(worker, names)
            fleets[title] = redis, worker, names
        for number, call in itertools.product(range(rounds + 1), ("predict", "learn")):
            for title, (redis, worker, names) in fleets.items():
                before = scripts_run(redis)
                share = at_random(posts(call, names), 2 * count, number)
                rate = rate_of([worker], [share], seconds, CONNECTIONS)
                if number > 0:
                    rates.setdefault((title, call), []).append(rate)
                    ran = (scripts_run(redis) - before) / (rate * seconds)
                    scripts.setdefault((title, call), []).append(ran)
    rows = [
        Row(
            f"{title}, {call}: rate / that of {few:,}",
            ratios(found, rates["few", call]),
            "×",
            least,
        )
        for title, leasts in ((many, (0.8, 0.7)), (capped, (0.4, 0.4)))
        for call, least in zip(("predict", "learn"), leasts, strict=True)
        for found in (rates[title, call],)
    ]
    for call, most in (("predict", 0.05), ("learn", 1.1)):
        name = f"{many}, {call}: scripts of Redis"
        rows.append(Row(name, scripts[many, call], "/request", most, at_most=True))
    return rows


def scripts_run(redis: RedisServer) -> int:
    """Return how many scripts the server has run."""
    with redis.client() as client:
        stats: Any = client.info("commandstats")
    return sum(stats.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in ("eval", "evalsha"))


def _models(folder: Path, count: int, replicas: int, rounds: int, seconds: int) -> list[Row]:
    """Return the rows of one worker whose models get single calls in turn."""
    with RedisServer(folder) as redis:
        worker = worker_on(redis, replicas)
        names = [f"m{n}" for n in range(count)]
        rows: list[Row] = []
        title = f"{count:,} model{'s' if count > 1 else ''}"
        if replicas < count:
            title += f", {replicas:,} in memory"
        with running(worker):
            made(worker, names)
            touch(worker, names)
            for call in ("learn", "predict"):
                load = _loaded(redis, [worker], [posts(call, names)], rounds, seconds)
                rows += load.rows(f"{title}, {call}", "request")
            rows.append(Row(f"{title}: memory of the worker", [rss_bytes(worker.pid) / 1e6], "MB"))
            with redis.client() as client:
                used = client.info("memory")["used_memory"] / 1e6
            rows.append(Row(f"{title}: memory of Redis, logs included", [used], "MB"))
    return rows


def _features(folder: Path, width: int, rounds: int, seconds: int) -> list[Row]:
    """Return the rows of one model that learns arrays of events so wide."""
    with RedisServer(folder) as redis:
        worker = worker_on(redis)
        with running(worker):
            made(worker, ["m"])
            sent = array_posts(width, ARRAY)
            load = _loaded(redis, [worker], [sent], rounds, seconds, FEW_CONNECTIONS, ARRAY)
    return load.rows(f"{width:,} features, arrays of {ARRAY}", "event")


def _workers(folder: Path, count: int, rounds: int, seconds: int) -> list[Row]:
    """Return the rows of so many workers, each model with one of them as a balancer sees to it."""
    with RedisServer(folder) as redis:
        workers = [worker_on(redis) for _ in range(count)]
        names = [f"m{n}" for n in range(MODELS_OF_WORKERS)]
        rows: list[Row] = []
        with running(*workers):
            made(workers[0], names)
            for call in ("learn", "predict"):
                shares = [posts(call, names[n::count]) for n in range(count)]
                load = _loaded(redis, workers, shares, rounds, seconds)
                title = f"{count} worker{'s' if count > 1 else ''}, {MODELS_OF_WORKERS} models"
                rows += load.rows(f"{title}, {call}", "request")
    return rows


def _learning_over_workers(folder: Path, size: int, rounds: int, seconds: int) -> list[Row]:
    """Return how many times the events of one worker two workers learn, by processor time each.

    Calls come by a hash of their path, or to any of the workers, which hand them to the owner of
    the stream or each learn all. Two workers apart have a Redis each and know nothing of each
    other: what they lose is the machine's, which more processes share.
    """
    names = [f"m{n}" for n in range(MODELS_OF_WORKERS)]
    sent = posts("learn", names) if size == 1 else _arrays(names, size)
    ways = {"one": 1, "apart": 2, "by hash": 2, "any": 2, "any, without owners": 2}
    spent_us: dict[str, list[float]] = {way: [] for way in ways}
    with contextlib.ExitStack() as stack:
        fleets: dict[str, list[Server]] = {}
        for way, count in ways.items():
            place = folder / way.replace(", ", "-").replace(" ", "-")
            (place / "shared").mkdir(parents=True)
            apart = count if way == "apart" else 1
            stores = [stack.enter_context(RedisServer(place / str(n))) for n in range(apart)]
            owners = "auto" if way == "any" else "off"
            shared = {"HINGED_METRICS_DIR": str(place / "shared"), "HINGED_OWNERS": owners}
            fleets[way] = [
                Server(SERVE, 1, **shared, **_patient(stores[n % apart])) for n in range(count)
            ]
            stack.enter_context(running(*fleets[way]))
            for worker in fleets[way][:apart]:
                made(worker, names)
        for number, (way, workers) in itertools.product(range(rounds + 1), fleets.items()):
            of_one = [[post for post in sent if _hash(post[0]) == n] for n in range(2)]
            shares = of_one if way in ("apart", "by hash") else [sent] * len(workers)
            before_s = sum(worker.cpu_s() for worker in workers)
            rate = rate_of(workers, shares, seconds, CONNECTIONS) * size
            if number > 0:
                took_s = sum(worker.cpu_s() for worker in workers) - before_s
                spent_us[way].append(took_s / (rate * seconds) * 1e6)
    unit = "single calls" if size == 1 else f"arrays of {size}"
    one = spent_us.pop("one")
    return [
        Row(
            f"2 workers, {MODELS_OF_WORKERS} models, {unit}, {way}: events / those of one worker",
            [2 * ratio for ratio in ratios(one, spent)],
            "×",
        )
        for way, spent in spent_us.items()
    ]


def _hash(path: str) -> int:
    """Return one of two workers for a path, as a balancer does."""
    return zlib.crc32(path.encode()) % 2


def _arrays(names: Sequence[str], size: int) -> list[Post]:
    """Return calls that visit the models in turn, each with an array of events."""
    events = bodies(made_events(10 * size), labelled=True)
    arrays = [b"[" + b",".join(events[n::10]) + b"]" for n in range(10)]
    return [(f"/v1/models/{name}/learn", arrays[n % 10]) for n, name in enumerate(names)]


def worker_on(redis: RedisServer, replicas: int = DEFAULT_REPLICAS) -> Server:
    """Return a worker that waits for Redis rather than turn calls away: it is meant to be full."""
    return Server(SERVICE, 1, HINGED_MAX_REPLICAS=str(replicas), **_patient(redis))


def _patient(redis: RedisServer) -> dict[str, str]:
    return {
        "HINGED_REDIS_URL": redis.url,
        "HINGED_REDIS_TIMEOUT_MS": "20000",
        "HINGED_APPEND_TIMEOUT_MS": "20000",
    }


def _loaded(
    redis: RedisServer,
    workers: Sequence[Server],
    shares: Sequence[Sequence[Post]],
    rounds: int,
    seconds: int,
    connections: int = CONNECTIONS,
    per_post: int = 1,
) -> _Load:
    """Load every worker with its share at once; the first round warms up."""
    load = _Load()
    for number in range(rounds + 1):
        worker_s = sum(worker.cpu_s() for worker in workers)
        redis_s = cpu_s(redis.pid)
        rate = rate_of(workers, shares, seconds, connections) * per_post
        worker_s = sum(worker.cpu_s() for worker in workers) - worker_s
        redis_s = cpu_s(redis.pid) - redis_s
        if number > 0:
            load.rate.append(rate)
            load.worker_us.append(worker_s / (rate * seconds) * 1e6)
            load.redis_us.append(redis_s / (rate * seconds) * 1e6)
    return load


def rate_of(
    workers: Sequence[Server], shares: Sequence[Sequence[Post]], seconds: int, connections: int
) -> float:
    """Return the requests per second of all workers together."""
    each = max(1, connections // len(workers))

    def drive(worker: Server, share: Sequence[Post]) -> float:
        return mixed_requests_per_s(worker.port, share, each, seconds)

    with ThreadPoolExecutor(len(workers)) as threads:
        return sum(threads.map(drive, workers, shares))


def made(worker: Server, names: Sequence[str]) -> None:
    for name in names:
        with Caller(worker.port, f"/v1/models/{name}") as caller:
            caller.put(SPEC)


def touch(worker: Server, names: Sequence[str]) -> None:
    """Have each model in memory, or as many as may be: the warm-up need not reach all."""
    for path, body in posts("predict", names)[: len(names)]:
        with Caller(worker.port, path) as caller:
            caller.post(body)


def posts(call: str, names: Sequence[str]) -> list[Post]:
    """Return calls that visit the models in turn."""
    sent = bodies(made_events(1_000), labelled=call == "learn")
    total = max(len(sent), len(names))
    paths = [f"/v1/models/{name}/{call}" for name in names]
    return [(paths[n % len(paths)], sent[n % len(sent)]) for n in range(total)]


def at_random(sent: Sequence[Post], count: int, seed: int) -> list[Post]:
    """Return so many of the calls, each any of them: a model does not come back in its turn."""
    return random.Random(seed).choices(sent, k=count)


def array_posts(width: int, size: int) -> list[Post]:
    """Return calls of one model that learn arrays of events so wide."""
    rng = random.Random(1)
    arrays = [
        [
            {"x": {f"feature_{n}": round(rng.gauss(0, 1), 6) for n in range(width)}, "y": y}
            for y in (True, False) * (size // 2)
        ]
        for _ in range(4)
    ]
    return [("/v1/models/m/learn", orjson.dumps(array)) for array in arrays]
