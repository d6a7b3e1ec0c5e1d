"""The end of a request: no byte of a body is ever a request, after any headers."""

import re
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn

from hinged_service.server.fast_path import FastPathProtocol
from tests.support.redis_server import RedisServer
from tests.support.running import running
from tests.support.service import Service, post_bytes, read_answer, send_raw

LEARN = "/v1/models/m/learn"
VICTIM = "/v1/models/victim"
EVENT = b'{"x":{"a":1},"y":true}'
LINES = b'{"x":{"a":1},"y":true}\n{"x":{"a":1},"y":false}\n'
SMUGGLED = f"DELETE {VICTIM} HTTP/1.1\r\nHost: t\r\n\r\n".encode()
FIRST = b"GET /healthz HTTP/1.1\r\nHost: t\r\n\r\n"
NEXT = b"GET /healthz HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n"
OFFERS = {
    "h2c": ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQA"),
    "websocket": ("Upgrade: websocket", "connection: keep-alive, upgrade"),
    "tls": ("UPGRADE: TLS/1.2", "Connection: Upgrade"),
    "two": ("Upgrade: h2c", "Upgrade: websocket", "Connection: Upgrade"),
    "proxy": ("Upgrade: h2c", "Proxy-Connection: upgrade"),
    "once more": ("Upgrade: h2c", "Connection: Upgrade", "Expect: 100-continue"),
}


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with running(RedisServer(tmp_path_factory.mktemp("framing"))) as server:
        yield server


def under(redis: RedisServer, http: Any) -> Iterator[Service]:
    service = Service(redis.url)
    config = uvicorn.Config(
        service.app, port=service.port, log_level="error", http=http, ws="none", proxy_headers=False
    )
    service._server.config = config
    with service:
        with service.client() as client:
            for name in ("m", "victim"):
                client.put(f"/v1/models/{name}", json={"learner": {"type": "perceptron"}})
        yield service


@pytest.fixture(scope="module", params=["hinged serve", "h11"])
def served(redis: RedisServer, request: pytest.FixtureRequest) -> Iterator[Service]:
    """Serve by `hinged serve`, and by uvicorn with the parser that reads on after an offer."""
    yield from under(redis, FastPathProtocol if request.param == "hinged serve" else "h11")


@pytest.fixture(scope="module", params=["hinged serve", "h11", "httptools"])
def anyhow(redis: RedisServer, request: pytest.FixtureRequest) -> Iterator[Service]:
    """The same, and under uvicorn as it comes."""
    http = FastPathProtocol if request.param == "hinged serve" else request.param
    yield from under(redis, http)


def events(service: Service) -> int:
    with service.client() as client:
        found: int = client.get("/v1/models/m").json()["events"]
    return found


def lives(service: Service) -> bool:
    with service.client() as client:
        return client.get(VICTIM).status_code == 200


def chunked(path: str, body: bytes, *headers: str) -> bytes:
    head = (f"POST {path} HTTP/1.1", "Host: t", "Transfer-Encoding: chunked", *headers, "", "")
    return "\r\n".join(head).encode() + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


def answers(port: int, *pieces: bytes, pause_s: float = 0.05) -> list[int]:
    """Send pieces, each in a packet of its own; return the statuses of all that comes back."""
    got = b""
    with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
        try:
            for piece in pieces:
                connection.sendall(piece)
                time.sleep(pause_s)
            while data := connection.recv(65536):
                got += data
        except (ConnectionError, TimeoutError):
            pass
    found = (int(status) for status in re.findall(rb"HTTP/1\.1 (\d+) ", got))
    return [status for status in found if status != 100]


@pytest.mark.parametrize("offer", OFFERS.values(), ids=OFFERS)
@pytest.mark.parametrize("make", [post_bytes, chunked])
def test_an_offer_is_ignored_and_the_body_is_taken(
    served: Service, offer: tuple[str, ...], make: Any
) -> None:
    before = events(served)
    one = make(LEARN, EVENT, "Content-Type: application/json", *offer)
    lines = make(LEARN, LINES, "Content-Type: application/x-ndjson", *offer)
    assert answers(served.port, one + lines + NEXT) == [200, 200, 200]
    head = one.index(b"\r\n\r\n") + 4
    assert answers(served.port, one[:head], one[head:], NEXT) == [200, 200]
    assert events(served) == before + 4


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "HEAD", "PATCH"])
def test_an_offer_with_another_method_is_ignored(served: Service, method: str) -> None:
    path = {"GET": "/healthz", "HEAD": "/healthz"}.get(method, "/v1/models/none")
    request = post_bytes(path, SMUGGLED, *OFFERS["h2c"]).replace(b"POST", method.encode(), 1)
    first, second = answers(served.port, request[:-30], request[-30:] + NEXT)
    assert first == (200 if method == "GET" else first)
    assert second == 200
    assert lives(served)


@pytest.mark.parametrize("offer", OFFERS.values(), ids=OFFERS)
@pytest.mark.parametrize("make", [post_bytes, chunked])
@pytest.mark.parametrize("method", ["POST", "GET", "CONNECT", "OPTIONS"])
def test_a_body_is_never_a_request_after_any_head(
    anyhow: Service, offer: tuple[str, ...], make: Any, method: str
) -> None:
    for target in (LEARN, "t:443"):
        request = make(target, SMUGGLED * 2, *offer).replace(b"POST", method.encode(), 1)
        head = request.index(b"\r\n\r\n") + 4
        for before in (b"", FIRST):
            answers(anyhow.port, before + request[:head], request[head:], NEXT, pause_s=0.01)
    assert lives(anyhow)


def test_uvicorn_as_it_comes_refuses_what_it_would_lose(redis: RedisServer) -> None:
    for service in under(redis, "httptools"):
        before = events(service)
        for offer in OFFERS.values():
            for make in (post_bytes, chunked):
                answer = send_raw(service.port, make(LEARN, LINES, *offer))
                assert (answer.status, answer.headers["connection"]) == (400, "close")
                assert "Upgrade" in answer.json()["detail"]
            get = b"GET /healthz HTTP/1.1\r\nHost: t\r\n" + "\r\n".join((*offer, "", "")).encode()
            answer = send_raw(service.port, get)
            assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert events(service) == before


@pytest.mark.parametrize(
    "hosts",
    [[], ["t", "t"], ["t", "u"], ["a b"], ["a/b"], ["u@t"], ["t,\x7f"], ["t:u"], ["[::1"]],
    ids=["none", "same", "two", "blank", "path", "user", "control", "no port", "bracket"],
)
@pytest.mark.parametrize("path", [LEARN, "/healthz", "/v1/models", "/nothing"])
def test_a_request_names_its_host_once(anyhow: Service, hosts: list[str], path: str) -> None:
    before = events(anyhow)
    lines = [f"Host: {host}" for host in hosts]
    request = post_bytes(path, EVENT, *lines).replace(b"Host: test\r\n", b"")
    if path != LEARN:
        request = b"GET" + request.removeprefix(b"POST")
    assert answers(anyhow.port, request + NEXT) == [400]
    assert events(anyhow) == before


@pytest.mark.parametrize(
    "host", ["t", "t:80", "[::1]:8000", "127.0.0.1", "", "t:", "a_b.c-d", "x%20y"]
)
def test_any_host_is_taken(anyhow: Service, host: str) -> None:
    get = f"GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    assert answers(anyhow.port, get.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")) == [200]


def test_http_1_0_needs_no_host_but_takes_no_two(anyhow: Service) -> None:
    assert answers(anyhow.port, b"GET /healthz HTTP/1.0\r\n\r\n") == [200]
    assert answers(anyhow.port, b"GET /healthz HTTP/1.0\r\nHost: t\r\nHost: t\r\n\r\n") == [400]


@pytest.mark.parametrize(
    "framing",
    [
        ("Transfer-Encoding: chunked", "Content-Length: 32"),
        ("Content-Length: 5", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: gzip, chunked",),
        ("Transfer-Encoding: identity, chunked",),
        ("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: xchunked",),
        ("Content-Length: 22", "Content-Length: 23"),
        ("Content-Length: +22",),
    ],
)
def test_a_body_whose_end_is_unclear_is_refused(anyhow: Service, framing: tuple[str, ...]) -> None:
    before = events(anyhow)
    head = "\r\n".join((f"POST {LEARN} HTTP/1.1", "Host: t", *framing, "", ""))
    body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(EVENT), EVENT)
    assert answers(anyhow.port, head.encode() + body + SMUGGLED) == [400]
    assert events(anyhow) == before
    assert lives(anyhow)


def test_a_target_may_be_a_whole_address(anyhow: Service) -> None:
    before = events(anyhow)
    for base in ("http://t", "HTTP://u:8000", "https://t"):
        assert send_raw(anyhow.port, post_bytes(f"{base}{LEARN}", EVENT)).status == 200
    assert events(anyhow) == before + 3


def test_headers_after_the_body_are_none_of_the_request(served: Service) -> None:
    late = chunked(LEARN, LINES)[:-2] + b"Content-Type: application/x-ndjson\r\n\r\n"
    assert answers(served.port, late + NEXT) == [400, 200]


def test_unreadable_bytes_are_refused_after_the_answers_that_are_due(served: Service) -> None:
    before = events(served)
    assert answers(served.port, post_bytes(LEARN, EVENT) * 3 + b"no HTTP\r\n\r\n" + NEXT) == [
        *(200, 200, 200, 400)
    ]
    assert events(served) == before + 3


def test_a_connection_goes_on_after_an_offer(served: Service) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as connection:
        for offer in (*OFFERS["h2c"], "X: y"), ("X: y",):
            connection.sendall(post_bytes(LEARN, EVENT, *offer))
            answer = read_answer(connection)
            assert answer.status == 200
            assert "connection" not in answer.headers
