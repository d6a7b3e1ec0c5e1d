"""A Valkey, and two workers on it, that the tests of this folder share."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.support.redis_server import RedisServer
from tests.support.service import Service

Start = Callable[[], Service]

_names = itertools.count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    made = RedisServer(tmp_path_factory.mktemp("composed"))
    made.start()
    yield made
    made.kill()


@pytest.fixture(scope="module")
def start(server: RedisServer) -> Iterator[Start]:
    """Start a worker that saves a snapshot every few events; in the end all are stopped."""
    started: list[Service] = []

    def one() -> Service:
        worker = Service(
            server.url, snapshot_every_events=20, snapshot_every_ms=50, max_staleness_ms=0
        )
        worker.start()
        started.append(worker)
        return worker

    yield one
    for worker in started:
        worker.stop()


@pytest.fixture(scope="module")
def workers(start: Start) -> tuple[Service, Service]:
    return start(), start()


@pytest.fixture(scope="module")
def clients(workers: tuple[Service, Service]) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    """A client of each worker."""
    with workers[0].client() as one, workers[1].client() as two:
        yield one, two


@pytest.fixture
def create(clients: tuple[httpx.Client, httpx.Client]) -> Callable[..., str]:
    """Make a model with a fresh name and return its path; a perceptron if not told otherwise."""

    def make(**spec: Any) -> str:
        path = f"/v1/models/c{next(_names)}"
        answer = clients[0].put(path, json={"learner": {"type": "perceptron"}, **spec})
        assert answer.status_code == 201, answer.text
        return path

    return make
