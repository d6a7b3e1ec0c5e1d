"""A worker that is told to stop does so during any work."""

import asyncio
import itertools
import random
import signal
import threading
import time

import httpx
import pytest
import redis

import hinged
from hinged_service.engine import housekeeping
from hinged_service.engine.housekeeping import Housekeeping
from hinged_service.engine.lifecycle import ModelLifecycle
from hinged_service.engine.registry import ModelRegistry
from hinged_service.model.learner_specs import PerceptronSpec
from hinged_service.model.spec import ModelSpec
from hinged_service.settings import Settings
from hinged_service.store.connection import Connection
from tests.support.forked_worker import ForkedWorker
from tests.support.plain_fold import fold_log, model_uid, read_snapshot
from tests.support.redis_server import RedisServer


async def _stop(keeper: Housekeeping, registry: ModelRegistry) -> None:
    await keeper.aclose()
    await registry.aclose()


def test_a_worker_stops_in_the_middle_of_its_housekeeping(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "_SWEEP_EVERY", 1)
    settings = Settings(redis_url=redis_url).model_copy(update={"housekeeping_ms": 0})

    async def start_and_stop(times: int) -> None:
        connection = Connection(redis_url, settings)
        chance = random.Random(1)
        for n in range(times):
            registry = ModelRegistry(connection, settings)
            lifecycle = ModelLifecycle(registry, settings)
            if n == 0:
                spec = ModelSpec(learner=PerceptronSpec(type="perceptron"))
                await lifecycle.create("m", spec)
            keeper = Housekeeping(registry, lifecycle, settings)
            keeper.start()
            await asyncio.sleep(chance.uniform(0, 0.003))
            await asyncio.wait_for(_stop(keeper, registry), 5)
        await connection.aclose()

    asyncio.run(start_and_stop(400))


async def test_its_models_stop_twice_and_without_having_started(redis_url: str) -> None:
    settings = Settings(redis_url=redis_url)
    connection = Connection(redis_url, settings)
    for start in (False, True):
        registry = ModelRegistry(connection, settings)
        keeper = Housekeeping(registry, ModelLifecycle(registry, settings), settings)
        if start:
            keeper.start()
        for _ in itertools.repeat(None, 2):
            await asyncio.wait_for(_stop(keeper, registry), 5)
    await connection.aclose()


def test_a_worker_stopped_under_load_answers_what_it_took_and_saves_it(
    own_server: RedisServer, own_db: redis.Redis
) -> None:
    worker = ForkedWorker(own_server.url)
    worker.start()
    acknowledged: set[str] = set()
    stopping = threading.Event()

    def send(client: httpx.Client, sender: int) -> None:
        for n in itertools.count():
            name = f"{sender}-{n}"
            event = {"x": {"a": n % 5 - 2}, "y": n % 2 == 0, "id": name}
            try:
                answer = client.post("/v1/models/m/learn", json=event)
            except httpx.TransportError:
                assert stopping.is_set()
                return
            assert answer.status_code == 200, answer.text
            acknowledged.add(name)

    with httpx.Client(base_url=worker.url, verify=False) as client:
        client.put("/v1/models/m", json={"learner": {"type": "perceptron"}})
        senders = [threading.Thread(target=send, args=(client, n)) for n in range(8)]
        for sender in senders:
            sender.start()
        deadline = time.monotonic() + 20
        while len(acknowledged) < 200 and time.monotonic() < deadline:
            time.sleep(0.001)
        stopping.set()
        assert worker.stop() in (0, -15)
        for sender in senders:
            sender.join()
    folded = fold_log(own_db, "m", hinged.Perceptron())
    snapshot = read_snapshot(own_db, "m", model_uid(own_db, "m"))
    assert len(acknowledged) >= 200
    assert acknowledged <= set(folded.counted_ids)
    assert len(folded.counted_ids) == len(set(folded.counted_ids))
    assert snapshot is not None
    assert snapshot.position == folded.position
    assert snapshot.weights == folded.weights
    assert snapshot.accounts == folded.accounts


def test_a_worker_stops_while_redis_stands_still(own_server: RedisServer) -> None:
    worker = ForkedWorker(own_server.url, redis_timeout_ms=800)
    worker.start()
    with httpx.Client(base_url=worker.url, verify=False) as client:
        client.put("/v1/models/m", json={"learner": {"type": "perceptron"}})
        assert client.post("/v1/models/m/learn", json={"x": {"a": 1}, "y": True}).is_success
    own_server.signal(signal.SIGSTOP)
    assert worker.stop() in (0, -15), "it does not wait for Redis"
    own_server.signal(signal.SIGCONT)
    with own_server.client() as store:
        assert fold_log(store, "m", hinged.Perceptron()).learner.accounting.events == 1
