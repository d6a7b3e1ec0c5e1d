"""A proxy for the tests of the engine."""

from collections.abc import Iterator

import pytest

from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer
from tests.support.running import running


@pytest.fixture
def proxy(shared_server: RedisServer, redis_url: str) -> Iterator[Proxy]:
    """A proxy before the shared server."""
    with running(Proxy(shared_server.port)) as one:
        yield one
