"""A client that hangs up in mid-call: its call counts whole, or not at all."""

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import pytest
import redis

import hinged
from tests.support.plain_fold import fold_log
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer
from tests.support.running import client_of
from tests.support.service import Service, post_bytes, read_answer

EVENTS = 200
LEARN = "/v1/models/m/learn"
Hangup = Callable[[socket.socket], bool]


def at_once(_: socket.socket) -> bool:
    return False


def at_once_and_hard(connection: socket.socket) -> bool:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return False


def after_the_status_line(connection: socket.socket) -> bool:
    got = b""
    while b"\r\n" not in got:
        data = connection.recv(1)
        if not data:
            return False
        got += data
    assert got == b"HTTP/1.1 200 OK\r\n"
    return True


@pytest.fixture
def slow(proxy: Proxy) -> Iterator[Service]:
    """A service whose Redis takes a while, so that hanging up finds calls under way."""
    with Service(proxy.url, append_timeout_ms=10_000) as service:
        with service.client() as client:
            client.put("/v1/models/m", json={"learner": {"type": "perceptron"}})
        proxy.delay_s = 0.005
        yield service
        proxy.delay_s = 0.0


def event(name: str, n: int) -> dict[str, Any]:
    return {"x": {"a": n % 7 - 3, "b": 1}, "y": n % 3 == 0, "id": name}


def hang_up_often(port: int, bodies: list[tuple[list[str], bytes]], hangup: Hangup) -> set[str]:
    """Send each body on a connection of its own and hang up; return the acknowledged ids."""
    acknowledged: set[str] = set()

    def send(part: list[tuple[list[str], bytes]]) -> None:
        for names, body in part:
            with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
                connection.sendall(post_bytes(LEARN, body))
                with contextlib.suppress(ConnectionError):
                    if hangup(connection):
                        acknowledged.update(names)

    threads = [threading.Thread(target=send, args=(bodies[i::8],)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return acknowledged


@pytest.mark.parametrize("size", [1, 5])
@pytest.mark.parametrize("hangup", [at_once, at_once_and_hard, after_the_status_line])
def test_acknowledged_events_are_logged_and_every_call_is_there_whole_or_not_at_all(
    slow: Service, own_server: RedisServer, hangup: Hangup, size: int
) -> None:
    names = [[f"e{n}" for n in range(first, first + size)] for first in range(0, EVENTS, size)]
    events = {name: event(name, n) for n, name in enumerate(chain.from_iterable(names))}
    bodies = [
        (part, json.dumps([events[n] for n in part] if size > 1 else events[part[0]]).encode())
        for part in names
    ]
    acknowledged = hang_up_often(slow.port, bodies, hangup)
    with own_server.client() as store, slow.client() as client:
        logged = set(fold_log(store, "m", hinged.Perceptron()).counted_ids)
        assert acknowledged <= logged
        if hangup is after_the_status_line:
            assert len(acknowledged) == EVENTS
        for part in names:
            answers = client.post(LEARN, json=[events[n] for n in part]).json()
            assert len({a["duplicate"] for a in answers}) == 1
            if part[0] in logged:
                assert answers[0]["duplicate"] is True
        folded = fold_log(store, "m", hinged.Perceptron())
        assert sorted(folded.counted_ids) == sorted(events)
        info = client.get("/v1/models/m").json()
        assert info["events"] == EVENTS
        weights = client.get("/v1/models/m/weights").json()
        assert weights["weights"] == dict(folded.learner.weights)
        assert weights["intercept"] == folded.learner.intercept


def test_calls_sent_ahead_on_one_connection_are_answered_in_order(slow: Service) -> None:
    with socket.create_connection(("127.0.0.1", slow.port), timeout=20) as connection:
        requests = [post_bytes(LEARN, json.dumps(event(f"e{n}", n)).encode()) for n in range(10)]
        connection.sendall(requests[0])
        first = read_answer(connection)
        assert first.json()["duplicate"] is False
        connection.sendall(requests[0] + post_bytes("/v1/models/m/predict", b'{"x":{}}'))
        got = b""
        while got.count(b"HTTP/1.1 200 OK") < 2 or not got.endswith(b"}\n"):
            got += connection.recv(65536)
    assert 0 < got.index(b'"duplicate":true') < got.index(b'"proba"')


def test_hanging_up_does_not_disturb_the_answers_of_others(
    slow: Service, own_db: redis.Redis
) -> None:
    stop = threading.Event()

    def hang_up() -> None:
        n = 0
        while not stop.is_set():
            n += 1
            body = json.dumps(event(f"gone{n}", n)).encode()
            with socket.create_connection(("127.0.0.1", slow.port), timeout=20) as connection:
                connection.sendall(post_bytes(LEARN, body))
                at_once_and_hard(connection)

    thread = threading.Thread(target=hang_up)
    thread.start()
    try:
        with client_of(slow) as client:
            for n in range(50):
                answer = client.post(LEARN, json=event(f"stays{n}", n))
                assert answer.status_code == 200
                assert answer.json()["duplicate"] is False
    finally:
        stop.set()
        thread.join()
    ids = fold_log(own_db, "m", hinged.Perceptron()).counted_ids
    assert {f"stays{n}" for n in range(50)} <= set(ids)
    assert len(ids) == len(set(ids))
