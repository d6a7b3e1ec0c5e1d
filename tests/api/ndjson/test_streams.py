"""Long bodies of lines: retries, back-pressure, hang-ups, Redis away, many at once, memory."""

import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import hinged
from tests.api.ndjson.sending import Sender, event, lines_of
from tests.api.ndjson.test_lines import NDJSON, post, summary
from tests.support.plain_fold import fold_log
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.running import client_of
from tests.support.service import Service
from tests.support.shared_service import NewModel
from tests.support.worker import Worker

LEARN = "/v1/models/m/learn"
PERCEPTRON = {"learner": {"type": "perceptron"}}


def test_a_source_sent_again_goes_on_where_it_stopped(client: httpx.Client, model: str) -> None:
    lines = [json.dumps(event(n)).encode() for n in range(1300)]
    lines[100] = b"bad"
    learn = f"{model}/learn"
    body = b"\n".join(lines[:700])
    first = summary(client, learn, body, source="s")
    assert (first["learned"], first["rejected"]) == (699, 1)
    again = post(client, f"{learn}?source=s", body)
    assert [a["line"] for a in again] == list(range(1, 701))
    assert sum(a.get("duplicate", False) for a in again) == 699
    grown = summary(client, learn, b"\n".join(lines), source="s")
    assert (grown["learned"], grown["duplicates"], grown["rejected"]) == (600, 699, 1)
    assert summary(client, learn, b"\n".join(lines), source="t")["learned"] == 1299
    assert client.get(model).json()["events"] == 2 * 1299


@pytest.mark.parametrize("other", ["changed", "shorter"])
def test_another_body_under_the_name_of_a_source_is_refused(
    client: httpx.Client, model: str, other: str
) -> None:
    events = [event(n) for n in range(600)]
    path = f"{model}/learn?source=s&results=summary"
    summary(client, f"{model}/learn", lines_of(events), source="s")
    changed = lines_of([event(7), *events[1:], event(1)] if other == "changed" else events[:300])
    answer = client.post(path, content=changed, headers=NDJSON)
    assert answer.status_code == 409
    assert client.get(model).json()["events"] == 600


def test_two_calls_that_bring_one_source_at_once_take_each_line_once(
    service: Service, client: httpx.Client, model: str
) -> None:
    body = lines_of(event(n) for n in range(5_000))
    found: list[int] = []

    def send() -> None:
        with service.client() as own:
            found.append(summary(own, f"{model}/learn", body, source="s")["learned"])

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(found) == 5_000
    assert client.get(model).json()["events"] == 5_000


def test_several_streams_at_once(service: Service, client: httpx.Client, model: str) -> None:
    def send(number: int) -> None:
        with service.client() as own:
            body = lines_of(event(n, id=f"{number % 4}-{n}") for n in range(1_500))
            post(own, f"{model}/learn", body)

    threads = [threading.Thread(target=send, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.get(model).json()["events"] == 6_000


@pytest.mark.parametrize("hard", [False, True])
def test_a_client_that_hangs_up_leaves_what_was_appended(
    service: Service, client: httpx.Client, model: str, hard: bool
) -> None:
    sender = Sender(service.port, f"{model}/learn")
    sender.send(lines_of(event(n) for n in range(3)) + b'{"x":{},"y":true}')
    assert [sender.line()["line"] for _ in range(3)] == [1, 2, 3]
    if hard:
        option = struct.pack("ii", 1, 0)
        sender.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, option)
    sender.close()
    time.sleep(0.3)
    assert client.get(model).json()["events"] == 3  # the unfinished line was not taken


def test_a_client_that_does_not_read_the_answer_has_to_wait(
    service: Service, client: httpx.Client, model: str
) -> None:
    body = lines_of(event(n, id=f"e{n}") for n in range(1_000))
    sent = 0
    with Sender(service.port, f"{model}/learn") as sender:
        sender.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        sender.socket.settimeout(1.0)
        with contextlib.suppress(TimeoutError):
            while sent < 2_000:
                sender.send(body)
                sent += 1
        assert sent < 2_000
        assert client.get(model).status_code == 200
    events = client.get(model).json()["events"]
    assert events <= sent * 1_000


@pytest.fixture
def own(own_server: RedisServer) -> Iterator[Service]:
    with Service(own_server.url, append_timeout_ms=200) as running:
        with running.client() as client:
            client.put("/v1/models/m", json=PERCEPTRON)
        yield running


@pytest.mark.parametrize("source", [False, True])
def test_redis_goes_away_and_comes_back_in_the_middle(
    own: Service, own_server: RedisServer, source: bool
) -> None:
    coming_back = threading.Timer(1.5, own_server.start)
    with Sender(own.port, LEARN + ("?source=s" if source else "")) as sender:
        for n in range(4):
            if n == 2:
                own_server.stop()
                coming_back.start()
            more = {} if source else {"id": f"e{n}"}
            sender.send(lines_of([event(n, **more)]))
            assert sender.line()["line"] == n + 1
        sender.end()
        assert sender.all() == []
    coming_back.join()
    with own_server.client() as store:
        folded = fold_log(store, "m", hinged.Perceptron())
    with own.client() as client:
        assert client.get("/v1/models/m").json()["events"] == 4
        assert client.get("/v1/models/m/weights").json()["weights"] == folded.weights


def test_the_end_of_patience_says_from_which_line_to_go_on(own_server: RedisServer) -> None:
    with (
        Service(own_server.url, append_timeout_ms=1_000, lines_patience_ms=1_500) as service,
        service.client() as client,
    ):
        client.put("/v1/models/m", json=PERCEPTRON)
        with Sender(service.port, LEARN) as sender:
            sender.send(lines_of([event(0)]))
            assert sender.line()["line"] == 1
            own_server.stop()
            sender.send(lines_of([event(1)]))
            last = sender.line()
            assert (last["line"], last["error"]["status"]) == (2, 503)
            assert "may have counted" in last["error"]["detail"]
            assert sender.all() == []
        body = lines_of([event(0, id="a"), event(1, id="b")])
        answer = client.post(f"{LEARN}?results=summary", content=body, headers=NDJSON)
        assert (answer.status_code, answer.json()["line"]) == (503, 1)
        assert answer.json()["summary"]["lines"] == 0
        own_server.start()
        wait_until(lambda: client.post(f"{LEARN}", content=body, headers=NDJSON).status_code == 200)


def test_a_model_deleted_and_created_again_is_another_one(
    service: Service, client: httpx.Client, new_model: NewModel
) -> None:
    model = new_model()
    with Sender(service.port, f"{model}/learn") as sender:
        sender.send(lines_of([event(0)]))
        assert sender.line()["line"] == 1
        client.delete(model)
        client.put(model, json=PERCEPTRON)
        sender.send(lines_of([event(1)]))
        assert sender.line()["error"]["status"] == 404
        sender.end()
    assert client.get(model).json()["events"] == 0


def rss_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
def test_a_hundred_megabytes_are_streamed_in_constant_memory(own_server: RedisServer) -> None:
    worker = Worker(own_server.url)
    worker.start()
    try:
        with client_of(worker) as client:
            client.put("/v1/models/m", json=PERCEPTRON)
            wide = {"x": {f"feature_{i}": i / 7 for i in range(400)}, "y": True}
            block = lines_of([wide] * 20)
            blocks = 100 * 2**20 // len(block) + 1
            summary(client, LEARN, block)
            assert worker._process is not None
            pid, highest = worker._process.pid, 0

            def chunks() -> Iterator[bytes]:
                nonlocal highest
                for n in range(blocks):
                    yield block
                    if n % 20 == 0:
                        highest = max(highest, rss_bytes(pid))

            before = rss_bytes(pid)
            answer = client.post(f"{LEARN}?results=summary", content=chunks(), headers=NDJSON)
            assert answer.json()["learned"] == blocks * 20
            print((highest - before) / 2**20)
            assert max(highest, rss_bytes(pid)) - before < 60 * 2**20
    finally:
        worker.kill()
