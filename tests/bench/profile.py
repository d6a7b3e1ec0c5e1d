"""A worker's time by function: py-spy looks 500 times a second which function is on top.

The share of a function is that of the looks that found it at the top of the stack, native
code counted to the Python function that called it.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
import threading
from collections import Counter
from pathlib import Path

import orjson

from tests.bench.events import bodies, made_events
from tests.bench.http_calls import MODEL, create_model
from tests.bench.load import requests_per_s
from tests.bench.servers import SERVICE, Server, running
from tests.bench.table import Row
from tests.support.redis_server import RedisServer

__all__ = ["measure"]

LOOKS_PER_S = 500
SHOWN = 8
ARRAY = 500
CONNECTIONS = 16


def measure(folder: Path, seconds: int) -> list[Row]:
    """Return the rows: the costliest functions of predict, learn and learn with arrays."""
    spy = shutil.which("py-spy")
    if spy is None:
        return []
    events = made_events(5_000)
    arrays = [orjson.dumps(events[at : at + ARRAY]) for at in range(0, len(events), ARRAY)]
    loads = {
        "predict": ("predict", bodies(events, labelled=False), CONNECTIONS),
        "learn": ("learn", bodies(events, labelled=True), CONNECTIONS),
        "learn, arrays of 500": ("learn", arrays, 2),
    }
    store = RedisServer(folder / "redis")
    service = Server(SERVICE, HINGED_REDIS_URL=store.url)
    rows: list[Row] = []
    with contextlib.ExitStack() as stack:
        stack.callback(store.kill)
        store.start()
        stack.enter_context(running(service))
        create_model(service)
        for name, (call, sent, connections) in loads.items():
            load = threading.Thread(
                target=requests_per_s,
                args=(service.port, f"{MODEL}/{call}", sent, connections, seconds + 2),
            )
            load.start()
            rows += _top(name, _looks(spy, service.pid, seconds))
            load.join()
    return rows


def _looks(spy: str, pid: int, seconds: int) -> Counter[str]:
    """Return how often each function was on top of the main thread."""
    found: Counter[str] = Counter()
    with tempfile.NamedTemporaryFile() as raw:
        subprocess.run(
            [
                *(spy, "record", "--format", "raw", "--output", raw.name, "--pid", str(pid)),
                *("--rate", str(LOOKS_PER_S), "--duration", str(seconds), "--nonblocking"),
            ],
            check=True,
            capture_output=True,
        )
        for line in Path(raw.name).read_text(encoding="utf-8").splitlines():
            stack, _, count = line.rpartition(" ")
            found[_function(stack.rpartition(";")[2])] += int(count)
    return found


def _function(frame: str) -> str:
    """Return function and file of a frame: `name (path/file.py:line)` without the line."""
    name, _, place = frame.partition(" (")
    return f"{name} ({'/'.join(place.rstrip(')').rpartition(':')[0].split('/')[-2:])})"


def _top(call: str, looks: Counter[str]) -> list[Row]:
    total = looks.total()
    return [
        Row(f"{call}: {function}", [100 * count / total], "% of the looks")
        for function, count in looks.most_common(SHOWN)
    ]
