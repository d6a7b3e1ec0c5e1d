"""A model that is not in memory is opened in one round trip, as whole as by many."""

from typing import Any

import pytest
import redis

from hinged_service.engine.snapshots import load_replica
from hinged_service.errors import NotFound
from hinged_service.model.index_entry import IndexEntry
from hinged_service.model.state_codec import state_scalars
from hinged_service.settings import SnapshotSettings
from hinged_service.store import index
from tests.support.engine import event, fold_of, replica_state, spec, worker

SPECS: dict[str, dict[str, Any]] = {
    "plain": {},
    "confidence": {"learner": {"type": "arow"}},
    "classes": {"learner": {"type": "multiclass_perceptron"}},
    "experts": {"learner": {"type": "auto"}, "labels": ["no", "yes"]},
    "balanced": {"class_weight": "balanced", "calibrate": True},
    "scaled": {"scale": "auto"},
}


def calls(db: redis.Redis) -> dict[str, int]:
    """Return how often each command ran, those of scripts too."""
    found: Any = db.info("commandstats")
    return {name.removeprefix("cmdstat_"): stats["calls"] for name, stats in found.items()}


def label(name: str, number: int) -> bool | str:
    return ("no", "yes")[number % 2] if name in ("classes", "experts") else number % 3 == 0


@pytest.mark.parametrize("name", SPECS)
async def test_a_model_opened_at_once_equals_one_read_in_pieces(redis_url: str, name: str) -> None:
    async with worker(redis_url) as one, worker(redis_url) as two:
        await one.create("m", **SPECS[name])
        for n in range(8):
            await one.learn("m", event(n, y=label(name, n)))
        await one.save("m")
        entry = await index.find(two.connection, "m")
        assert isinstance(entry, IndexEntry)
        by_pieces = await load_replica(two.connection, SnapshotSettings(), entry)
        opened = await two.registry.open("m")
        assert opened.position == by_pieces.position
        for other in (by_pieces.state, (await one.registry.open("m")).state):
            assert state_scalars(opened.state) == state_scalars(other)
            views = {vector: dict(v.view()) for vector, v in other.vectors().items()}
            assert {vector: dict(v.view()) for vector, v in opened.state.vectors().items()} == views


async def test_a_model_known_before_is_opened_in_one_round_trip(
    redis_url: str, db: redis.Redis
) -> None:
    async with worker(redis_url, max_replicas=1, max_parked_bytes=0) as one:
        for name in ("m", "other"):
            await one.create(name)
        for n in range(3):
            await one.learn("m", event(n))
        await one.save("m")
        await one.learn("m", event(3))
        await one.open("other")
        assert [model.name for model in one.registry.recent()] == ["other"]
        before = calls(db)
        opened = await one.registry.open("m")
        after = calls(db)
        assert replica_state(opened) == fold_of(db)
        asked = {name: after[name] - before.get(name, 0) for name in ("hget", "evalsha")}
        assert asked == {"hget": 2, "evalsha": 1}  # an hget of the script's, one for the entry
        assert after.get("hscan", 0) == before.get("hscan", 0)


async def test_a_large_model_is_read_in_pieces(redis_url: str, db: redis.Redis) -> None:
    async with worker(redis_url) as one, worker(redis_url) as two:
        await one.create("m")
        await one.learn("m", event(0, x={f"n{i}": 1.0 for i in range(1_001)}, y=True))
        await one.save("m")
        await one.learn("m", event(1))
        assert replica_state(await two.registry.open("m")) == fold_of(db)


async def test_an_entry_that_changed_since_it_was_read_is_read_again(
    redis_url: str, db: redis.Redis
) -> None:
    unparked = {"max_replicas": 1, "max_parked_bytes": 0}
    async with worker(redis_url, **unparked) as one, worker(redis_url) as two:
        half = IndexEntry(uid="half", stream="made", fold=spec(stream="made"))
        assert await index.enter(two.connection, "made", half, 10)
        with pytest.raises(NotFound):
            await one.registry.open("made")
        await two.lifecycle.finish_creation("made", half)
        await one.learn("made", event(0))
        await one.create("m")
        await one.learn("m", event(0))  # and "made" leaves the memory of this worker
        await two.lifecycle.delete("made")
        await two.create("made")
        await two.learn("made", event(7))
        assert replica_state(await one.registry.open("made")) == fold_of(db, "made")
        await one.open("m")
        await two.lifecycle.delete("made")
        with pytest.raises(NotFound):
            await one.registry.open("made")


def test_models_alike_share_their_spec() -> None:
    """All but the stream's name, which is the entry's."""
    entries = [
        IndexEntry.loads(IndexEntry(f"u{n}", f"m{n}", spec(stream=f"m{n}"), "1-0.c").dumps())
        for n in range(2)
    ]
    assert entries[0].fold is entries[1].fold
    assert [entry.spec for entry in entries] == [spec(stream=f"m{n}") for n in range(2)]
    other = IndexEntry("u", "m", spec(stream="m", labels=[1, 2]), "1-0.c")
    assert IndexEntry.loads(other.dumps()).spec.labels == (1, 2)
    assert IndexEntry.loads(other.dumps()).dumps() == other.dumps()
