"""`events` over the live feed of the real service, blocking and for asyncio."""

import asyncio
import contextlib
import gc
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from hinged_service.api.api_keys import new_key
from hinged_service.client import (
    AsyncClient,
    BadAnswer,
    Client,
    Event,
    LiveCommand,
    LiveDrift,
    LiveEnd,
    LiveEvent,
    LiveMetrics,
    LiveModel,
    LiveOutcome,
    LiveSample,
    NotAllowed,
    NotFound,
    Retries,
    Unreachable,
)
from tests.client.conftest import NewName
from tests.support.forked_worker import ForkedWorker
from tests.support.processes import wait_until
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer, free_port
from tests.support.service import Service


def first(events: Iterator[LiveEvent], kind: type[Any]) -> Any:
    return next(event for event in events if isinstance(event, kind))


def readers(service: Service) -> int:
    feeds: Any = service.app.state.feeds
    return sum(len(hub) for hub in feeds._hubs.values())


def test_all_kinds_and_the_end(api: Client, new_name: NewName) -> None:
    name = new_name(drift={"detector": {"type": "ADWIN"}, "action": "mark"}, metrics=["accuracy"])
    with contextlib.closing(api.events(name, features=True)) as events:
        begun = next(events)
        assert isinstance(begun, LiveModel)
        assert (begun.name, begun.model, begun.after, begun.gap) == (name, name, None, False)
        metrics = next(events)
        assert isinstance(metrics, LiveMetrics)
        assert (metrics.events, metrics.accuracy, metrics.events_per_s) == (0, None, None)
        learned = api.learn(name, {"a": 2}, True, id="e1")
        outcome = first(events, LiveOutcome)
        for field in ("y_pred", "score", "mistake", "updated", "hinge_loss", "position"):
            assert getattr(outcome, field) == getattr(learned, field)
        assert (outcome.id, outcome.y, outcome.w, outcome.margin, outcome.x) == (
            "e1",
            True,
            1.0,
            0,
            {"a": 2.0},
        )
        api.freeze(name)
        api.unfreeze(name)
        command = first(events, LiveCommand)
        assert command.do == "freeze"
        assert abs(command.at_ms / 1000 - time.time()) < 10
        same = [Event({"a": 1.0}, True)] * 4000
        list(api.learn_many(name, same + [Event({"a": 1.0}, bool(i % 2)) for i in range(2000)]))
        kinds: set[type[LiveEvent]] = set()
        while not kinds >= {LiveOutcome, LiveSample, LiveDrift, LiveMetrics}:
            kinds.add(type(next(events)))
        api.delete_model(name)
        *_, end = events
        assert end == LiveEnd("deleted")


def test_no_such_model_and_no_features(api: Client, name: str) -> None:
    with pytest.raises(NotFound):
        next(api.events("none"))
    with contextlib.closing(api.events(name)) as events:
        next(events)
        api.learn(name, {"a": 2}, True)
        assert first(events, LiveOutcome).x is None


async def test_closing_hangs_up(service: Service, name: str) -> None:
    before = readers(service)
    with Client(service.url) as client:
        for end in ("close", "drop", "throw"):
            events = client.events(name)
            next(events)
            assert readers(service) == before + 1
            if end == "close":
                events.close()
            elif end == "throw":
                with pytest.raises(KeyError):
                    events.throw(KeyError())
            del events
            gc.collect()
            wait_until(lambda: readers(service) == before, 5)
        assert client.model(name).events == 0

    async with AsyncClient(service.url) as other:
        async with contextlib.aclosing(other.events(name)) as coming:
            assert isinstance(await anext(coming), LiveModel)
            assert readers(service) == before + 1
        await asyncio.to_thread(wait_until, lambda: readers(service) == before, 5)

        async def watch() -> None:
            async for _ in other.events(name):
                pass

        task = asyncio.create_task(watch())
        await asyncio.to_thread(wait_until, lambda: readers(service) == before + 1, 5)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await asyncio.to_thread(wait_until, lambda: readers(service) == before, 5)
        assert (await other.model(name)).events == 0


def test_a_cut_connection_is_made_again_and_the_gap_is_seen(
    service: Service, api: Client, lossy: Proxy, name: str
) -> None:
    with Client(f"http://127.0.0.1:{lossy.port}") as client:
        events = client.events(name)
        next(events)
        seen = api.learn(name, {"a": 1}, True).position
        assert first(events, LiveOutcome).position == seen
        lossy.cut()
        again = first(events, LiveModel)
        assert (again.after, again.position, again.gap) == (seen, seen, False)
        lossy.refuse = True
        lossy.cut()
        missed = api.learn(name, {"a": 2}, True).position

        def come_back() -> None:
            time.sleep(0.3)
            lossy.refuse = False

        threading.Thread(target=come_back).start()
        again = first(events, LiveModel)
        assert (again.after, again.position, again.gap) == (seen, missed, True)
        later = api.learn(name, {"a": 3}, True).position
        assert first(events, LiveOutcome).position == later
        events.close()


def test_deleted_or_created_again_while_away(api: Client, lossy: Proxy, new_name: NewName) -> None:
    for again in (False, True):
        name = new_name()
        with Client(f"http://127.0.0.1:{lossy.port}") as client:
            events = client.events(name)
            next(events)
            lossy.refuse = True
            lossy.cut()
            api.delete_model(name)
            if again:
                api.create_model(name, {"learner": {"type": "perceptron"}})
            lossy.refuse = False
            assert [e for e in events if not isinstance(e, LiveMetrics)] == [LiveEnd("deleted")]


async def test_another_worker_after_a_stop(own_server: RedisServer) -> None:
    worker = ForkedWorker(own_server.url)
    await asyncio.to_thread(worker.start)
    try:
        async with AsyncClient(worker.url) as client:
            await client.create_model("m", {"learner": {"type": "perceptron"}})
            async with contextlib.aclosing(client.events("m")) as events:
                begun = await anext(events)
                await asyncio.to_thread(worker.stop)
                worker.start(wait=False)
                async for event in events:
                    assert not isinstance(event, LiveEnd)
                    if isinstance(event, LiveModel):
                        assert isinstance(begun, LiveModel)
                        assert (event.after, event.uid) == (begun.position, begun.uid)
                        break
                position = (await client.learn("m", {"a": 1}, True)).position
                async for event in events:
                    if isinstance(event, LiveOutcome):
                        assert event.position == position
                        break
                await client.delete_model("m")
                rest = [event async for event in events]
                assert rest[-1] == LiveEnd("deleted")
    finally:
        worker.kill()


def test_the_deadline_counts_from_the_last_connection(lossy: Proxy, name: str) -> None:
    retries = Retries(deadline_s=0.5)
    with Client(f"http://127.0.0.1:{lossy.port}", retries=retries) as client:
        events = client.events(name)
        next(events)
        time.sleep(0.7)
        lossy.cut()
        first(events, LiveModel)
        lossy.refuse = True
        lossy.cut()
        began_s = time.monotonic()
        with pytest.raises(Unreachable):
            first(events, LiveModel)
        assert 0.1 < time.monotonic() - began_s < 5
    with (
        Client(f"http://127.0.0.1:{free_port()}", retries=Retries(deadline_s=0)) as client,
        pytest.raises(Unreachable),
    ):
        next(client.events(name))


def test_it_backs_off_from_a_feed_that_ends_at_once() -> None:
    text = b'event: model\ndata: {"name":"m","model":"m","uid":"u","position":"1-0.0"}\n\n'
    text += b'event: end\ndata: {"reason":"failed"}\n\n'
    asked: list[float] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(time.monotonic())
        assert request.headers["accept"] == "text/event-stream"
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=text)

    with Client("http://s", transport=httpx.MockTransport(answer)) as client:
        events = client.events("m")
        for _ in range(5):
            assert isinstance(next(events), LiveModel)
    assert asked[4] - asked[3] > 0.19  # 0.05 s doubled three times, the upper half of it


def test_an_answer_that_is_not_a_feed_is_refused() -> None:
    def html(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, html="<p>hello")

    def strange(_: httpx.Request) -> httpx.Response:
        text = b"event: later\ndata: whatever\n\nevent: sample\ndata: []\n\n"
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=text)

    for server, reason in ((html, "no text/event-stream"), (strange, "cannot read")):
        with (
            Client("http://s", transport=httpx.MockTransport(server)) as client,
            pytest.raises(BadAnswer, match=reason),
        ):
            next(client.events("m"))


def test_one_who_does_not_iterate_is_dropped_and_sees_the_gap(
    service: Service, api: Client, name: str
) -> None:
    x = {f"{'n' * 200}{i}": 1.0 for i in range(200)}
    with Client(service.url) as client:
        events = client.events(name, features=True)
        next(events)
        before = readers(service)

        def dropped() -> bool:
            list(api.learn_many(name, [Event(x, True)] * 5))
            return readers(service) < before

        wait_until(dropped, 60)
        assert first(events, LiveModel).gap
        events.close()


def test_a_service_with_keys(own_server: RedisServer) -> None:
    key, record = new_key("root", ("predict", "learn", "admin"), ("*",))
    keys: dict[str, Any] = {"keys": json.dumps([record.model_dump(mode="json")])}
    with Service(own_server.url, **keys) as service, Client(service.url) as keyless:
        with Client(service.url, api_key=key) as client:
            client.create_model("m", {"learner": {"type": "perceptron"}})
            with contextlib.closing(client.events("m")) as events:
                assert isinstance(next(events), LiveModel)
        with pytest.raises(NotAllowed):
            next(keyless.events("m"))
