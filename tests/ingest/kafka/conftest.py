"""A broker for each test, and one beside a Redis for the models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hinged_service.ingest.kafka.values import Shape
from tests.ingest.kafka.broker import Broker
from tests.ingest.kafka.reading import Brought, bring
from tests.support.redis_server import RedisServer


class Kafka(Broker):
    """A broker whose topics are brought into the model `m` on a server."""

    def __init__(self, redis_url: str, server: RedisServer) -> None:
        super().__init__()
        self.redis_url = redis_url
        self.server = server

    def bring(self, shape: Shape | None = None, **options: Any) -> Brought:
        """Bring topics to their end."""
        return bring(self, self.redis_url, shape, **options)


@pytest.fixture
def broker() -> Iterator[Broker]:
    """A broker without topics."""
    made = Broker()
    yield made
    made.close()


@pytest.fixture
def kafka(redis_url: str, shared_server: RedisServer) -> Iterator[Kafka]:
    """A broker without topics, beside the shared server."""
    made = Kafka(redis_url, shared_server)
    yield made
    made.close()
