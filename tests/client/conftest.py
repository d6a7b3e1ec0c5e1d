"""The client under test, before the running service of all service tests."""

from collections.abc import Callable, Iterator

import httpx
import pytest

from hinged_service.client import Client
from tests.support.proxy import Proxy
from tests.support.service import Service
from tests.support.shared_service import NewModel

NewName = Callable[..., str]


class Recorder(httpx.HTTPTransport):
    """The way to the service, with a look at what goes over it."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[httpx.Request] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return super().handle_request(request)


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def api(service: Service, recorder: Recorder) -> Iterator[Client]:
    with Client(service.url, transport=recorder) as made:
        yield made


@pytest.fixture
def name(new_model: NewModel) -> str:
    return new_model().rpartition("/")[2]


@pytest.fixture
def new_name(new_model: NewModel) -> NewName:
    return lambda **spec: new_model(**spec).rpartition("/")[2]


@pytest.fixture
def lossy(service: Service) -> Iterator[Proxy]:
    """A proxy before the service that can lose answers."""
    proxy = Proxy(service.port)
    proxy.start()
    yield proxy
    proxy.stop()
