"""From a file of text to weights: hinged beside Vowpal Wabbit and the loop people write.

All learn the same events, each in one pass: hinged and the loop from NDJSON, Vowpal Wabbit
from its own format. The times are from opening the file to the last event learned, without
Python's start and imports. `hinged ingest file` writes every event to a durable log; the
others keep nothing but the weights.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
from river import linear_model

from hinged_service.engine.long_work import at_once
from hinged_service.ingest.files import FileOptions, open_source
from hinged_service.ingest.records import Lot, gather
from hinged_service.model.spec import ModelSpec
from hinged_service.model.state import ModelState
from tests.bench.doors import Made, files, ingest_s
from tests.bench.events import POOL, Event, made_events
from tests.bench.table import Row, ratios
from tests.support.redis_server import RedisServer

__all__ = ["measure"]

INTO_SERVICE = "hinged ingest file, durable"
IN_PROCESS = "hinged, file reader and learner"
LOOP = "json.loads and River's learn_one"
WABBIT = "Vowpal Wabbit -d file"
TARGETS = {30: {INTO_SERVICE: 0.45, IN_PROCESS: 0.9}, POOL: {INTO_SERVICE: 0.3, IN_PROCESS: 0.5}}
"""Speed beside Vowpal Wabbit, by the names that there are."""
_SPEC = ModelSpec.model_validate_json('{"learner": {"type": "perceptron"}}')
_numbers = itertools.count()


def measure(folder: Path, rounds: int, count: int) -> list[Row]:
    """Return the rows: per width of the events, every way in each round."""
    with RedisServer(folder / "redis") as server:
        rows: list[Row] = []
        for name, pool in (("30 names", 30), ("30 of 20,000 names", POOL)):
            targets = TARGETS[pool]
            rows += _compared(server, folder, name, made_events(count, pool), rounds, targets)
    return rows


def _compared(
    server: RedisServer,
    folder: Path,
    name: str,
    events: list[Event],
    rounds: int,
    targets: dict[str, float],
) -> list[Row]:
    lines = folder / f"{len(events[0]['x'])}-{name.replace(' ', '-')}.ndjson"
    lines.write_bytes(b"\n".join(orjson.dumps(event) for event in events) + b"\n")
    wabbit = lines.with_suffix(".vw")
    wabbit.write_text("".join(map(_wabbit_line, events)), encoding="utf-8")
    made = Made(len(events), [], lines, lines, FileOptions(), "")
    ways: dict[str, Callable[[], float]] = {
        INTO_SERVICE: lambda: _into_service_s(server, made),
        IN_PROCESS: lambda: _in_process_s(lines),
        LOOP: lambda: _loop_s(lines),
    }
    if importlib.util.find_spec("vowpalwabbit") is not None:
        ways[WABBIT] = lambda: _wabbit_s(wabbit, len(events))
    rate: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(rounds + 1):
        for way, learn_s in ways.items():
            gc.collect()
            took_s = learn_s()
            if number > 0:  # the first round warms up
                rate[way].append(len(events) / took_s)
    ours = (INTO_SERVICE, IN_PROCESS)
    return [
        *(
            Row(
                f"{name}: {mine} / {other}",
                ratios(rate[mine], rate[other]),
                target=targets[mine] if other == WABBIT else None,
            )
            for mine in ours
            for other in ways
            if other not in ours
        ),
        *(Row(f"{name}: {way}", values, "events/s") for way, values in rate.items()),
    ]


def _wabbit_line(event: Event) -> str:
    features = " ".join(f"{name}:{value}" for name, value in event["x"].items())
    return f"{1 if event['y'] else -1} | {features}\n"


def _into_service_s(server: RedisServer, made: Made) -> float:
    with server.client() as client:
        client.flushall()
    return ingest_s(server, f"t{next(_numbers)}", made, files(made.ndjson, made.options))[0]


def _in_process_s(path: Path) -> float:
    state = ModelState(_SPEC)
    started_s = time.perf_counter()
    for block in open_source(str(path), FileOptions()).blocks():
        places = list(map(str, block.lines))
        batch = at_once(gather([state], Lot(places, block.texts, None, lambda: ())))
        state.learn_all(batch.events, frozenset(), "1-1")
    return time.perf_counter() - started_s


def _loop_s(path: Path) -> float:
    model: Any = linear_model.Perceptron()
    started_s = time.perf_counter()
    with path.open(encoding="utf-8") as file:
        for line in file:
            event = json.loads(line)
            model.learn_one(event["x"], event["y"])
    return time.perf_counter() - started_s


def _wabbit_s(path: Path, count: int) -> float:
    module = importlib.import_module("vowpalwabbit")
    started_s = time.perf_counter()
    workspace = module.Workspace(f"-d {path} --loss_function hinge --quiet")
    took_s = time.perf_counter() - started_s
    learned = workspace.get_weighted_examples()
    workspace.finish()
    if learned != count:
        raise RuntimeError(f"Vowpal Wabbit learned {learned} of {count} events")
    return took_s
