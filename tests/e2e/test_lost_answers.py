"""Answers of Redis that got lost: the retry is answered as the first try would have been."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.support.forked_worker import ForkedWorker
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer

SPEC = {"learner": {"type": "perceptron"}}
LEARN = "/v1/models/m/learn"


@pytest.fixture
def proxy(own_server: RedisServer) -> Iterator[Proxy]:
    proxy = Proxy(own_server.port)
    proxy.start()
    yield proxy
    proxy.stop()


def test_a_duplicate_whose_answer_was_lost_is_not_given_the_outcome_of_another_event(
    own_server: RedisServer, proxy: Proxy
) -> None:
    behind, direct = ForkedWorker(proxy.url, housekeeping_ms=600_000), ForkedWorker(own_server.url)
    first = {"x": {"a": 1}, "y": True, "id": "first"}
    try:
        behind.start(wait=False)
        direct.start()
        behind.wait_until_alive()
        httpx.put(f"{direct.url}/v1/models/m", json=SPEC, verify=False).raise_for_status()
        assert (
            httpx.post(f"{behind.url}{LEARN}", json=first, verify=False).json()["duplicate"]
            is False
        )
        other = {"x": {"b": 1}, "y": True, "id": "other"}
        assert (
            httpx.post(f"{direct.url}{LEARN}", json=other, verify=False).json()["duplicate"]
            is False
        )
        proxy.drop_replies = 1
        again = httpx.post(f"{behind.url}{LEARN}", json=first, verify=False)
        assert proxy.dropped == 1
        assert again.status_code == 200
        assert again.json()["duplicate"] is True
        assert "y_pred" not in again.json()
    finally:
        behind.kill()
        direct.kill()
