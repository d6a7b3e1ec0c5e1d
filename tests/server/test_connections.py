"""Connections of `hinged serve`: heads have a limit, and a client that only waits is cut off."""

import contextlib
import os
import re
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hinged_service.server.fast_path import FastPathProtocol
from hinged_service.server.protocol import MAX_HEAD_BYTES, MAX_HEADERS
from tests.insights.live_feed.reading import Watcher
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.service import Service, post_bytes, read_answer, send_raw

PREDICT = "/v1/models/m/predict"
BODY = b'{"x":{"a":1}}'
READ = 2**18
"""Most bytes of one read of the server."""


class Quick(FastPathProtocol):
    """Waits for a fraction of a second only."""

    idle_s = 0.4


def served(url: str, protocol: type[FastPathProtocol]) -> Service:
    service = Service(url)
    service._server.config.http = protocol
    return service


@pytest.fixture(scope="module")
def served_by(module_server: RedisServer) -> Iterator[dict[str, Service]]:
    """One worker as `hinged serve` runs it, and one that waits less."""
    with (
        served(module_server.url, FastPathProtocol) as plain,
        served(module_server.url, Quick) as quick,
    ):
        with plain.client() as client:
            client.put("/v1/models/m", json={"learner": {"type": "perceptron"}})
        yield {"plain": plain, "quick": quick}


def listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def cut_off(port: int, begin: bytes, more: bytes) -> bool:
    """Return whether the service ends a connection on which a head has no end."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as to:
        to.sendall(begin)
        sent = 0
        with contextlib.suppress(OSError):  # closed while we send
            while sent < 64 * READ:
                to.sendall(more)
                sent += len(more)
        return sent < 64 * READ


def test_a_head_below_the_limits_is_taken(served_by: dict[str, Service]) -> None:
    port = served_by["plain"].port
    long = f"x-long: {'x' * (MAX_HEAD_BYTES - 500)}"
    many = [f"x-{n}: {n}" for n in range(MAX_HEADERS - 5)]
    for headers in ([long], many):
        assert send_raw(port, post_bytes(PREDICT, BODY, *headers)).status == 200


@pytest.mark.parametrize("more", [1, 800])
def test_too_many_headers_are_told(served_by: dict[str, Service], more: int) -> None:
    service = served_by["plain"]
    many = [f"x-{n}: {n}" for n in range(MAX_HEADERS + more)]
    assert send_raw(service.port, post_bytes(PREDICT, BODY, *many)).status == 431
    with service.client() as client:
        assert client.get("/v1/models/m").status_code == 200


@pytest.mark.parametrize(
    "begin", [b"GET /", b"GET / HTTP/1.1\r\nx-endless: ", b"GET / HTTP/1.1\r\nHost: t\r\nx"]
)
def test_a_head_without_end_is_cut_off(served_by: dict[str, Service], begin: bytes) -> None:
    assert cut_off(served_by["plain"].port, begin, b"x" * 4096)


def test_headers_without_end_are_cut_off_also_after_the_body(served_by: dict[str, Service]) -> None:
    head = f"POST {PREDICT} HTTP/1.1\r\nHost: t\r\n"
    body = f"Transfer-Encoding: chunked\r\n\r\n{len(BODY):x}\r\n".encode() + BODY + b"\r\n0\r\n"
    for begin in (head.encode(), head.encode() + body):
        assert cut_off(served_by["plain"].port, begin, b"a: b\r\n" * 500)


def test_a_head_that_comes_with_the_end_of_a_big_body_is_none_of_its_length(
    served_by: dict[str, Service],
) -> None:
    big = post_bytes(PREDICT, BODY + b" " * (2 * READ))
    small = post_bytes(PREDICT, BODY)
    with socket.create_connection(("127.0.0.1", served_by["plain"].port), timeout=30) as to:
        to.sendall(big + small[:30])
        assert read_answer(to).status == 200
        to.sendall(small[30:])
        assert read_answer(to).status == 200


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"POST ",
        b"POST " + PREDICT.encode() + b" HTTP/1.1\r\nHost: t\r\n",
        post_bytes(PREDICT, BODY)[: -len(BODY)],
        post_bytes(PREDICT, BODY)[:-1],
    ],
    ids=["nothing", "a word", "half a head", "a head", "half a body"],
)
def test_a_connection_on_which_nothing_comes_is_closed(
    served_by: dict[str, Service], sent: bytes
) -> None:
    with socket.create_connection(("127.0.0.1", served_by["quick"].port), timeout=30) as to:
        to.sendall(sent)
        assert to.recv(100) == b""


def test_a_head_that_dribbles_is_cut_off(served_by: dict[str, Service]) -> None:
    head = b"GET /healthz HTTP/1.1\r\nx-slow: " + b"x" * 2_000
    with socket.create_connection(("127.0.0.1", served_by["quick"].port), timeout=0.02) as to:
        closed = False
        for n in range(len(head)):
            try:
                to.sendall(head[n : n + 1])
                closed = to.recv(100) == b""
            except TimeoutError:
                continue
            except ConnectionError:
                closed = True
            if closed:
                break
        assert closed


def test_a_client_that_waits_for_the_service_keeps_its_connection(
    served_by: dict[str, Service],
) -> None:
    began = time.monotonic()
    with Watcher(served_by["quick"].url, "/v1/models/m") as watcher:
        watcher.wait_for(lambda w: len(w.of("metrics")) >= 4)  # one a second
        assert time.monotonic() - began > 3 * Quick.idle_s
        assert not watcher.done


def test_a_connection_that_is_used_stays(served_by: dict[str, Service]) -> None:
    port, deadline_s = served_by["quick"].port, time.monotonic() + 30
    while not used_for(port, 4 * Quick.idle_s):  # we may have stood still for that long
        assert time.monotonic() < deadline_s, "it is closed though it is used"


def test_a_head_has_its_own_time_however_long_the_connection_waited(
    served_by: dict[str, Service],
) -> None:
    port, deadline_s = served_by["quick"].port, time.monotonic() + 30
    while not begun_late(port):  # we may have stood still meanwhile
        assert time.monotonic() < deadline_s, "it is cut off in the middle of a head"


def begun_late(port: int) -> bool:
    """Begin a head just before the connection would have waited for too long; end it after that."""
    request = post_bytes(PREDICT, BODY)
    with socket.create_connection(("127.0.0.1", port), timeout=30) as to:
        try:
            for sent in (request, request[:30], request[30:]):
                to.sendall(sent)
                if sent != request[:30]:
                    assert read_answer(to).status == 200
                time.sleep(1.75 * Quick.idle_s if sent == request else 0.5 * Quick.idle_s)
        except ConnectionError:
            return False
    return True


def used_for(port: int, seconds: float) -> bool:
    """Use a connection for some seconds; return whether it stayed."""
    until_s = time.monotonic() + seconds
    with socket.create_connection(("127.0.0.1", port), timeout=30) as to:
        while time.monotonic() < until_s:
            try:
                to.sendall(post_bytes(PREDICT, BODY))
                assert read_answer(to).status == 200
            except ConnectionError:
                return False
    return True


def test_a_connection_stays_after_an_answer_unlike_in_uvicorn(
    own_server: RedisServer,
) -> None:
    service = served(own_server.url, FastPathProtocol)
    service._server.config.timeout_keep_alive = 0
    with service, socket.create_connection(("127.0.0.1", service.port), timeout=30) as to:
        for _ in range(3):
            to.sendall(b"GET /healthz HTTP/1.1\r\nhost: t\r\n\r\n")
            assert read_answer(to).status == 200
            time.sleep(0.1)


def test_hinged_serve_has_these_bounds_and_may_open_many_files(
    own_server: RedisServer, tmp_path: Path
) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    log = (tmp_path / "log").open("w")
    serving = subprocess.Popen(
        [sys.executable, "-m", "hinged_service.cli.main", "serve", "--port", "0"],
        env=os.environ | {"HINGED_REDIS_URL": own_server.url},
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, most)),
    )
    try:
        assert serving.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:(\d+)", serving.stdout.readline())
        assert found is not None
        port = int(found[1])
        wait_until(lambda: listens(port), 60)
        assert cut_off(port, b"GET / HTTP/1.1\r\nx-endless: ", b"x" * 4096)
        for _ in range(20):
            assert send_raw(port, b"no HTTP\r\n\r\n").status == 400
        assert (tmp_path / "log").read_text().count("Invalid HTTP request") == 1
        limits = Path(f"/proc/{serving.pid}/limits").read_text()
        allowed = re.search(r"Max open files +(\d+)", limits)
        assert allowed is not None
        assert int(allowed[1]) == min(most, 65_536)
    finally:
        serving.terminate()
        serving.communicate(timeout=30)
        log.close()
