"""Two workers on one Valkey, for tests that only talk to them."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.engine.delayed_labels.support import Face
from tests.support.redis_server import RedisServer
from tests.support.running import running
from tests.support.service import Service

NewFace = Callable[..., Face]

_names = itertools.count()


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with running(RedisServer(tmp_path_factory.mktemp("late"))) as one:
        yield one


@pytest.fixture(scope="package")
def clients(server: RedisServer) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    quick: dict[str, Any] = {"housekeeping_ms": 50, "max_staleness_ms": 0}
    with (
        Service(server.url, **quick) as first,
        Service(server.url, **quick) as second,
        first.client() as one,
        second.client() as two,
    ):
        yield one, two


@pytest.fixture
def new(clients: tuple[httpx.Client, httpx.Client]) -> NewFace:
    """Make a perceptron whose predictions wait by the given rules."""

    def make(spec: dict[str, object] | None = None, **rules: object) -> Face:
        face = Face(f"m{next(_names)}", *clients)
        face.create((spec or {}) | {"late_labels": rules})
        return face

    return make
