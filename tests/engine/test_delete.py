"""Models made, deleted and made again: never two in one, never one back from the dead."""

import asyncio
import contextlib
import json
from typing import Any

import pytest
import redis

import hinged
from hinged_service.errors import (
    Conflict,
    GoneWithEvents,
    ModelGone,
    NotFound,
    ServiceError,
    SetAside,
    Unavailable,
)
from hinged_service.model.index_entry import IndexEntry
from hinged_service.store import followers, index, snapshot_reader, snapshot_writer
from hinged_service.store.log import EventLog
from hinged_service.wire.codec import DamagedState
from tests.support.engine import (
    PERCEPTRON,
    Script,
    Worker,
    event,
    fold_of,
    leaked_keys,
    replica_state,
    spec,
    stored_state,
    worker,
)
from tests.support.plain_fold import fold_log, model_uid
from tests.support.redis_server import RedisServer


async def test_a_deleted_model_is_gone_for_all_workers_and_its_keys_with_it(
    redis_url: str, db: redis.Redis
) -> None:
    async with worker(redis_url) as one, worker(redis_url, max_staleness_ms=50) as two:
        await one.create("m")
        await one.learn("m", event(0))
        await two.learn("m", event(1))
        await one.lifecycle.delete("m")
        await asyncio.sleep(0.06)  # older than it may be
        for w in (one, two):
            with pytest.raises(NotFound):
                await w.open("m")
            with pytest.raises(NotFound):
                await w.learn("m", event(2))
        with pytest.raises(NotFound):
            await two.lifecycle.delete("m")
        assert list(db.scan_iter()) == []


async def test_no_worker_writes_a_deleted_model_back(
    redis_url: str, shared_server: RedisServer
) -> None:
    """Late appends, snapshots, chunks of full ones, holds and signs of being set aside."""
    async with worker(redis_url) as one, worker(redis_url, snapshot_chunk=2) as late:
        await one.create("m")
        for n in range(5):
            await late.learn("m", event(n))
        live_model = await late.open("m")
        keys, replica = live_model.keys, live_model.replica
        changes, base = (
            replica.take_snapshot(followers.Retention(None, 0), full=False),
            replica.base,
        )
        whole = replica.take_snapshot(followers.Retention(None, 0), full=True)
        await one.lifecycle.delete("m")
        with shared_server.client() as client:
            with pytest.raises(ModelGone):
                await live_model.freshness.read()
            script = Script(late.connection, "m", keys.uid)
            end = replica.position
            assert (await script.append([event(9)], sequence=9, position=end)).kind == "gone"
            assert (
                await snapshot_writer.save_changes(late.connection, keys, changes, base)
            ).became == "gone"
            assert (
                await snapshot_writer.save_full(late.connection, keys, whole, 2)
            ).became == "gone"
            await followers.release(late.connection, keys.on, keys.uid)
            with pytest.raises(ModelGone):
                await snapshot_reader.load_snapshot(late.connection, keys, str(end), 10, 1000)
            await late.stop()
            assert leaked_keys(client) == []
            for key in client.scan_iter():
                assert 0 < client.ttl(key) <= 60


async def test_one_of_two_followers_is_deleted_and_the_other_keeps_the_stream(
    one: Worker, db: redis.Redis
) -> None:
    await one.create("m")
    await one.create("other", stream="m")
    await one.learn("m", event(0))
    for name in ("m", "other"):
        await one.read(name)
        await one.save(name)
    await one.lifecycle.delete("m")
    await one.learn("other", event(1))
    await one.save("other")
    assert stored_state(db, "m", model_uid(db, "other")) == fold_of(db)
    assert leaked_keys(db, "m") == []
    await one.lifecycle.delete("other")
    assert list(db.scan_iter()) == []


@pytest.mark.parametrize("named", [True, False])
async def test_events_of_a_model_that_goes_while_they_are_logged_are_learned_once(
    redis_url: str, db: redis.Redis, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    """The answer of the append is lost, and the model deleted and made again meanwhile."""
    append = EventLog.append
    async with worker(redis_url) as one, worker(redis_url) as two:
        await one.create("m")
        await one.create("other", stream="m")
        await two.open("other")

        async def lost(log: EventLog, *args: Any) -> None:
            await append(log, *args)
            monkeypatch.undo()
            await two.lifecycle.delete("m")
            await two.create("m", stream="m")
            raise Unavailable("The answer was lost.")

        monkeypatch.setattr(EventLog, "append", lost)
        x: Any = event(0) if named else {k: v for k, v in event(0).items() if k != "id"}
        if named:
            await one.learn("m", x)
        else:
            with pytest.raises(GoneWithEvents):
                await one.learn("m", x)
        assert (await two.read("other")).state.events == 1
        assert (await one.read("other")).state.events == 1
        assert (await one.open("m")).status.caught_up


async def test_create_delete_and_recreate_under_load_never_mix_two_models(
    redis_url: str, db: redis.Redis
) -> None:
    """Every life of the model has a stream and ids of its own; replicas equal its log alone."""
    async with contextlib.AsyncExitStack() as stack:
        workers = [
            await stack.enter_async_context(worker(redis_url, snapshot_every_events=3))
            for _ in range(3)
        ]
        done, number = False, 0

        async def load(one: Worker) -> None:
            nonlocal number
            while not done:
                number += 1
                with contextlib.suppress(NotFound, ModelGone):
                    await one.learn("m", event(number))
                await asyncio.sleep(0)

        async def turn(one: Worker) -> None:
            for _ in range(25):
                await one.create("m")
                await asyncio.sleep(0.01)
                with contextlib.suppress(NotFound):
                    await one.lifecycle.delete("m")

        loads = [asyncio.ensure_future(load(w)) for w in (*workers, *workers)]
        await asyncio.gather(turn(workers[0]), turn(workers[1]))
        await workers[2].create("m")
        await asyncio.sleep(0.1)
        done = True
        await asyncio.gather(*loads)
        plain = fold_of(db)
        assert 0 < plain["events"] < number
        for one in workers:
            # a caller that has an older life open finds out by asking
            live_model = await one.open("m")
            await live_model.freshness.read()
            assert live_model.keys.uid == model_uid(db, "m")
            assert replica_state(live_model) == plain
        await workers[0].save_for_sure("m")
        assert stored_state(db) == plain
        assert leaked_keys(db, "m") == []
        for one in workers:
            await one.stop()
        last = Worker(redis_url)
        await last.lifecycle.delete("m")
        assert leaked_keys(db) == []
        await last.stop()


async def test_many_creations_at_once_make_one_model(
    one: Worker, two: Worker, db: redis.Redis
) -> None:
    made = await asyncio.gather(
        *(w.lifecycle.create("m", spec()) for w in (one, two) for _ in range(10))
    )
    assert len({(entry.uid, entry.base) for entry, _ in made}) == 1
    assert sum(new for _, new in made) == 1
    assert db.hlen("hinged:{m}:followers") == 1


async def _half_created(one: Worker, step: str) -> IndexEntry:
    """Leave what a worker leaves that dies in the middle of creating a model."""
    entry = IndexEntry(uid="half", stream="m", fold=spec(stream="m"))
    assert await index.enter(one.connection, "m", entry, 10)
    if step == "registered":
        await Script(one.connection, "m", "half").register()
    return entry


@pytest.mark.parametrize("step", ["named", "registered"])
@pytest.mark.parametrize("by", ["the next creation", "the sweep", "a deletion"])
async def test_a_half_finished_creation_is_finished(
    one: Worker, db: redis.Redis, step: str, by: str
) -> None:
    await _half_created(one, step)
    with pytest.raises(NotFound):
        await one.learn("m", event(0))
    if by == "the next creation":
        await one.create("m")
    elif by == "the sweep":
        await one.housekeeping.sweep()
    else:
        await one.lifecycle.delete("m")
    if by == "a deletion":
        assert list(db.scan_iter()) == []
        return
    assert model_uid(db, "m") == "half"
    assert (await one.learn("m", event(0))).outcomes[0] is not None
    assert await one.state("m") == fold_of(db)


async def test_a_damaged_stream_keeps_no_worker_from_finishing_the_others(
    one: Worker, db: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    await one.create("a")
    db.delete("hinged:{a}:followers")
    db.set("hinged:{a}:followers", "no hash")
    with pytest.raises(DamagedState):
        await one.create("a")
    await one.create("z")
    entry = await index.find(one.connection, "z")
    assert isinstance(entry, IndexEntry)
    assert await index.compare_and_set(one.connection, "z", entry, entry.as_deleting())
    await one.housekeeping.sweep()
    assert await index.find(one.connection, "z") is None
    assert await index.find(one.connection, "a") is not None
    assert [r.getMessage() for r in caplog.records if r.exc_info] == []
    assert "stream a is damaged" in caplog.text


@pytest.mark.parametrize("step", ["marked", "removed"])
@pytest.mark.parametrize("by", ["the next deletion", "the sweep", "the next creation"])
async def test_a_half_finished_deletion_is_finished(
    redis_url: str, one: Worker, db: redis.Redis, step: str, by: str
) -> None:
    await one.create("m")
    await one.learn("m", event(0))
    await one.save("m")
    entry = await index.find(one.connection, "m")
    assert isinstance(entry, IndexEntry)
    assert await index.compare_and_set(one.connection, "m", entry, entry.as_deleting())
    if step == "removed":
        await followers.delete(one.connection, (await one.registry.open("m")).keys)
    async with worker(redis_url) as two:
        with pytest.raises(NotFound):
            await two.learn("m", event(1))
        if by == "the next deletion":
            await two.lifecycle.delete("m")
        elif by == "the sweep":
            await two.housekeeping.sweep()
        else:
            await two.create("m")
            assert (await two.learn("m", event(0))).outcomes[0] is not None
            assert (await two.state("m"))["events"] == 1
            await two.lifecycle.delete("m")
    assert list(db.scan_iter()) == []


async def test_a_follower_that_no_name_leads_to_is_removed(one: Worker, db: redis.Redis) -> None:
    """Only at the second look: a model that is just being made is not one."""
    await one.create("m")
    await Script(one.connection, "m", "orphan").register()
    db.hset("hinged:{m}:model:orphan:weights", "a", "1.0")
    await one.housekeeping.sweep()
    assert db.hexists("hinged:{m}:followers", "orphan")
    await one.housekeeping.sweep()
    assert not db.hexists("hinged:{m}:followers", "orphan")
    assert leaked_keys(db, "m") == []
    assert (await one.learn("m", event(0))).outcomes[0] is not None


@pytest.mark.parametrize("lost", ["hinged:{m}:*", "hinged:{m}:followers"])
async def test_a_model_that_redis_lost_is_told_and_made_again_after_its_deletion(
    one: Worker, db: redis.Redis, lost: str
) -> None:
    await one.create("m")
    await one.learn("m", event(0))
    db.delete(*db.scan_iter(lost))
    with pytest.raises(ServiceError) as caught:
        await one.learn("m", event(1))
    assert caught.value.status == 404
    with pytest.raises(Conflict, match="Redis lost the model 'm'"):
        await one.create("m")
    await one.lifecycle.delete("m")
    await one.create("m")
    await one.learn("m", event(1))
    assert await one.state("m") == fold_of(db)
    assert (await one.state("m"))["events"] == 1


async def test_a_sequence_of_a_former_life_is_unknown_to_the_next(
    one: Worker, db: redis.Redis
) -> None:
    for life in range(3):
        await one.create("m")
        for n in range(5):
            learned = await one.learn("m", event(n))
            assert learned.outcomes[0] is not None, life
        learner = fold_log(db, "m", hinged.Perceptron()).learner
        assert learner.accounting.events == 5
        await one.lifecycle.delete("m")


async def test_the_index_tells_another_client_what_there_is(one: Worker, db: redis.Redis) -> None:
    await one.create("m")
    entry = json.loads(str(db.hget("hinged:models", "m")))
    assert entry["spec"]["learner"]["type"] == PERCEPTRON["learner"]["type"]
    assert (entry["stream"], entry["deleting"]) == ("m", False)


async def test_an_entry_that_an_older_version_wrote_can_be_used_and_deleted(
    one: Worker, db: redis.Redis
) -> None:
    """An entry without the fields that came later."""
    await one.create("m")
    entry = json.loads(str(db.hget("hinged:models", "m")))
    del entry["spec"]["max_features"], entry["deleting"]
    db.hset("hinged:models", "m", json.dumps(entry))
    await one.create("m")
    await one.learn("m", event(0))
    await asyncio.wait_for(one.lifecycle.delete("m"), 5)
    assert list(db.scan_iter()) == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"uid":"u","stream":"m","spec":{"learner":9}}'])
async def test_an_entry_that_cannot_be_read_here_harms_no_other_model(
    one: Worker, db: redis.Redis, text: str
) -> None:
    """Leave a possible follower alone: the entry may be a newer version's."""
    await one.create("m")
    await one.create("newer", stream="m")
    uid = model_uid(db, "newer")
    db.hset("hinged:models", "newer", text.replace('"u"', f'"{uid}"'))
    with pytest.raises(SetAside):
        await one.learn("newer", event(0))
    if '"u"' in text:  # it says whose it is: no PUT takes it over
        with pytest.raises(SetAside):
            await one.create("newer", stream="m")
    for _ in range(3):
        await one.housekeeping.sweep()
    assert db.hexists("hinged:{m}:followers", uid)
    assert list(await one.registry.entries()) == ["m"]
    assert (await one.learn("m", event(0))).outcomes[0] is not None
