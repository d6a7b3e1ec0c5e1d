"""Models beyond those in memory go on where they stood, without a read of Redis."""

import gc
import weakref
from typing import Any

import pytest
import redis

from hinged_service.engine.live_model import LiveModel
from hinged_service.engine.parked import Parked, ParkedModels
from hinged_service.errors import NotFound
from hinged_service.model.index_entry import IndexEntry
from hinged_service.model.state_codec import state_scalars
from hinged_service.store.followers import Retention
from hinged_service.store.transport.lane import UNSEEN
from hinged_service.wire.events import Question
from hinged_service.wire.position import Position
from tests.engine.test_opening import SPECS, calls, label
from tests.support.engine import (
    Worker,
    event,
    fold_of,
    replica_state,
    spec,
    stored_state,
    until,
    worker,
)
from tests.support.proxy import Proxy

FOREVER_MS = 10**6


async def evict(one: Worker, name: str = "m") -> None:
    """Have another model take the place of this one, which then is parked."""
    live_model = await one.registry.open(name)
    await until(lambda: idle(live_model), 30)
    await one.registry.open("other")
    assert [model.name for model in one.registry.recent()] == ["other"]
    assert one.registry._parked.get(name) is not None


async def idle(live_model: LiveModel) -> bool:
    return live_model.idle


def known(live_model: LiveModel) -> tuple[Any, ...]:
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
        before = known(await one.registry.open("m"))
        await evict(one)
        assert known(await one.registry.open("m")) == before
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
        assert one.registry._parked.get("m") is None


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
        assert one.registry._parked.get("m") is None


async def test_a_model_with_a_count_of_many_bits_is_opened_from_redis(redis_url: str) -> None:
    async with worker(redis_url, max_replicas=1) as one:
        await one.create("other")
        await one.create("m")
        await one.learn("m", event(0))
        learner: Any = (await one.registry.open("m")).state.learner
        learner.accounting.ignored = 2**70
        await one.learn("m", event(1))
        await one.save("m")
        before = known(await one.registry.open("m"))
        await one.registry.open("other")
        assert one.registry._parked.get("m") is None
        assert known(await one.registry.open("m")) == before


def test_parked_models_are_bounded_by_bytes() -> None:
    entry = IndexEntry("u", "m", spec(stream="m"), "1-0.c")

    def parked(size: int) -> Parked:
        place = Position("1-0", "c")
        return Parked(entry, place, "1-0", UNSEEN, Retention(None, 1), None, b"x" * size)

    models = ParkedModels(10_000)
    for n in range(5):
        models.put(f"m{n}", parked(2_000))
    assert [f"m{n}" for n in range(5) if models.get(f"m{n}")] == ["m2", "m3", "m4"]
    models.put("m2", parked(100))
    models.drop("m3")
    models.put("m5", parked(2_000))
    assert [f"m{n}" for n in range(6) if models.get(f"m{n}")] == ["m2", "m4", "m5"]
    models.put("m6", parked(10_000))
    assert not any(models.get(f"m{n}") for n in range(7))
