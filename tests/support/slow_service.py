"""A service whose Redis takes a while, with a model that is read and written in many commands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import redis

from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer
from tests.support.running import running
from tests.support.service import Service

__all__ = ["WEIGHTS", "SlowService", "slow"]

WEIGHTS = 2_000
_NAMES_PER_COMMAND = 20


@dataclass(frozen=True)
class SlowService:
    """The service, the proxy before its Redis, and a plain client of that."""

    service: Service
    proxy: Proxy
    db: redis.Redis


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlowService]:
    """Serve the model `m` with `WEIGHTS` weights; to read or write them takes 0.4 s at least."""
    with (
        RedisServer(tmp_path_factory.mktemp("slow")) as server,
        running(Proxy(server.port)) as proxy,
        Service(proxy.url, snapshot_chunk=_NAMES_PER_COMMAND) as service,
        service.client() as client,
        server.client() as db,
    ):
        client.put("/v1/models/m", json={"learner": {"type": "perceptron"}})
        x = {f"a name that takes some room {i}": 1.0 for i in range(WEIGHTS)}
        client.post("/v1/models/m/learn", json={"x": x, "y": True}).raise_for_status()
        proxy.delay_s = 0.004
        yield SlowService(service, proxy, db)
        proxy.delay_s = 0.0
