"""Clients that send far too much, or hold far too many connections."""

from __future__ import annotations

import contextlib
import resource
import socket
import time
from collections.abc import Iterator, Sequence

import pytest

from tests.e2e.drills.drill import Drill
from tests.e2e.drills.fleet import Fleet
from tests.e2e.drills.serving import Serving

pytestmark = pytest.mark.slow

_MIB = 2**20
_EVENT = b'{"x": {"flood": 1.0}, "y": true, "id": "flood"}, '
_PIECE = (_EVENT * (_MIB // len(_EVENT) + 1))[:_MIB]
_PIECES = 100
_MOST_MEMORY = 32 * _MIB
_CONNECTIONS = 10_000
_SPARE_FILES = 1_000
_FEW = 20


_KINDS = {
    "announced": f"content-type: application/json\r\ncontent-length: {_PIECES * _MIB}",
    "in chunks": "content-type: application/json\r\ntransfer-encoding: chunked",
    "one line": "content-type: application/x-ndjson\r\ntransfer-encoding: chunked",
}


@pytest.mark.parametrize("kind", _KINDS)
def test_bodies_of_100_mb_are_refused_and_others_do_not_wait(
    fleet: Fleet, drill: Drill, kind: str
) -> None:
    with drill.load() as load:
        began_s = time.monotonic()
        for worker in fleet.workers:
            before = worker.resident_bytes()
            answer, highest = _flood(worker, f"POST {drill.path}/learn", _KINDS[kind])
            assert b'"status":413' in answer
            assert highest - before < _MOST_MEMORY
        recover_s = load.recovered(began_s)
        load.until_more()
    done = f"100 MB sent to each worker, {kind}: refused, memory grows by less than 32 MiB"
    drill.judge(f"100 MB body, {kind}", done, load, recover_s)


def _flood(worker: Serving, request: str, headers: str) -> tuple[bytes, int]:
    """Send as much as the worker takes; return its answer and the most memory that it had."""
    piece = _PIECE
    if "chunked" in headers:
        piece = b"%x\r\n%b\r\n" % (len(_PIECE), _PIECE)
    highest = 0
    with socket.create_connection(("127.0.0.1", worker.port), timeout=30) as connection:
        connection.sendall(f"{request} HTTP/1.1\r\nhost: drill\r\n{headers}\r\n\r\n".encode())
        with contextlib.suppress(ConnectionError):
            for _ in range(_PIECES):
                connection.sendall(piece)
                highest = max(highest, worker.resident_bytes())
            if "chunked" in headers:
                connection.sendall(b"0\r\n\r\n")
        answer = b""
        with contextlib.suppress(ConnectionError):
            while b"}" not in answer and (more := connection.recv(2**16)):
                answer += more
    return answer, highest


def test_ten_thousand_connections_that_idle_keep_no_other_from_learning(
    fleet: Fleet, drill: Drill
) -> None:
    room = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _SPARE_FILES
    count = min(_CONNECTIONS, room)
    if count < len(fleet.workers):
        pytest.skip("too few files may be open")
    with drill.load() as load, _idle(fleet.workers, count, drill.path) as opened:
        recover_s = load.recovered(time.monotonic())
        load.until_more()
        assert sum(_still_open(connection) for connection in opened) == count
    done = f"{count:,} idle connections, half of them in the middle of a request"
    drill.judge("10,000 open connections", done, load, recover_s)


def test_more_connections_than_files_may_be_open(fleet: Fleet, drill: Drill) -> None:
    limits = [resource.prlimit(worker.pid, resource.RLIMIT_NOFILE) for worker in fleet.workers]
    try:
        with drill.load() as load:
            for worker, (_, most) in zip(fleet.workers, limits, strict=True):
                few = worker.open_files() + _FEW
                resource.prlimit(worker.pid, resource.RLIMIT_NOFILE, (few, most))
            with _idle(fleet.workers, 10 * _FEW, drill.path):
                load.until_more()
            recover_s = load.recovered(time.monotonic())
            load.until_more()
    finally:
        for worker, usual in zip(fleet.workers, limits, strict=True):
            resource.prlimit(worker.pid, resource.RLIMIT_NOFILE, usual)
    done = "several times as many idle connections as a worker may have files open, then they go"
    drill.judge("no more files", done, load, recover_s)


@contextlib.contextmanager
def _idle(workers: Sequence[Serving], count: int, path: str) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        opened = []
        for number in range(count):
            port = workers[number % len(workers)].port
            connection = socket.create_connection(("127.0.0.1", port), timeout=30)
            opened.append(stack.enter_context(connection))
            if number % 4 < 2:
                connection.sendall(f"POST {path}/learn HTTP/1.1\r\nhost: drill\r\n".encode())
        yield opened


def _still_open(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1) != b""
    except BlockingIOError:
        return True
