"""One service for the tests that only talk to it, on a Valkey of its own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.support.redis_server import RedisServer
from tests.support.service import Service

NewModel = Callable[..., str]

_names = itertools.count()


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A running service; each test makes models of its own."""
    with (
        RedisServer(tmp_path_factory.mktemp("service")) as server,
        Service(server.url, metrics_models=100_000) as running,
    ):
        yield running


@pytest.fixture(scope="session")
def client(service: Service) -> Iterator[httpx.Client]:
    """A client of the running service."""
    with service.client() as made:
        yield made


@pytest.fixture
def new_model(client: httpx.Client) -> NewModel:
    """Make a perceptron with a fresh name and return the path of the model."""

    def make(**spec: object) -> str:
        path = f"/v1/models/m{next(_names)}"
        learner = spec.pop("learner", {"type": "perceptron"})
        answer = client.put(path, json={"learner": learner, **spec})
        assert answer.status_code == 201, answer.text
        return path

    return make


@pytest.fixture
def model(new_model: NewModel) -> str:
    """The path of a fresh plain perceptron."""
    return new_model()
