"""Everything a client can make large is bounded, and a refusal for size takes nothing."""

import concurrent.futures
import json
import signal
import socket
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.redis_server import RedisServer
from tests.support.running import serving
from tests.support.service import RawAnswer, Service, post_bytes, read_answer, send_raw
from tests.support.shared_service import NewModel

JSON = {"content-type": "application/json"}
PERCEPTRON = {"learner": {"type": "perceptron"}}


def check_problem(answer: httpx.Response | RawAnswer, status: int) -> dict[str, Any]:
    code = answer.status if isinstance(answer, RawAnswer) else answer.status_code
    assert code == status
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert problem["status"] == status
    assert problem["detail"]
    return problem


@pytest.fixture(scope="module")
def small(service: Service) -> Iterator[Service]:
    """A second worker with narrow limits on the same Redis."""
    url = service.settings.redis_url
    assert url is not None
    with Service(url, max_body_bytes=1024, max_events_per_call=3) as running:
        yield running


def padded(size: int) -> bytes:
    body = b'{"x":{"a":1},"y":true}'
    return body + b" " * (size - len(body))


def test_a_body_up_to_the_limit_is_taken_and_one_byte_more_is_413(
    small: Service, client: httpx.Client, model: str
) -> None:
    assert send_raw(small.port, post_bytes(f"{model}/learn", padded(1024))).status == 200
    for size in (1025, 2048, 100_000):
        for call in ("learn", "predict"):
            check_problem(send_raw(small.port, post_bytes(f"{model}/{call}", padded(size))), 413)
        put = post_bytes("/v1/models/too-large", padded(size)).replace(b"POST", b"PUT", 1)
        check_problem(send_raw(small.port, put), 413)
    assert client.get(model).json()["events"] == 1


def chunked(path: str, chunks: list[bytes]) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    return head + body + b"0\r\n\r\n"


def test_a_body_without_a_length_is_bounded_too(
    small: Service, client: httpx.Client, model: str
) -> None:
    whole = padded(1024)
    pieces = [whole[i : i + 1] for i in range(len(whole))]
    for chunks in ([whole], pieces):
        assert send_raw(small.port, chunked(f"{model}/learn", chunks)).status == 200
    for chunks in ([padded(1025)], [whole[:1000], b" " * 25], [b" " * 600] * 2):
        check_problem(send_raw(small.port, chunked(f"{model}/learn", chunks)), 413)
    assert client.get(model).json()["events"] == 2


def test_an_endless_body_is_refused_before_its_end(small: Service, model: str) -> None:
    head = f"POST {model}/learn HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n"
    with socket.create_connection(("127.0.0.1", small.port), timeout=10) as connection:
        connection.sendall(head.encode())
        for _ in range(8):
            connection.sendall(b"100\r\n" + b" " * 256 + b"\r\n")
        check_problem(read_answer(connection), 413)
    with socket.create_connection(("127.0.0.1", small.port), timeout=10) as connection:
        announced = (
            f"POST {model}/learn HTTP/1.1\r\nHost: test\r\nContent-Length: 99999999999\r\n\r\n"
        )
        connection.sendall(announced.encode() + b" " * 2048)
        check_problem(read_answer(connection), 413)


def test_a_body_cut_in_the_middle_takes_nothing(
    small: Service, client: httpx.Client, model: str
) -> None:
    for sent in (b'{"x":{"a":1},"y":true}', b'[{"x":{"a":1},"y":true}', b""):
        request = post_bytes(f"{model}/learn", sent)
        longer = request.replace(b"Content-Length: %d" % len(sent), b"Content-Length: 500")
        with socket.create_connection(("127.0.0.1", small.port), timeout=10) as connection:
            connection.sendall(longer)
    assert send_raw(small.port, post_bytes(f"{model}/predict", b'{"x":{}}')).status == 200
    assert client.get(model).json()["events"] == 0


def test_an_array_over_the_limit_is_413_whole(
    small: Service, client: httpx.Client, model: str
) -> None:
    event, question = {"x": {"a": 1}, "y": True}, {"x": {"a": 1}}
    with small.client() as narrow:
        for call, item in (("learn", event), ("predict", question)):
            assert narrow.post(f"{model}/{call}", json=[item] * 3).status_code == 200
            problem = check_problem(narrow.post(f"{model}/{call}", json=[item] * 4), 413)
            assert "4" in problem["detail"]
            assert "3" in problem["detail"]
    assert client.get(model).json()["events"] == 3
    check_problem(client.post(f"{model}/learn", json=[event] * 10_001), 413)
    answers = client.post(f"{model}/learn", json=[event] * 10_000).json()
    assert len(answers) == 10_000
    assert client.get(model).json()["events"] == 10_003


def test_10_000_features_are_taken_and_one_more_is_refused(
    client: httpx.Client, model: str
) -> None:
    x = {f"f{n}": 1 for n in range(10_000)}
    assert client.post(f"{model}/learn", json={"x": x, "y": True}).status_code == 200
    assert client.post(f"{model}/predict", json={"x": x}).json()["score"] == 10_001.0
    x["one more"] = 1
    for call, body in (("learn", {"x": x, "y": True}), ("predict", {"x": x})):
        problem = check_problem(client.post(f"{model}/{call}", json=body), 422)
        assert [e["field"] for e in problem["errors"]] == ["x"]
        assert "10000" in problem["errors"][0]["reason"]
    info = client.get(model).json()
    assert (info["events"], info["features"]) == (1, 10_000)


def test_names_beyond_the_models_cap_are_left_out_and_counted(
    client: httpx.Client, new_model: NewModel
) -> None:
    model = new_model(max_features=3)
    client.post(f"{model}/learn", json={"x": {"a": 1, "b": 1}, "y": True})
    client.post(f"{model}/learn", json={"x": {"b": 1, "c": 1, "d": 1, "e": 1}, "y": False})
    info = client.get(model).json()
    assert (info["features"], info["ignored_features"]) == (3, 2)
    # w = (a 1, b 1), b = 1; the second scores 2 against false: b and c go down by one.
    assert client.get(f"{model}/weights").json()["weights"] == {"a": 1.0, "c": -1.0, "b": 0.0}


# Ten events wait, or two hundred bytes, which is at least four of them.
@pytest.mark.parametrize(
    ("limit", "least"), [({"max_queued_events": 10}, 11), ({"max_queued_bytes": 200}, 5)]
)
def test_a_full_queue_takes_nothing_more_and_everything_it_took_is_learned_once(
    own_server: RedisServer, limit: dict[str, Any], least: int
) -> None:
    patient: dict[str, Any] = {"append_timeout_ms": 20_000, "redis_timeout_ms": 20_000}
    with (
        serving(own_server.url, **limit, **patient) as client,
        concurrent.futures.ThreadPoolExecutor(16) as pool,
    ):
        client.put("/v1/models/m", json=PERCEPTRON)
        client.post("/v1/models/m/learn", json={"x": {}, "y": True, "id": "first"})

        def learn(n: int) -> httpx.Response:
            event = {"x": {"a": n}, "y": n % 2 == 0, "id": f"e{n}"}
            return client.post("/v1/models/m/learn", json=event)

        own_server.signal(signal.SIGSTOP)
        sent = [pool.submit(learn, n) for n in range(16)]
        deadline = time.monotonic() + 10
        while not any(answer.done() for answer in sent) and time.monotonic() < deadline:
            time.sleep(0.01)
        full = client.post("/v1/models/m/learn", json=[{"x": {"a": 1}, "y": True, "id": "f"}] * 12)
        own_server.signal(signal.SIGCONT)
        problem = check_problem(full, 429)
        assert "nothing was taken" in problem["detail"].lower()
        assert int(full.headers["retry-after"]) >= 1
        codes = [answer.result().status_code for answer in sent]
        assert set(codes) == {200, 429}
        taken = [n for n in range(16) if codes[n] == 200]
        assert len(taken) >= least
        info = client.get("/v1/models/m").json()
        assert info["events"] == 1 + len(taken)
        again = [learn(n).json()["duplicate"] for n in range(16)]
        assert [n for n in range(16) if again[n]] == taken
        assert client.get("/v1/models/m").json()["events"] == 17


def test_an_array_longer_than_the_queue_is_taken_when_nothing_waits(
    own_server: RedisServer,
) -> None:
    with serving(own_server.url, max_queued_events=2) as client:
        client.put("/v1/models/m", json=PERCEPTRON)
        events = [{"x": {"a": 1}, "y": True}] * 5
        assert client.post("/v1/models/m/learn", json=events).status_code == 200
        assert json.loads(client.get("/v1/models/m").text)["events"] == 5


def test_many_calls_share_two_connections_to_redis(own_server: RedisServer) -> None:
    with (
        Service(own_server.url, redis_connections=2) as service,
        concurrent.futures.ThreadPoolExecutor(30) as pool,
        service.client() as client,
    ):
        for m in range(30):
            client.put(f"/v1/models/m{m}", json=PERCEPTRON)

        def learn(m: int) -> int:
            event = {"x": {"a": m}, "y": True}
            return client.post(f"/v1/models/m{m}/learn", json=event).status_code

        assert list(pool.map(learn, range(30))) == [200] * 30
        for m in range(30):
            assert client.get(f"/v1/models/m{m}/weights").json()["weights"] == {"a": float(m)}


def test_a_body_that_waits_to_be_asked_for_is_asked_for(
    small: Service, client: httpx.Client, model: str
) -> None:
    body = b'{"x":{"a":1},"y":true}'
    request = post_bytes(f"{model}/learn", body, "Expect: 100-continue")
    head = request[: -len(body)]
    with socket.create_connection(("127.0.0.1", small.port), timeout=10) as connection:
        connection.sendall(head)
        asked = b""
        while not asked.endswith(b"\r\n\r\n"):
            asked += connection.recv(1)
        assert asked.startswith(b"HTTP/1.1 100 ")
        connection.sendall(body)
        assert read_answer(connection).status == 200
    assert client.get(model).json()["events"] == 1


def test_the_rest_of_a_refused_body_is_no_request(
    small: Service, client: httpx.Client, model: str
) -> None:
    hidden = post_bytes(f"{model}/learn", b'{"x":{"a":1},"y":true}')
    refused = post_bytes(f"{model}/learn", b" " * 2048 + hidden)
    after = post_bytes(f"{model}/predict", b'{"x":{}}')
    with socket.create_connection(("127.0.0.1", small.port), timeout=10) as connection:
        connection.sendall(refused)
        check_problem(read_answer(connection), 413)
        try:
            connection.sendall(after)
            assert read_answer(connection).json()["score"] == 0.0
        except ConnectionError:
            pass  # closing the connection is an answer too
    assert client.get(model).json()["events"] == 0
