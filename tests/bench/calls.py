"""`python -m tests.bench.calls`: own Python calls that one HTTP predict and one learn pass.

The app runs under the protocol of `hinged serve` on a real Redis. Every frame of a function in
`core/hinged` or `service/hinged_service` counts, a resumed coroutine again; a comprehension is a
frame before Python 3.12. A background task may run in between: of several like requests the one
with the fewest calls is shown. Bounds are for the application, from its ASGI call on; the
connection's own part is shown beside it.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import FrameType

import orjson
import uvicorn

import hinged
import hinged_service
from hinged_service.app import create_app
from hinged_service.server.fast_path import FastPathProtocol
from hinged_service.settings import Settings
from tests.support.redis_server import RedisServer

__all__ = ["CONNECTION", "Calls", "by_file", "count", "counted", "in_app"]

ROOTS = tuple(f"{Path(package.__path__[0])}/" for package in (hinged, hinged_service))
SPEC = {"learner": {"type": "perceptron"}}
MODEL = "/v1/models/calls"
WARM = 20
TRIES = 20

CONNECTION = frozenset({"server/protocol.py", "server/coalesced_writes.py"})
"""Files of the connection, below the application."""

Calls = Counter[tuple[str, str]]
"""Number of calls of each function, by its file within the package and its qualified name."""


class _Recorder:
    """Counts calls of own functions while it is on."""

    def __init__(self) -> None:
        self.calls: Calls = Counter()

    def __call__(self, frame: FrameType, happened: str, _: object) -> None:
        if happened == "call":
            code = frame.f_code
            for root in ROOTS:
                if code.co_filename.startswith(root):
                    self.calls[code.co_filename.removeprefix(root), code.co_qualname] += 1


def counted(url: str) -> Mapping[str, Calls]:
    """Return the own calls that a predict and a learn pass, on the Redis at `url`."""
    return asyncio.run(_counted(url))


async def _counted(url: str) -> Mapping[str, Calls]:
    app = create_app(Settings(redis_url=url))
    config = uvicorn.Config(
        app,
        http=FastPathProtocol,
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
    )
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.ensure_future(server.serve([listener]))
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        try:
            await _call(reader, writer, "PUT", MODEL, SPEC)
            return {
                "predict": await _fewest(reader, writer, "predict", {"x": _features(0)}),
                "learn": await _fewest(reader, writer, "learn", {"x": _features(0), "y": True}),
            }
        finally:
            writer.close()
            server.should_exit = True
            await serving


def _features(number: int) -> dict[str, float]:
    return {"age": 0.4 + number, "clicks": 3.0, "score": -1.5}


async def _fewest(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, call: str, event: object
) -> Calls:
    """Return the calls of the request that passed the fewest; learn a mistake each time."""
    found: list[Calls] = []
    for number in range(WARM + TRIES):
        if call == "learn":
            event = {"x": _features(0), "y": number % 2 == 0}
        recorder = _Recorder()
        if number >= WARM:
            sys.setprofile(recorder)
        try:
            await _call(reader, writer, "POST", f"{MODEL}/{call}", event)
        finally:
            sys.setprofile(None)
        found.append(recorder.calls)
        await asyncio.sleep(0.002)  # what goes on after the answer is none of the next request's
    return min(found[WARM:], key=count)


async def _call(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    method: str,
    path: str,
    document: object,
) -> None:
    body = orjson.dumps(document)
    head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
    answer = await reader.readuntil(b"\r\n\r\n")
    size = next(
        int(line.partition(b":")[2])
        for line in answer.lower().split(b"\r\n")
        if line.startswith(b"content-length")
    )
    body = await reader.readexactly(size)
    if answer.split()[1] not in (b"200", b"201"):
        raise RuntimeError(f"{method} {path}: {body.decode()}")


def count(calls: Calls) -> int:
    """Return the number of calls."""
    return sum(calls.values())


def in_app(calls: Calls) -> Calls:
    """Return the calls above the connection."""
    return Counter({key: times for key, times in calls.items() if key[0] not in CONNECTION})


def by_file(calls: Calls) -> Counter[str]:
    """Return the calls of each file."""
    files: Counter[str] = Counter()
    for (file, _), times in calls.items():
        files[file] += times
    return files


def main() -> None:
    """Print the calls of each request by file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--functions", action="store_true", help="show the functions of each file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = RedisServer(Path(folder))
        store.start()
        try:
            found = counted(store.url)
        finally:
            store.kill()
    for name, calls in found.items():
        files, app = by_file(calls), in_app(calls)
        print(f"{name}: {count(app)} calls in {len(by_file(app))} files")
        print(f"  with the connection: {count(calls)} in {len(files)}")
        for file, times in files.most_common():
            print(f"{times:5}  {file}")
            if options.functions:
                for (where, function), often in calls.most_common():
                    if where == file:
                        print(f"{often:12}  {function}")


if __name__ == "__main__":
    main()
