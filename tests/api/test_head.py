"""HEAD: status and fields of a GET, and no body, wherever GET is answered."""

import re
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from hinged import kernel
from hinged_service.api.api_keys import new_key
from hinged_service.server.fast_path import FastPathProtocol
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.running import running, serving
from tests.support.service import Service, read_answer

SPEC = {"learner": {"type": "perceptron"}}
ALIVE = {"status": "alive", "kernel": kernel.kind()}
EVENTS = [{"x": {"a": 1}, "y": True}, {"x": {"b": 2}, "y": False}]
MODEL, ALIAS = "/v1/models/spam", "/v1/models/live"
OF_THE_REQUEST = {"date", "x-request-id", "transfer-encoding"}
"""Fields that two answers need not share; a body of unknown length is only framed by GET."""
OF_THE_MOMENT = ("/metrics", "/v1/overview", "/recent", "/bound")
"""Paths whose two bodies may differ in length."""


def served(redis_url: str, protocol: Any, **settings: Any) -> Service:
    service = Service(redis_url, **settings)
    service._server.config.http = protocol
    return service


@pytest.fixture(scope="module", params=["httptools", "h11", FastPathProtocol], ids=str)
def service(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    with (
        running(RedisServer(tmp_path_factory.mktemp("head"))) as server,
        served(server.url, request.param, max_live_feeds=1) as one,
    ):
        with one.client() as client:
            assert client.put(MODEL, json=SPEC).status_code == 201
            assert client.post(f"{MODEL}/learn", json=EVENTS).status_code == 200
            assert client.post(f"{MODEL}/checkpoints", json={"name": "c1"}).is_success
            assert client.put("/v1/aliases/live", json={"model": "spam"}).is_success
        yield one


def raw(connection: socket.socket, method: str, path: str) -> Any:
    head = f"{method} {path} HTTP/1.1\r\nHost: test\r\nAccept: */*\r\n\r\n"
    connection.sendall(head.encode())
    if method != "HEAD":
        return read_answer(connection)
    got = b""
    while not got.endswith(b"\r\n\r\n"):
        more = connection.recv(65536)
        assert more, "the connection was closed"
        got += more
    assert got.count(b"\r\n\r\n") == 1, "a body came, too"
    return got


def fields(headers: httpx.Headers, path: str) -> dict[str, str]:
    without = set(OF_THE_REQUEST)
    if any(part in path for part in OF_THE_MOMENT):
        without |= {"content-length"}
    return {name: value for name, value in headers.items() if name not in without}


def paths(client: httpx.Client, model: str) -> list[str]:
    """Return every path that has a GET, the endless one left out, and some that have none."""
    names = {"model": model, "stream": "spam", "checkpoint": "c1", "alias": "live", "version": "1"}
    described = client.get("/openapi.json").json()["paths"]
    found = [
        re.sub(r"{(\w+)}", lambda match: names[match[1]], path)
        for path, calls in described.items()
        if "get" in calls and not path.endswith("/live")
    ]
    page = ["/", "/page/page.css", "/page/none", "/docs", "/redoc", "/openapi.json"]
    wrong = [f"/v1/models/{model}?at_least=x", f"/v1/models/{model}/weights?top=0", "/nowhere"]
    return [*found, *page, *wrong, "/v1/models/nobody", "/v2/models/nobody", "/v1/streams/nobody"]


@pytest.mark.parametrize("model", ["spam", "live"])
def test_head_is_get_without_the_body(service: Service, model: str) -> None:
    with service.client() as client:
        statuses = set()
        for path in paths(client, model):
            for _ in range(3):  # a document tells its age while Redis is slow
                got, head = client.get(path), client.head(path)
                if fields(head.headers, path) == fields(got.headers, path):
                    break
            assert (head.status_code, head.content) == (got.status_code, b""), path
            assert fields(head.headers, path) == fields(got.headers, path), path
            statuses.add(head.status_code)
        assert statuses == {200, 404, 422}
        assert client.get(MODEL).json()["events"] == len(EVENTS)


def test_the_next_request_of_the_connection_is_answered(service: Service) -> None:
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as connection:
        for path in ("/healthz", "/metrics", MODEL, f"{MODEL}/live", f"{ALIAS}/weights"):
            assert raw(connection, "HEAD", path).startswith(b"HTTP/1.1 200 "), path
            assert raw(connection, "GET", "/healthz").json() == ALIVE
        for path, status in (("/v1/models/nobody/live", b"404"), (f"{MODEL}/learn", b"405")):
            assert raw(connection, "HEAD", path).startswith(b"HTTP/1.1 " + status), path
            assert raw(connection, "GET", "/healthz").json() == ALIVE


def test_a_live_feed_asked_for_by_head_keeps_no_place(service: Service) -> None:
    with service.client() as client:
        for _ in range(5):
            answer = client.head(f"{MODEL}/live")
            assert answer.status_code == 200
            assert answer.headers["content-type"].startswith("text/event-stream")
        with client.stream("GET", f"{MODEL}/live") as feed:
            assert feed.status_code == 200
            assert client.head(f"{MODEL}/live").status_code == 429
            assert next(feed.iter_lines()).startswith("event: model")
        wait_until(lambda: client.head(f"{MODEL}/live").status_code == 200)


def test_a_path_without_get_has_no_head(service: Service) -> None:
    with service.client() as client:
        for path in (f"{MODEL}/learn", f"{MODEL}/predict", f"{MODEL}/explain", f"{MODEL}/freeze"):
            answer = client.head(path)
            assert (answer.status_code, answer.headers["allow"]) == (405, "POST"), path
        allowed = client.post("/healthz").headers["allow"]
        assert set(allowed.split(", ")) == {"GET", "HEAD"}
        assert client.get(MODEL).json()["events"] == len(EVENTS)


def test_a_head_is_counted_as_one_at_its_route(service: Service) -> None:
    with service.client() as client:
        client.head(f"{MODEL}/weights")
        lines = client.get("/metrics").text.splitlines()
    counted = [line for line in lines if 'method="HEAD"' in line and "/weights" in line]
    assert any('route="/v1/models/{model}/weights"' in line for line in counted), counted


def test_the_state_of_a_worker_whose_redis_is_gone(own_server: RedisServer) -> None:
    with serving(own_server.url) as client:
        assert client.head("/readyz").status_code == 200
        own_server.kill()
        wait_until(lambda: client.get("/readyz").status_code == 503)
        answer = client.head("/readyz")
        assert (answer.status_code, answer.content) == (503, b"")
        assert int(answer.headers["retry-after"]) >= 1
        assert int(answer.headers["content-length"]) > 0
        assert client.head("/healthz").status_code == 200


def test_a_head_needs_the_key_of_its_get(own_server: RedisServer) -> None:
    key, record = new_key("reader", ("predict",), ("spam",))
    teacher, other = new_key("teacher", ("learn",), ("*",))
    keys = f"[{record.model_dump_json()},{other.model_dump_json()}]"
    with serving(own_server.url, keys=keys) as client:
        for path, free in (("/healthz", True), ("/readyz", True), ("/", True), (MODEL, False)):
            got, head = client.get(path), client.head(path)
            assert head.status_code == got.status_code == (200 if free else 401), path
            assert head.content == b""
        for token, path in ((key, MODEL), (key, "/v1/models/ham"), (key, "/metrics"),
                            (key, "/v1/models"), (teacher, MODEL)):  # fmt: skip
            headers = {"authorization": f"Bearer {token}"}
            got, head = client.get(path, headers=headers), client.head(path, headers=headers)
            assert (head.status_code, head.content) == (got.status_code, b""), path
            assert head.status_code in (200, 403, 404), path
