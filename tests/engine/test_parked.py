"""Models beyond those in memory go on where they stood, without a read of Redis."""

import asyncio
import contextlib
import gc
import random
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis

from hinged_service.engine.live_model import LiveModel
from hinged_service.engine.parked_models import ParkedModels
from hinged_service.errors import NotFound
from hinged_service.model.state_codec import state_scalars
from hinged_service.wire.decoding import parse_events
from hinged_service.wire.events import Question
from tests.engine.test_opening import SPECS, calls, label
from tests.support.engine import (
    Worker,
    body,
    event,
    fold_of,
    replica_state,
    stored_state,
    until,
    worker,
)
from tests.support.proxy import Proxy

FOREVER_MS = 10**6
ROOT = Path(__file__).parents[2]


async def evict(one: Worker, name: str = "m") -> None:
    """Have another model take the place of this one, which then is parked."""
    live_model = await one.registry.open(name)
    await until(lambda: idle(live_model), 30)
    await one.registry.open("other")
    assert [model.name for model in one.registry.recent()] == ["other"]
    assert name in one.registry._parked


async def idle(live_model: LiveModel) -> bool:
    return live_model.idle


def facts_of(live_model: LiveModel) -> tuple[Any, ...]:
    """Return all that a model of any kind goes on from."""
    replica, state = live_model.replica, live_model.state
    vectors = {name: dict(vector.view()) for name, vector in state.vectors().items()}
    place = replica.position, replica.stored, replica.base, replica.unsaved()
    log = replica.log_bytes, replica.log_events, replica.changed_names(), replica.needs_full
    return state_scalars(state), vectors, place, log


@pytest.mark.parametrize("name", [name for name in SPECS if name != "scaled"])
async def test_a_parked_model_is_what_it_was(redis_url: str, name: str) -> None:
    async with worker(redis_url, max_replicas=1) as one, worker(redis_url) as two:
        await one.create("other")
        await one.create("m", **SPECS[name])
        for n in range(9):
            await one.learn("m", event(n, y=label(name, n)))
            if n == 5:
                await one.save("m")
        before = facts_of(await one.registry.open("m"))
        await evict(one)
        assert facts_of(await one.registry.open("m")) == before
        await one.learn("m", event(9, y=label(name, 9)))
        never_parked = await two.read("m")
        assert state_scalars((await one.read("m")).state) == state_scalars(never_parked.state)


async def test_a_parked_model_is_opened_without_redis(redis_url: str, db: redis.Redis) -> None:
    async with worker(redis_url, max_replicas=1, max_staleness_ms=FOREVER_MS) as one:
        for name in ("m", "other"):
            await one.create(name)
            await one.learn(name, event(0))
        await one.registry.open("m")
        before = calls(db)
        for _ in range(3):
            for name in ("m", "other"):
                live_model = one.registry.live(name)
                assert live_model is not None
                assert live_model.can_predict_now(10)
                live_model.predict_now([Question({"a": 1.0})])
        after = calls(db)
        asked = ("hget", "evalsha", "eval")
        assert [after.get(name, 0) for name in asked] == [before.get(name, 0) for name in asked]


async def test_what_a_parked_model_has_not_saved_is_saved_later(
    redis_url: str, db: redis.Redis
) -> None:
    async with worker(redis_url, max_replicas=1) as one:
        await one.create("other")
        await one.create("m")
        await one.learn("m", *[event(n) for n in range(4)])
        await one.save("m")
        for n in range(4, 10):
            await one.learn("m", event(n))
            await evict(one)
        await one.save_for_sure("m")
        assert stored_state(db) == fold_of(db)
        await evict(one)
        assert (await one.registry.open("m")).replica.is_saved()


async def test_a_parked_model_hears_of_what_others_learn(redis_url: str, db: redis.Redis) -> None:
    async with worker(redis_url, max_replicas=1) as one, worker(redis_url) as two:
        await one.create("other")
        await one.create("m")
        await one.learn("m", event(0))
        await evict(one)
        await two.learn("m", event(1), event(2))
        await one.open("m")
        assert await one.state("m") == fold_of(db)
        await evict(one)
        learned = await two.learn("m", event(3))
        live_model = await one.registry.open("m")
        await live_model.freshness.wait_for_position(learned.position)
        assert replica_state(live_model) == fold_of(db)


async def test_a_parked_model_that_is_deleted_does_not_come_back(redis_url: str) -> None:
    async with worker(redis_url, max_replicas=1) as one, worker(redis_url) as two:
        await one.create("other")
        await one.create("m")
        await one.learn("m", event(0))
        await evict(one)
        await two.lifecycle.delete("m")
        with pytest.raises(NotFound):
            await one.open("m")
        await one.create("m")
        await evict(one)
        await one.lifecycle.delete("m")
        assert "m" not in one.registry._parked


async def test_a_parked_model_predicts_while_redis_is_away(proxy: Proxy) -> None:
    async with worker(proxy.url, max_replicas=1) as one:
        await one.create("other")
        await one.create("m")
        await one.learn("m", event(0))
        await evict(one)
        proxy.stop()
        predicted = await (await one.registry.open("m")).predict([Question({"a": 1.0})], 10)
        assert predicted.stale_s is not None


async def test_a_model_that_leaves_is_freed_without_a_collection(redis_url: str) -> None:
    """A parked one too: what takes memory is freed at once, not some time later."""
    async with worker(redis_url, max_replicas=1) as one:
        await one.create("other")
        await one.create("m")
        await one.learn("m", event(0))
        await one.save("m")
        left = weakref.ref(await one.registry.open("m"))
        gc.disable()
        try:
            await one.registry.open("other")
            assert [model.name for model in one.registry.recent()] == ["other"]
            assert left() is None
        finally:
            gc.enable()


async def test_a_model_that_is_watched_is_not_parked(redis_url: str) -> None:
    async with worker(redis_url, max_replicas=1) as one:
        await one.create("other")
        await one.create("m")
        live_model = await one.registry.open("m")
        live_model.watch(lambda applied: None)
        await one.registry.open("other")
        assert "m" not in one.registry._parked


async def test_a_model_that_a_call_still_has_is_the_same_when_it_is_open_again(
    redis_url: str, db: redis.Redis
) -> None:
    async with worker(redis_url, max_replicas=1) as one:
        await one.create("other")
        await one.create("m")
        held = await one.registry.open("m")
        await evict(one)
        await held.freshness.read()
        assert await one.registry.open("m") is held
        await one.learn("m", event(0))
        assert replica_state(held) == fold_of(db)


async def test_a_replica_that_a_task_still_has_is_no_other_models(
    redis_url: str, db: redis.Redis
) -> None:
    """A caller that hangs up leaves its append behind, which moves the replica."""
    async with worker(redis_url, max_replicas=1) as one:
        await one.create("other")
        await one.create("m")
        await one.learn("m", event(0))
        replica = (await one.registry.open("m")).replica
        writer = (await one.registry.open("m"))._snapshots
        await evict(one)
        del replica
        parked = one.registry._parked._models["m"]
        assert parked.model() is None
        assert parked.writer() is writer
        opened = await one.registry.open("m")
        assert opened.replica is not parked.replica
        assert await one.state("m") == fold_of(db)
        del writer
        await evict(one)
        parked = one.registry._parked._models["m"]
        assert (await one.registry.open("m")).replica is parked.replica


async def test_callers_that_hang_up_leave_no_replica_with_two_owners(
    redis_url: str, db: redis.Redis
) -> None:
    """Their work goes on while the model is parked and opened again for others."""
    dice = random.Random(1)
    async with worker(redis_url, max_replicas=1) as one:
        for name in ("m", "n"):
            await one.create(name)

        async def learn(number: int, pause_s: float) -> None:
            live_model = await one.registry.open(dice.choice("mn"))
            await asyncio.sleep(pause_s)
            events, payload, _ = parse_events(body(event(number)), 10**6)
            await live_model._append(events, payload)

        async def call(of: int) -> None:
            for number in range(120):
                task = asyncio.create_task(learn(3 * number + of, dice.random() / 100))
                if number % 3 == 0:
                    await asyncio.sleep(dice.random() / 300)
                    task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

        await asyncio.gather(*[call(of) for of in range(3)])
        for name in ("m", "n"):
            assert await one.state(name) == fold_of(db, name)


async def test_a_model_is_not_parked_while_its_log_is_read(redis_url: str) -> None:
    async with worker(redis_url, max_replicas=1) as one:
        await one.create("other")
        await one.create("m")
        await evict(one)
        live_model = await one.registry.open("m")
        live_model.freshness.refresh_early()
        assert not live_model.idle
        assert one.registry.live("other") is not None  # parked: it is open without a pause
        assert "m" not in one.registry._parked
        await until(lambda: idle(live_model), 30)


@pytest.mark.parametrize("name", [name for name in SPECS if name != "scaled"])
def test_a_parked_model_takes_no_more_than_it_counts(redis_url: str, name: str) -> None:
    """In a process of its own: what other tests left there is freed at any time."""
    command = [sys.executable, "-m", "tests.engine.parked_bytes", redis_url, name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    taken, counted = map(float, done.stdout.split())
    assert taken <= counted <= 2 * taken


async def test_parked_models_are_bounded_by_bytes(redis_url: str) -> None:
    """The bytes are those that they take at most: see `test_memory` for those that they take."""
    async with worker(redis_url) as one:
        await one.create("m")
        found = (await one.registry.open("m")).parked()
        assert found is not None
    models = ParkedModels(10_000)

    def put(name: str, size: int) -> None:
        models.put(name, msgspec.structs.replace(found, bytes=size))

    for n in range(5):
        put(f"m{n}", 2_800)
    assert [f"m{n}" for n in range(5) if f"m{n}" in models] == ["m2", "m3", "m4"]
    put("m2", 900)
    models.take("m3")
    put("m5", 2_800)
    assert [f"m{n}" for n in range(6) if f"m{n}" in models] == ["m2", "m4", "m5"]
    put("m6", 10_001)
    assert not any(f"m{n}" in models for n in range(7))
