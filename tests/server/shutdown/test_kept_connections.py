"""Connections that are kept between requests end in order when the service is told to stop."""

import contextlib
import socket
import threading
import time
import uuid
from collections.abc import Iterator

import httpx
import pytest

from hinged_service.server.fast_path import FastPathProtocol
from tests.server.shutdown.serving import Serving
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.service import Service, post_bytes, read_answer

PREDICT = post_bytes("/v1/models/m/predict", b'{"x":{"a":1}}')
SPEC = {"learner": {"type": "perceptron"}}
LOADED = 16


@pytest.fixture(params=[1, 2])
def serving(redis_url: str, request: pytest.FixtureRequest) -> Iterator[Serving]:
    running = Serving(redis_url, request.param, uuid.uuid4().hex)
    httpx.put(f"{running.url}/v1/models/m", json=SPEC, timeout=30, verify=False)
    yield running
    running.kill()


class Sender(threading.Thread):
    """Sends requests on one connection until it is told that the connection ends."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self._connection = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.answered = 0
        self.closing = False
        self.fault: Exception | None = None

    def run(self) -> None:
        try:
            while not self.closing:
                self._connection.sendall(PREDICT)
                answer = read_answer(self._connection)
                assert answer.status == 200
                self.answered += 1
                self.closing = answer.headers.get("connection") == "close"
            assert self._connection.recv(1) == b""
        except Exception as error:
            self.fault = error
        finally:
            self._connection.close()


def test_no_request_on_a_kept_connection_is_lost(serving: Serving) -> None:
    senders = [Sender(serving.port) for _ in range(LOADED)]
    for sender in senders:
        sender.start()
    deadline_s = time.monotonic() + 30
    while min(sender.answered for sender in senders) < 20:
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
    serving.send_signal()
    for sender in senders:
        sender.join(30)
    assert [sender.fault for sender in senders if sender.fault is not None] == []
    assert all(sender.closing for sender in senders)
    assert serving.end()[0] == 0


class Patient(FastPathProtocol):
    """Waits for longer, as a test may stand still."""

    stop_s = 4.0


def test_a_kept_connection_takes_one_more_request_for_a_moment(own_server: RedisServer) -> None:
    service = Service(own_server.url)
    service._server.config.http = Patient
    with service, contextlib.ExitStack() as stack:
        with service.client() as client:
            client.put("/v1/models/m", json=SPEC)
        used, half, idle, fresh = (
            stack.enter_context(socket.create_connection(("127.0.0.1", service.port), timeout=30))
            for _ in range(4)
        )
        for connection in (used, half, idle):
            connection.sendall(PREDICT)
            assert read_answer(connection).status == 200
        half.sendall(PREDICT[:30])
        time.sleep(0.1)
        service._server.should_exit = True
        wait_until(lambda: not _accepts(service.port))
        for connection, rest in ((used, PREDICT), (half, PREDICT[30:]), (fresh, PREDICT)):
            connection.sendall(rest)
            answer = read_answer(connection)
            assert (answer.status, answer.headers.get("connection")) == (200, "close")
            assert connection.recv(1) == b""
        began_s = time.monotonic()
        assert idle.recv(1) == b"", "closed, not reset"
        assert time.monotonic() - began_s < 2 * Patient.stop_s
        service._thread.join(30)
        assert not service._thread.is_alive()


def _accepts(port: int) -> bool:
    with contextlib.suppress(ConnectionError):
        socket.create_connection(("127.0.0.1", port), timeout=30).close()
        return True
    return False
