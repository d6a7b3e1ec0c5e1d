"""A refusal reaches a client that is still sending, also where the connection is to close."""

import contextlib
import json
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import uvicorn

from hinged_service.api.api_keys import new_key
from hinged_service.server.fast_path import FastPathProtocol
from hinged_service.server.protocol import MAX_HEADERS
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.service import RawAnswer, Service, post_bytes, read_answer

LEARN = "/v1/models/m/learn"
BIG = 64 * 2**20


@pytest.fixture(scope="module", params=["hinged serve", "httptools", "h11"])
def served(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Service]:
    """A worker that takes small bodies only, and gives them little time."""
    server = RedisServer(tmp_path_factory.mktemp("lingering"))
    server.start()
    service = Service(server.url, body_timeout_ms=1_000, max_body_bytes=2**20)
    http: Any = FastPathProtocol if request.param == "hinged serve" else request.param
    config = uvicorn.Config(
        service.app, port=service.port, log_level="error", http=http, ws="none", proxy_headers=False
    )
    service._server.config = config
    with service:
        with service.client() as client:
            spec = {"learner": {"type": "perceptron"}}
            wait_until(lambda: client.put("/v1/models/m", json=spec).is_success, 30)
        yield service
    server.kill()


def sent_whole(port: int, method: str, path: str, size: int, *headers: str) -> RawAnswer:
    """Send all of a body before anything is read, on a connection that is to close."""
    lines = (f"{method} {path} HTTP/1.1", "Host: t", "Connection: close", *headers)
    piece = b" " * 2**20
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall("\r\n".join((*lines, f"Content-Length: {size}", "", "")).encode())
        while size > 0:
            connection.sendall(piece[:size])
            size -= len(piece)
        answer = read_answer(connection)
        assert connection.recv(1) == b""
    return answer


@pytest.mark.parametrize(
    ("status", "method", "path", "headers"),
    [
        (413, "POST", LEARN, ()),
        (413, "POST", "/v1/models/m/predict", ()),
        (413, "PUT", "/v1/models/n", ()),
        (415, "POST", LEARN, ("Content-Type: text/plain",)),
        (415, "POST", LEARN, ("Content-Type: application/x-ndjson; charset=latin-1",)),
        (415, "POST", LEARN, ("Content-Encoding: gzip",)),
        (422, "POST", f"{LEARN}?results=no", ()),
        (404, "POST", "/v1/models/none/learn", ("Content-Type: application/x-ndjson",)),
        (404, "POST", "/nothing", ()),
        (405, "PATCH", LEARN, ()),
        (200, "GET", "/healthz", ()),
        (400, "POST", LEARN, ("Host: u",)),  # h11 refuses that by itself, and resets
    ],
)
def test_an_answer_before_the_end_of_a_body_arrives(
    served: Service, status: int, method: str, path: str, headers: tuple[str, ...]
) -> None:
    if status == 400 and served._server.config.http == "h11":
        pytest.skip("not the service's answer")
    answer = sent_whole(served.port, method, path, BIG, *headers)
    assert answer.status == status
    assert answer.headers["connection"] == "close"


def test_clients_see_413(served: Service) -> None:
    url, body = f"{served.url}{LEARN}", b" " * BIG
    headers = {"content-type": "application/json"}
    with pytest.raises(urllib.error.HTTPError) as raised:
        urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=60)
    with raised.value as refusal:
        assert refusal.code == 413
    for more in ({}, {"connection": "close"}):
        for content in (body, (body[at : at + 2**16] for at in range(0, BIG, 2**16))):
            with httpx.Client(verify=False, timeout=60) as client:
                answer = client.post(url, content=content, headers=headers | more)
            assert answer.status_code == 413


def test_a_short_body_that_is_refused_keeps_its_connection(served: Service) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as connection:
        for _ in range(3):
            head = f"POST {LEARN} HTTP/1.1\r\nHost: t\r\nContent-Type: text/plain\r\n"
            connection.sendall(f"{head}Content-Length: 5\r\n\r\n".encode())
            answer = read_answer(connection)
            assert answer.status == 415
            assert "connection" not in answer.headers
            connection.sendall(b"12345")


def test_a_body_that_waits_for_leave_ends_its_connection(served: Service) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as connection:
        head = f"POST {LEARN} HTTP/1.1\r\nHost: t\r\nContent-Type: text/plain\r\n"
        connection.sendall(f"{head}Content-Length: 5\r\nExpect: 100-continue\r\n\r\n".encode())
        answer = read_answer(connection)
        assert (answer.status, answer.headers["connection"]) == (415, "close")
        connection.sendall(b"12345")
        assert connection.recv(1) == b""


def test_a_body_too_slow_is_told_and_its_rest_is_dropped(served: Service) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as connection:
        head = f"POST {LEARN} HTTP/1.1\r\nHost: t\r\nContent-Length: 100000\r\n\r\n"
        connection.sendall(f"{head}{{".encode())
        answer = read_answer(connection)
        assert (answer.status, answer.headers["connection"]) == (408, "close")
        connection.sendall(b" " * 99_999)
        assert connection.recv(1) == b""
        assert served.app.room.requests == 0  # type: ignore[attr-defined]


def test_a_client_that_goes_on_sending_is_cut_off(served: Service) -> None:
    piece, sent = b" " * 2**20, 0
    with (
        contextlib.suppress(ConnectionError),
        socket.create_connection(("127.0.0.1", served.port), timeout=60) as connection,
    ):
        head = f"POST {LEARN} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n"
        connection.sendall(f"{head}Content-Length: {2**40}\r\n\r\n".encode())
        while sent < 2**31:
            connection.sendall(piece)
            sent += len(piece)
    assert BIG < sent < 2**31


def test_too_many_headers_are_told_behind_a_body(served: Service) -> None:
    if served._server.config.http is not FastPathProtocol:
        pytest.skip("uvicorn has no such limit")
    many = [f"x-{n}: {n}" for n in range(MAX_HEADERS)]
    assert sent_whole(served.port, "POST", LEARN, BIG, *many).status == 431


@pytest.mark.parametrize(
    ("status", "header"), [(431, "x-long: " + "x" * 2**20), (400, "no header"), (400, "x y: z")]
)
def test_a_head_that_cannot_be_read_is_told_before_a_body(
    served: Service, status: int, header: str
) -> None:
    if served._server.config.http is not FastPathProtocol:
        pytest.skip("not the service's answer")
    assert sent_whole(served.port, "POST", LEARN, BIG, header).status == status


def test_refusals_of_keys_and_of_room_arrive(own_server: RedisServer) -> None:
    token, record = new_key("root", ("predict", "learn", "admin"), ("*",))
    keys = json.dumps([record.model_dump(mode="json")])
    with Service(own_server.url, max_requests=1, keys=keys) as service:
        room, key = service.app.room, f"Authorization: Bearer {token}"  # type: ignore[attr-defined]
        for method, path in (("POST", LEARN), ("PUT", "/v1/models/n"), ("POST", "/nothing")):
            assert sent_whole(service.port, method, path, BIG).status == 401
        with socket.create_connection(("127.0.0.1", service.port), timeout=30) as slow:
            slow.sendall(post_bytes(LEARN, b"{}", key)[:-1])
            wait_until(lambda: room.requests == 1)
            for method, path in (("POST", LEARN), ("PUT", "/v1/models/n")):
                assert sent_whole(service.port, method, path, BIG, key).status == 429
