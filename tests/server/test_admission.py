"""All requests of a worker together: how many, what they hold, how long a body may take."""

import contextlib
import json
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.insights.live_feed.reading import Watcher
from tests.support.checks import check_problem
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.service import RawAnswer, Service, post_bytes, read_answer, send_raw

LEARN = "/v1/models/m/learn"
EVENT = b'{"x":{"a":1},"y":true}'


@contextlib.contextmanager
def serving(server: RedisServer, **settings: Any) -> Iterator[tuple[Service, httpx.Client]]:
    with Service(server.url, **settings) as service, service.client() as client:
        spec = {"learner": {"type": "perceptron"}}
        # with a short time for bodies we may stand still in the middle of ours
        wait_until(lambda: client.put("/v1/models/m", json=spec).is_success, 30)
        yield service, client


@contextlib.contextmanager
def unfinished(service: Service, body: bytes, length: int) -> Iterator[socket.socket]:
    """The beginning of a request, its head in a piece of its own."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=30) as connection:
        head, _, _ = post_bytes(LEARN, b"x" * length).partition(b"\r\n\r\n")
        connection.sendall(head + b"\r\n\r\n")
        connection.sendall(body)
        yield connection


def busy(answer: httpx.Response | RawAnswer, setting: str) -> None:
    code = answer.status if isinstance(answer, RawAnswer) else answer.status_code
    assert code == 429
    assert answer.headers["content-type"] == "application/problem+json"
    assert int(answer.headers["retry-after"]) >= 1
    assert setting in answer.json()["detail"]
    assert "nothing" in answer.json()["detail"]


def requests_of(service: Service) -> int:
    return int(service.app.room.requests)  # type: ignore[attr-defined]


def bytes_of(service: Service) -> int:
    return int(service.app.room.bytes)  # type: ignore[attr-defined]


def test_so_many_requests_are_under_way_and_the_next_is_429(own_server: RedisServer) -> None:
    with serving(own_server, max_requests=3) as (service, client):
        with contextlib.ExitStack() as stack:
            slow = [stack.enter_context(unfinished(service, b"{", len(EVENT))) for _ in range(2)]
            wait_until(lambda: requests_of(service) == 2)
            assert client.post(LEARN, content=EVENT).status_code == 200
            stack.enter_context(Watcher(service.url, "/v1/models/m"))
            busy(client.post(LEARN, content=EVENT), "max_requests")
            busy(client.get("/v1/models/m"), "max_requests")
            assert client.get("/healthz").status_code == 200
            assert client.get("/readyz").status_code == 200
            slow[0].sendall(EVENT[1:])
            assert read_answer(slow[0]).status == 200
            assert client.post(LEARN, content=EVENT).status_code == 200
        wait_until(lambda: requests_of(service) == 0)
        assert client.get("/v1/models/m").json()["events"] == 3


def test_bodies_hold_so_much_together_and_one_more_is_429(own_server: RedisServer) -> None:
    whole = EVENT + b" " * (200_000 - len(EVENT))
    with serving(own_server, max_held_bytes=400_000) as (service, client):
        with (
            unfinished(service, whole[:150_000], len(whole)) as one,
            unfinished(service, whole[:150_000], len(whole)) as two,
        ):
            wait_until(lambda: bytes_of(service) == 300_000)
            busy(client.post(LEARN, content=whole), "max_held_bytes")
            busy(
                send_raw(
                    service.port,
                    f"POST {LEARN} HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n"
                    f"{len(whole):x}\r\n".encode()
                    + whole
                    + b"\r\n0\r\n\r\n",
                ),
                "max_held_bytes",
            )
            assert client.post(LEARN, content=EVENT).status_code == 200
            for slow in (one, two):
                slow.sendall(whole[150_000:])
                assert read_answer(slow).status == 200
        wait_until(lambda: bytes_of(service) == 0)
        assert client.post(LEARN, content=whole).status_code == 200
        assert client.get("/v1/models/m").json()["events"] == 4


def test_a_body_that_is_alone_is_taken_at_any_bound(own_server: RedisServer) -> None:
    with serving(own_server, max_held_bytes=1_024) as (service, client):
        body = EVENT + b" " * 500_000
        assert client.post(LEARN, content=body).status_code == 200
        events = [json.loads(EVENT)] * 1_000
        assert client.post(LEARN, json=events).status_code == 200
        assert client.get("/v1/models/m").json()["events"] == 1_001
        wait_until(lambda: bytes_of(service) == requests_of(service) == 0)


def test_requests_leave_the_room_after_any_end(own_server: RedisServer) -> None:
    with serving(own_server, max_body_bytes=1_024) as (service, client):
        lines = {"content-type": "application/x-ndjson"}
        for body, headers in (
            (b"{", {}),
            (b" " * 2_000, {}),
            (EVENT, {"content-type": "text/plain"}),
            (EVENT + b"\n" + EVENT, lines),
        ):
            client.post(LEARN, content=body, headers=headers)
        client.get("/v1/nothing")
        client.post("/v1/models/none/learn", content=EVENT)
        with unfinished(service, b"{", 500):
            wait_until(lambda: requests_of(service) == 1)
        wait_until(lambda: requests_of(service) == bytes_of(service) == 0)


@pytest.mark.parametrize("first", [b"{", EVENT[:5]])
def test_a_body_that_does_not_come_is_408_and_takes_nothing(
    own_server: RedisServer, first: bytes
) -> None:
    with serving(own_server, body_timeout_ms=1_000) as (service, client):
        with unfinished(service, first, len(EVENT)) as slow:
            answer = read_answer(slow)
            check_problem(answer, 408)
        wait_until(lambda: requests_of(service) == bytes_of(service) == 0)
        assert client.get("/v1/models/m").json()["events"] == 0


def test_a_body_that_dribbles_has_no_more_time_for_it(own_server: RedisServer) -> None:
    body = b'{"x":{"' + b"a" * 200 + b'":1},"y":true}'
    with (
        serving(own_server, body_timeout_ms=1_000) as (service, _),
        unfinished(service, body[:1], len(body)) as slow,
    ):
        slow.settimeout(0.05)
        got = b""
        for n in range(1, 200):
            with contextlib.suppress(OSError):
                slow.sendall(body[n : n + 1])
            with contextlib.suppress(TimeoutError):
                got = slow.recv(65536)
                break
        assert got.startswith(b"HTTP/1.1 408 ")
