"""Clients that ask for very large answers and do not read them, beside one that asks for little."""

from __future__ import annotations

import contextlib
import secrets
import socket
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.e2e.drills.serving import Serving
from tests.support.other_caller import OtherCaller, bound_ms
from tests.support.processes import wait_until, wait_until_saved
from tests.support.redis_server import RedisServer

pytestmark = pytest.mark.slow

_MIB = 2**20
_CLASSES = 1_000
_LABEL_CHARS = 256
_CLIENTS = 8
_LOOK_S = 15.0
_LOOKS = 300
_MOST_MEMORY = 96 * _MIB
"""Bytes that answers may hold (half of max_held_bytes), and as much again while they are made."""
_WEIGHTS, _NAMES_PER_EVENT, _NAME_CHARS = 200_000, 10_000, 80
_EMPTY = b'{"x":{}}'


@pytest.fixture(scope="module")
def labels() -> list[str]:
    """Long labels, one for each class of a model."""
    return [f"{number:0{_LABEL_CHARS}d}" for number in range(_CLASSES)]


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A worker on a Redis without a proxy, which would take time of the clients' process."""
    with RedisServer(tmp_path_factory.mktemp("redis")) as server:
        serving = Serving(server.url)
        serving.start()
        yield serving
        serving.kill()


def _model_of(worker: Serving, labels: list[str]) -> str:
    name = f"drill-{secrets.token_hex(4)}"
    url = f"{worker.url}/v1/models/{name}"
    with httpx.Client(timeout=60, verify=False) as client:
        spec = {"learner": {"type": "multiclass_perceptron"}}
        assert client.put(url, json=spec).status_code == 201
        for start in range(0, len(labels), 50):
            events = [{"x": {"a": 1.0}, "y": label} for label in labels[start : start + 50]]
            assert client.post(f"{url}/learn", json=events).status_code == 200
        wait_until_saved(client, url)  # that takes time, too
    return name


def _array(count: int) -> tuple[str, bytes]:
    return "application/json", b"[" + b",".join([_EMPTY] * count) + b"]"


def _lines(count: int) -> tuple[str, bytes]:
    return "application/x-ndjson", b"\n".join([_EMPTY] * count)


_FLOODS: dict[str, tuple[str, tuple[str, bytes]]] = {
    "arrays as usual": ("", _array(1_000)),
    "arrays of all classes": ("?proba=all", _array(50)),
    "lines of all classes": ("?proba=all", _lines(1_000)),
}


@pytest.mark.parametrize("kind", _FLOODS)
def test_clients_that_do_not_read_hold_little_and_others_do_not_wait(
    worker: Serving, labels: list[str], kind: str
) -> None:
    name, small = _model_of(worker, labels), _model_of(worker, ["a", "b"])
    query, (media_type, body) = _FLOODS[kind]
    before = highest = worker.resident_bytes()
    most_ms = bound_ms(worker.url, small)
    with OtherCaller(worker.url, small) as other:
        path = f"/v1/models/{name}/predict{query}"
        with _silent_clients(worker, path, media_type, body):
            until_s = time.monotonic() + _LOOK_S
            while len(other.times_ms) < _LOOKS and time.monotonic() < until_s:
                highest = max(highest, worker.resident_bytes())
                time.sleep(0.02)
    print(
        f"{kind}: {_CLIENTS} clients, {(highest - before) / _MIB:.0f} MiB more, "
        f"{len(other.times_ms)} other predictions, p99 {other.p99_ms:.1f} ms"
    )
    assert not other.failed
    assert highest - before < _MOST_MEMORY
    assert highest < worker.budget_bytes()
    assert other.p99_ms < max(most_ms, bound_ms(worker.url, small))


def test_an_answer_of_hundreds_of_megabytes_is_refused_before_it_is_made(
    worker: Serving, labels: list[str]
) -> None:
    name = _model_of(worker, labels)
    before = worker.resident_bytes()
    for query in ("", "?proba=all"):
        media_type, body = _array(10_000)
        answer = httpx.post(
            f"{worker.url}/v1/models/{name}/predict{query}",
            content=body,
            headers={"content-type": media_type},
            timeout=30,
        )
        assert answer.status_code == 413
        assert "proba=top:3" in answer.json()["detail"]
    assert worker.resident_bytes() - before < 16 * _MIB


@contextlib.contextmanager
def _silent_clients(
    worker: Serving, path: str, media_type: str, body: bytes
) -> Iterator[list[socket.socket]]:
    """Have clients send a request each and read nothing."""
    head = (
        f"POST {path} HTTP/1.1\r\nhost: drill\r\ncontent-type: {media_type}\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    with contextlib.ExitStack() as stack:
        opened = []
        for _ in range(_CLIENTS):
            connection = socket.socket()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**14)
            connection.settimeout(30)
            connection.connect(("127.0.0.1", worker.port))
            opened.append(stack.enter_context(connection))
        for connection in opened:
            connection.sendall(head.encode() + body)
        yield opened


def test_reads_of_a_large_model_keep_no_other_caller_waiting(
    worker: Serving, labels: list[str]
) -> None:
    """Its weights, its export, an explanation, a replay, its live feed."""
    small = _model_of(worker, ["a", "b"])
    path = f"/v1/models/drill-{secrets.token_hex(4)}"
    names = [f"{number:0{_NAME_CHARS}d}" for number in range(_WEIGHTS)]
    with httpx.Client(base_url=worker.url, timeout=120, verify=False) as client:
        client.put(path, json={"learner": {"type": "perceptron"}}).raise_for_status()
        for start in range(0, _WEIGHTS, _NAMES_PER_EVENT):
            x = dict.fromkeys(names[start : start + _NAMES_PER_EVENT], 1.0)
            event = {"x": x, "y": start // _NAMES_PER_EVENT % 2 == 0}  # each is a mistake
            client.post(f"{path}/learn", json=event).raise_for_status()
        most_ms, highest = bound_ms(worker.url, small), 0
        replay = f"drill-{secrets.token_hex(4)}"
        asked: list[tuple[str, str, Any]] = [
            ("GET", f"{path}/weights?top=10000", None),
            ("POST", f"{path}/checkpoints", {"name": "kept"}),
            ("GET", f"{path}/checkpoints/kept/export", None),
            ("POST", f"{path}/explain", {"x": x}),
            ("POST", f"{path}/replay", {"name": replay}),
            ("GET", f"{path}/live?weights=true", None),
        ]
        with OtherCaller(worker.url, small) as other:
            for method, url, body in asked:
                with client.stream(method, url, json=body) as answer:
                    assert answer.is_success, url
                    size = 0
                    for part in answer.iter_bytes():
                        size, highest = size + len(part), max(highest, worker.resident_bytes())
                        if "/live" in url:
                            break
                print(f"{url}: {size / 1e6:.1f} MB")
            replayed = f"/v1/models/{replay}"
            wait_until(lambda: client.get(replayed).json().get("features") == _WEIGHTS)
        assert client.get(f"{path}/weights?top={_WEIGHTS}").status_code == 413
        print(f"{len(other.times_ms)} other predictions, p99 {other.p99_ms:.1f} ms")
        assert not other.failed
        copied = client.get(path).json()["bytes"]  # while it is kept or exported
        assert highest < worker.budget_bytes() + copied
        assert other.p99_ms < max(most_ms, bound_ms(worker.url, small))
        for one in (path, replayed):
            client.delete(one)
