"""The asynchronous client does what the blocking one does, and can be cancelled."""

import asyncio
import inspect
from collections.abc import AsyncIterator

import httpx
import pytest

from hinged_service.client import (
    AsyncClient,
    Client,
    Duplicate,
    Invalid,
    NotFound,
    Retries,
    Unavailable,
)
from tests.client.conftest import NewName
from tests.support.proxy import Proxy
from tests.support.redis_server import free_port
from tests.support.service import Service


def test_it_has_the_same_methods_with_the_same_parameters() -> None:
    def methods(of: type) -> dict[str, list[str]]:
        return {
            name: [p.name for p in inspect.signature(method).parameters.values()]
            for name, method in inspect.getmembers(of, inspect.isfunction)
            if not name.startswith("_")
        }

    assert methods(AsyncClient) == methods(Client)
    blocking, other = inspect.signature(Client), inspect.signature(AsyncClient)
    assert list(blocking.parameters) == list(other.parameters)


async def test_every_call(service: Service) -> None:
    async with AsyncClient(service.url) as client:
        assert await client.ready()
        created = await client.create_model("async", {"learner": {"type": "perceptron"}})
        assert created in await client.models()
        learned = await client.learn("async", {"a": 1.0}, True)
        assert not learned.duplicate
        found = await client.predict("async", {"a": 1.0}, at_least=learned.position)
        assert (found.y, found.score) == (True, 2.0)
        weights = await client.weights("async", at_least=learned.position)
        assert weights.weights == {"a": 1.0}
        assert (await client.model("async")).events == 1
        with pytest.raises(Invalid) as refused:
            await client.learn("async", {"a": 1.0}, "text")
        assert refused.value.errors[0].field == "y"
        await client.delete_model("async")
        with pytest.raises(NotFound):
            await client.model("async")


async def test_streams_of_both_kinds(service: Service, new_name: NewName) -> None:
    events = [({"a": float(i)}, i % 2 == 0) for i in range(50)]

    async def arriving() -> AsyncIterator[tuple[dict[str, float], bool]]:
        for event in events:
            await asyncio.sleep(0)
            yield event

    one, other = new_name(), new_name()
    async with AsyncClient(service.url) as client:
        outcomes = [o async for o in client.learn_many(one, events, batch_events=7)]
        others = [o async for o in client.learn_many(other, arriving(), batch_events=9)]
        assert len(outcomes) == len(others) == 50
        weights = [
            await client.weights(name, at_least=last.position)
            for name, last in ((one, outcomes[-1]), (other, others[-1]))
        ]
        assert weights[0].weights == weights[1].weights
        xs = [x for x, _ in events]
        at_least = outcomes[-1].position
        found = [p async for p in client.predict_many(one, xs, at_least=at_least)]
        assert len(found) == 50


async def test_many_calls_at_once(service: Service, name: str) -> None:
    async with AsyncClient(service.url) as client:
        calls = (client.learn(name, {"a": 1.0}, True) for _ in range(60))
        outcomes = await asyncio.gather(*calls)  # one sent again in time is a duplicate
        assert (await client.model(name, at_least=outcomes[-1].position)).events >= 1
    async with AsyncClient(service.url) as other:
        position = (await other.learn(name, {"a": 1.0}, True)).position
        assert (await other.model(name, at_least=position)).events == 61


async def test_an_event_whose_answer_was_lost_is_learned_exactly_once(
    service: Service, lossy: Proxy, name: str
) -> None:
    async with AsyncClient(f"http://127.0.0.1:{lossy.port}") as client:
        lossy.drop_replies = 1
        outcome = await client.learn(name, {"a": 1.0}, True)
        assert isinstance(outcome, Duplicate)
        assert (await client.model(name, at_least=outcome.position)).events == 1


async def test_a_cancelled_call_leaves_the_client_whole_and_its_event_can_be_sent_again(
    lossy: Proxy, name: str
) -> None:
    async with AsyncClient(f"http://127.0.0.1:{lossy.port}") as client:
        for i in range(5):
            lossy.delay_s = 5.0
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await client.learn(name, {"a": 1.0}, True, id=f"e{i}")
            lossy.delay_s = 0.0
            outcome = await client.learn(name, {"a": 1.0}, True, id=f"e{i}")
            assert outcome.duplicate
        assert (await client.model(name, at_least=outcome.position)).events == 5


async def test_a_pause_between_attempts_can_be_cancelled() -> None:
    def busy(_: httpx.Request) -> httpx.Response:
        return httpx.Response(503, headers={"retry-after": "20"}, json={"detail": "away"})

    async with AsyncClient("http://s", transport=httpx.MockTransport(busy)) as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await client.models()
    once = Retries(deadline_s=0)
    transport = httpx.MockTransport(busy)
    async with AsyncClient("http://s", transport=transport, retries=once) as client:
        with pytest.raises(Unavailable):
            await client.models()


async def test_ready_without_a_service() -> None:
    async with AsyncClient(f"http://127.0.0.1:{free_port()}") as client:
        assert await client.ready() is False
        assert "AsyncClient('http" in repr(client)
