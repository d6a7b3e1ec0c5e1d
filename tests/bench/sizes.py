"""Memory of things: a weight, an event, an id, a waiting prediction, a model; where it is kept.

In Redis it is `MEMORY USAGE` over all of a key, divided by what is in it. In a worker it is
the resident memory of one that has loaded the thing above that of one that has not: both were
just started, so nothing that went on before counts.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
import redis

from hinged_service.store.keys import StreamKeys
from tests.bench.events import Event, made_events
from tests.bench.http_calls import LATE_SPEC, SPEC
from tests.bench.load import Caller
from tests.bench.servers import SERVICE, Server, running
from tests.bench.table import Row
from tests.support.redis_server import RedisServer

ARRAY = 500
NAMES_PER_EVENT = 1_000
_AROW = b'{"learner":{"type":"arow"}}'
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def measure(folder: Path, rounds: int, count: int) -> list[Row]:
    """Return the rows: `count` of each thing, a hundredth as many models."""
    with RedisServer(folder / "sizes") as server, server.client() as client:
        return [
            Row("a worker without models", _bare(server, rounds), "MB"),
            *_weights(server, client, "perceptron", SPEC, rounds, count),
            *_weights(server, client, "AROW", _AROW, rounds, count),
            *_events(server, client, count // 10),
            *_models(server, client, rounds, count // 100),
        ]


def rss_bytes(pid: int) -> int:
    """Return the resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES


def _worker(server: RedisServer) -> Server:
    """Return a worker that saves each second: what things weigh in Redis is told by snapshots."""
    return Server(SERVICE, HINGED_REDIS_URL=server.url, HINGED_SNAPSHOT_EVERY_MS="1000")


def _bare(server: RedisServer, rounds: int) -> list[float]:
    """Return the memory of workers that have just been started, in MB."""
    found = []
    for _ in range(rounds):
        service = _worker(server)
        with running(service):
            found.append(rss_bytes(service.pid) / 1e6)
    return found


def _weights(
    server: RedisServer, client: redis.Redis, title: str, spec: bytes, rounds: int, count: int
) -> list[Row]:
    name = title.lower()
    service = _worker(server)
    with running(service):
        _put(service, name, spec)
        _put(service, f"{name}-bare", spec)
        _learn(service, name, _arrays(_wide(count), 10))
        _wait_for_snapshot(client, name)
    loaded = _extra_bytes(server, [f"{name}-bare"], [name], rounds)
    parts: Any = client.keys(f"hinged:{{{name}}}:model:*")
    stored = sum(_usage(client, key) for key in parts)
    return [
        Row(f"{title}: a weight in a worker", [one / count for one in loaded], "bytes"),
        Row(f"{title}: a weight in Redis", [stored / count], "bytes"),
    ]


def _events(server: RedisServer, client: redis.Redis, count: int) -> list[Row]:
    made = made_events(count)
    named = [event | {"id": f"event-{n:010}"} for n, event in enumerate(made)]
    waiting = [{"x": event["x"], "id": event["id"]} for event in named]
    service = _worker(server)
    with running(service):
        for name, spec in (("many", SPEC), ("single", SPEC), ("named", SPEC), ("late", LATE_SPEC)):
            _put(service, name, spec)
        _learn(service, "many", _arrays(made, ARRAY))
        _learn(service, "single", _arrays(made[: count // 10], 1))
        _learn(service, "named", _arrays(named, ARRAY))
        _post(service, "late", "predict", _arrays(waiting, ARRAY))
    body = len(orjson.dumps(made)) / count
    seen = sum(_usage(client, key) for key in StreamKeys("named").seen)
    pending = sum(_usage(client, key) for key in StreamKeys("late").pending)
    single = _usage(client, StreamKeys("single").log) / (count // 10)
    return [
        Row("an event of 30 features as JSON", [body], "bytes"),
        Row(
            "an event in the log, arrays of 500",
            [_usage(client, StreamKeys("many").log) / count],
            "bytes",
        ),
        Row("an event in the log, one a call", [single], "bytes"),
        Row("an event id that is remembered", [seen / count], "bytes"),
        Row("a prediction of 30 features that waits for its label", [pending / count], "bytes"),
    ]


def _models(server: RedisServer, client: redis.Redis, rounds: int, count: int) -> list[Row]:
    names = [f"small-{n}" for n in range(count)]
    arrays = list(_arrays(made_events(20), 20))
    service = _worker(server)
    with running(service):
        used = client.info("memory")["used_memory"]
        for name in names:
            _put(service, name, SPEC)
            _learn(service, name, arrays)
        for name in names:
            _wait_for_snapshot(client, name)
        used = client.info("memory")["used_memory"] - used
    loaded = _extra_bytes(server, names[:1], names[1:], rounds)
    log = sum(_usage(client, StreamKeys(name).log) for name in names)
    return [
        Row("a model of 30 weights in a worker", [one / (count - 1) / 1e3 for one in loaded], "kB"),
        Row("a model of 30 weights in Redis, without its log", [(used - log) / count / 1e3], "kB"),
    ]


def _extra_bytes(
    server: RedisServer, before: Sequence[str], names: Sequence[str], rounds: int
) -> list[int]:
    """Return by how much a worker grows that has loaded `before` when it loads the models."""
    question = orjson.dumps({"x": {"none": 1.0}})
    grown = []
    for _ in range(rounds):
        service = _worker(server)
        with running(service):
            for name in before:
                _post(service, name, "predict", [question])
            started = rss_bytes(service.pid)
            for name in names:
                _post(service, name, "predict", [question])
            grown.append(rss_bytes(service.pid) - started)
    return grown


def _wide(count: int) -> list[Event]:
    """Return events, each with names that no other has."""
    rng = random.Random(1)
    return [
        {
            "x": {f"feature_{n}": rng.gauss(0, 1) for n in range(at, at + NAMES_PER_EVENT)},
            "y": at // NAMES_PER_EVENT % 2 == 0,
        }
        for at in range(0, count, NAMES_PER_EVENT)
    ]


def _arrays(events: Sequence[Event], size: int) -> Iterator[bytes]:
    for start in range(0, len(events), size):
        yield orjson.dumps(events[start : start + size])


def _put(service: Server, name: str, spec: bytes) -> None:
    with Caller(service.port, f"/v1/models/{name}") as caller:
        caller.put(spec)


def _learn(service: Server, name: str, arrays: Iterator[bytes] | Sequence[bytes]) -> None:
    _post(service, name, "learn", arrays)


def _post(service: Server, name: str, call: str, sent: Iterator[bytes] | Sequence[bytes]) -> None:
    with Caller(service.port, f"/v1/models/{name}/{call}") as caller:
        for body in sent:
            caller.post(body)


def _usage(client: redis.Redis, key: str) -> int:
    return int(client.memory_usage(key, samples=0) or 0)


def _wait_for_snapshot(client: redis.Redis, name: str) -> None:
    """Return once the model's snapshot is of all of its log."""
    keys = StreamKeys(name)
    deadline_s = time.monotonic() + 60
    while True:
        newest: Any = client.xrevrange(keys.log, count=1)
        saved: Any = client.hgetall(keys.followers)
        if any(position.split()[0] == newest[0][0] for position in saved.values()):
            return
        if time.monotonic() > deadline_s:
            raise RuntimeError(f"{name} was not saved")
        time.sleep(0.01)
