"""Drift switches an alias to the best other model: once, soon or never, also if workers die."""

import asyncio
import json
from typing import Any

import pytest

from hinged_service.engine import auto_promotion
from hinged_service.errors import SetAside
from hinged_service.store.keys import StreamKeys
from tests.support.engine import Event, Worker, until, worker
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer

PERCEPTRON = {"type": "perceptron"}
DETECTOR = {"type": "PageHinkley", "min_instances": 10, "threshold": 3.0, "mode": "up"}
DRIFT = {"detector": DETECTOR, "action": {"promote": {"alias": "live"}}}


def _seen_by(feature: str) -> dict[str, Any]:
    """Return the spec of a model that sees one feature only."""
    return {"learner": PERCEPTRON, "pipeline": [{"type": "Select", "keys": [feature]}]}


def _events(first: int, count: int, changed: bool) -> list[Event]:
    """Return events that `b` always tells, `a` until the change, and `c` never."""
    return [
        {
            "id": f"e{n}",
            "x": {
                "a": -1.0 if changed and n % 4 < 2 else (1.0, -1.0)[n % 2],
                "b": (1.0, -1.0)[n % 2],
                "c": 1.0,
            },
            "y": n % 2 == 0,
        }
        for n in range(first, first + count)
    ]


async def _stream(one: Worker, *others: str) -> None:
    """Make the model `m` that will drift, the alias `live` of it, and others on its stream."""
    await one.create("m", **_seen_by("a"), drift=DRIFT)
    for feature in others:
        await one.create(feature, stream="m", **_seen_by(feature))
    await one.registry.aliases.set("live", "m")
    await one.learn("m", *_events(0, 60, changed=False))


async def _drift(one: Worker) -> None:
    """Let the model `m` drift, in one entry."""
    live_model = await one.registry.open("m")
    before = live_model.state.detected
    await one.learn("m", *_events(1_000, 60, changed=True))
    assert live_model.state.detected > before


class Alias:
    def __init__(self, server: RedisServer) -> None:
        with server.client() as client:
            found: Any = client.hget(StreamKeys("m").aliases, "live")
            index: Any = client.hgetall("hinged:models")
        stored = json.loads(found)
        names = {json.loads(text).get("uid"): name for name, text in index.items()}
        self.model = names[stored["uid"]]
        self.decisions: list[str] = list(stored["decisions"])


async def test_drift_that_all_workers_see_switches_once(
    redis_url: str, one: Worker, two: Worker, shared_server: RedisServer
) -> None:
    await _stream(one, "b", "c")
    await two.read("m")
    await _drift(one)
    await two.read("m")
    await until(lambda: not (one.registry._switching._tasks | two.registry._switching._tasks))
    alias = Alias(shared_server)
    assert alias.model == "b"
    assert len(alias.decisions) == 1
    for who in (one, two):
        assert (await who.open("live")).name == "b"
    # moved back by hand, it stays there: a worker that comes late decides the same again
    assert (await two.registry.aliases.promote("live", "b", "m", None)).kind == "ok"
    async with worker(redis_url) as late:
        await late.read("m")
        await until(lambda: not late.registry._switching._tasks)
    again = Alias(shared_server)
    assert (again.model, again.decisions) == ("m", alias.decisions)


@pytest.mark.parametrize("saved", [False, True], ids=["in the log", "in the snapshot"])
async def test_a_worker_that_dies_before_it_switches_is_stood_in_for(
    redis_url: str,
    one: Worker,
    shared_server: RedisServer,
    saved: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await _stream(one, "b")

    async def dies(*_: object) -> None:
        await asyncio.Event().wait()

    with monkeypatch.context() as patch:
        patch.setattr(auto_promotion.Switching, "_switch_once", dies)
        await _drift(one)
        if saved:
            await one.save("m")
        await one.kill()
    assert Alias(shared_server).model == "m"
    async with worker(redis_url) as two:
        await two.read("m")
        await until(lambda: Alias(shared_server).model == "b")


async def test_a_switch_waits_for_a_redis_that_is_away(
    redis_url: str, shared_server: RedisServer, proxy: Proxy
) -> None:
    async with worker(proxy.url) as one:
        await _stream(one, "b")
        await _drift(one)
        proxy.refuse = True
        proxy.cut()
        await asyncio.sleep(0.4)
        assert Alias(shared_server).model == "m"
        assert one.registry._switching._tasks
        proxy.refuse = False
        await until(lambda: Alias(shared_server).model == "b")


async def test_closing_gives_up_a_switch_under_way(
    redis_url: str, shared_server: RedisServer, proxy: Proxy
) -> None:
    one = Worker(proxy.url)
    await _stream(one, "b")
    await _drift(one)
    proxy.refuse = True
    proxy.cut()
    await asyncio.sleep(0.05)
    assert one.registry._switching._tasks
    await asyncio.wait_for(one.stop(), 10)
    assert not one.registry._switching._tasks
    assert Alias(shared_server).model == "m"


async def test_models_that_are_of_no_use_do_not_stop_a_switch(
    one: Worker, shared_server: RedisServer
) -> None:
    await _stream(one, "b", "broken", "late")
    (await one.read("late")).status.caught_up = False
    broken = await one.read("broken")
    one.registry.forget("broken", broken)
    one.registry._aside[broken.entry.uid] = (SetAside("It is broken."), 1e12)
    with pytest.raises(SetAside):
        await one.open("broken")
    await _drift(one)
    await until(lambda: Alias(shared_server).model == "b")


async def test_drift_without_another_model_is_decided_for_good(
    redis_url: str, one: Worker, shared_server: RedisServer
) -> None:
    await _stream(one)
    await _drift(one)
    await until(lambda: bool(Alias(shared_server).decisions))
    await one.create("b", stream="m", start="log", **_seen_by("b"))
    await one.read("b")
    async with worker(redis_url) as two:
        await two.read("m")
        await until(lambda: not two.registry._switching._tasks)
    assert Alias(shared_server).model == "m"


async def test_an_old_drift_switches_nothing(
    redis_url: str, one: Worker, shared_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does one that a model finds that learns the past again."""
    await _stream(one, "b")
    monkeypatch.setattr(auto_promotion, "NEW_S", 0.0)
    await _drift(one)
    await one.lifecycle.replay(await one.read("m"), "again", None, None, None)
    assert (await one.read("again")).state.detected
    async with worker(redis_url) as two:
        await two.read("m")
        assert not two.registry._switching._tasks
    alias = Alias(shared_server)
    assert (alias.model, alias.decisions) == ("m", [])
