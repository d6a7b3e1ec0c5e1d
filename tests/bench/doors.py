"""`hinged ingest` of files and of a Redis stream against arrays of 500 over HTTP.

The ingests run in this process, through what the commands themselves call. Their time is that
of the source alone: it begins when Redis is connected and the model is made, and holds opening
the file or joining the group, and ends with the last event acknowledged. Python's start and the
imports are not in it. Each way learns the same events, each time into a new model.
"""

from __future__ import annotations

import contextlib
import csv
import gc
import io
import itertools
import json
import signal
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from hinged_service.ingest.file import bring_files
from hinged_service.ingest.files import FileOptions
from hinged_service.ingest.progress import Reporter
from hinged_service.ingest.redis_stream import Rules, bring_stream
from hinged_service.ingest.redis_stream_client import ForeignStream
from hinged_service.ingest.runner import Bring, run
from hinged_service.ingest.stream_entries import Reading
from hinged_service.ingest.target import Target
from hinged_service.ingest.writer import Feeder
from tests.bench.events import Event, made_events
from tests.bench.http_calls import SPEC
from tests.bench.load import Caller
from tests.bench.servers import SERVICE, Server, cpu_s, running
from tests.bench.table import Costs, Row
from tests.support.redis_server import RedisServer

SIZE = 500
ARRAY = "array learn over HTTP"
TARGETS = {"ingest file, NDJSON": 1.2, "ingest file, CSV": 1.2, "ingest redis-stream": 1.5}
_numbers = itertools.count()


@dataclass(frozen=True)
class Made:
    """The same events in the form that each door takes."""

    count: int
    arrays: list[bytes]
    ndjson: Path
    csv: Path
    options: FileOptions
    stream: str


def measure(folder: Path, rounds: int, count: int) -> list[Row]:
    """Return the rows; every round learns the same `count` events through every door."""
    with RedisServer(folder / "models") as models, RedisServer(folder / "queue") as queue:
        service = Server(SERVICE, HINGED_REDIS_URL=models.url)
        with running(service):
            rows: list[Row] = []
            for with_ids in (False, True):
                made = _make(folder, queue, count, with_ids)
                rows += _compared(service, models, queue, made, with_ids, rounds)
    return rows


def _make(folder: Path, queue: RedisServer, count: int, with_ids: bool) -> Made:
    events = made_events(count)
    if with_ids:
        events = [event | {"id": f"event-{n:08}"} for n, event in enumerate(events)]
    name = "ids" if with_ids else "plain"
    lines = [orjson.dumps(event) for event in events]
    made = Made(
        count,
        [b"[" + b",".join(lines[at : at + SIZE]) + b"]" for at in range(0, count, SIZE)],
        folder / f"{name}.ndjson",
        folder / f"{name}.csv",
        FileOptions(label="y", id="id" if with_ids else None),
        name,
    )
    made.ndjson.write_bytes(b"\n".join(lines) + b"\n")
    _write_csv(made.csv, events)
    with queue.client() as client, client.pipeline(transaction=False) as pipe:
        for start in range(0, count, SIZE):
            for line in lines[start : start + SIZE]:
                pipe.xadd(name, {"event": line})
            pipe.execute()
    return made


def _write_csv(path: Path, events: list[Event]) -> None:
    more = [name for name in ("id",) if name in events[0]]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*more, *events[0]["x"], "y"])
        for event in events:
            label = json.dumps(event["y"])
            writer.writerow([*(event[name] for name in more), *event["x"].values(), label])


def _compared(
    service: Server,
    models: RedisServer,
    queue: RedisServer,
    made: Made,
    with_ids: bool,
    rounds: int,
) -> list[Row]:
    doors: dict[str, Callable[[str], tuple[float, float]]] = {
        ARRAY: lambda model: _arrays_s(service, model, made),
        "ingest file, NDJSON": lambda model: ingest_s(
            models, model, made, files(made.ndjson, FileOptions())
        ),
        "ingest file, CSV": lambda model: ingest_s(
            models, model, made, files(made.csv, made.options)
        ),
        "ingest redis-stream": lambda model: ingest_s(
            models, model, made, _stream(queue, made.stream, model)
        ),
    }
    costs = Costs()
    for number in range(rounds + 1):
        for door in doors if number % 2 else reversed(doors):
            model = f"m{next(_numbers)}"
            gc.collect()
            redis_s = cpu_s(models.pid)
            took_s, worker_s = doors[door](model)
            redis_s = cpu_s(models.pid) - redis_s
            _delete(service, model)
            if number > 0:  # the first round warms up
                costs.add(door, made.count, took_s, worker_s, redis_s)
    ids = f"{'with' if with_ids else 'without'} ids"
    return [
        *(
            Row(f"{door}, {ids} / array", costs.over(door, ARRAY), target=target, at_most=True)
            for door, target in TARGETS.items()
        ),
        *costs.rows(lambda door: f"{door}, {ids}"),
    ]


def _arrays_s(service: Server, model: str, made: Made) -> tuple[float, float]:
    """Return the seconds until the last answer, and the worker's processor time."""
    with Caller(service.port, f"/v1/models/{model}") as caller:
        caller.put(SPEC)
    with Caller(service.port, f"/v1/models/{model}/learn") as caller:
        worker_s = service.cpu_s()
        started_s = time.perf_counter()
        answers = [caller.post(body) for body in made.arrays]
        took_s = time.perf_counter() - started_s
        worker_s = service.cpu_s() - worker_s
    if sum(answer.count(b'"duplicate":false') for answer in answers) != made.count:
        raise RuntimeError(f"not all was learned: {answers[-1][:500].decode()}")
    return took_s, worker_s


def files(path: Path, options: FileOptions) -> Bring:
    return lambda feeder, reporter: bring_files([str(path)], options, False, feeder, reporter)


def _stream(queue: RedisServer, key: str, model: str) -> Bring:
    """Return the source with a group of its own, which begins at the stream's start."""
    rules = Rules(f"redis-stream:{key}", Reading("event", "id"), drain=True)

    def bring(feeder: Feeder, reporter: Reporter) -> Awaitable[dict[str, Any]]:
        reader = ForeignStream(queue.url, key, f"group-{model}", "bench")
        return bring_stream(reader, rules, feeder, reporter)

    return bring


def ingest_s(models: RedisServer, model: str, made: Made, source: Bring) -> tuple[float, float]:
    """Return the seconds that the source takes, and this process's processor time meanwhile."""
    times: list[tuple[float, float]] = []

    async def bring(feeder: Feeder, reporter: Reporter) -> dict[str, Any]:
        started_s, worker_s = time.perf_counter(), time.process_time()
        more = await source(feeder, reporter)
        times.append((time.perf_counter() - started_s, time.process_time() - worker_s))
        return more

    target = Target(model, models.url, learner="perceptron", as_json=True)
    stdout, stderr = io.StringIO(), io.StringIO()
    with _signals_kept(), contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        code = run(target, bring, "Stopped.")
    if code > 128:
        raise KeyboardInterrupt
    if code or json.loads(stdout.getvalue())["learned"] != made.count:
        raise RuntimeError(f"not all was learned: {stdout.getvalue()}{stderr.getvalue()}")
    return times[0]


@contextlib.contextmanager
def _signals_kept() -> Iterator[None]:
    """Give the signals back that an ingest takes over for good."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def _delete(service: Server, model: str) -> None:
    request = urllib.request.Request(f"{service.url}/v1/models/{model}", method="DELETE")
    urllib.request.urlopen(request, timeout=60).close()
