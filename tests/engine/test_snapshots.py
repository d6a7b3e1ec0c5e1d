"""A stored snapshot equals the fold of the log up to its position, or it is not stored.

One file: a list of what may happen to one snapshot, each to be read by itself.
"""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
import redis

from hinged_service.errors import SetAside
from hinged_service.settings import Settings, SnapshotSettings
from hinged_service.store import followers, snapshot_writer
from hinged_service.store.connection import Connection
from hinged_service.store.scripts import Script as LuaScript
from hinged_service.store.scripts import load
from hinged_service.store.snapshot import Snapshot
from hinged_service.wire.position import Position
from tests.support.checks import learns
from tests.support.engine import (
    Worker,
    event,
    everything,
    fold_of,
    leaked_keys,
    replica_state,
    stored_position,
    stored_state,
    until,
    worker,
)
from tests.support.plain_fold import model_uid, read_snapshot
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer


async def test_workers_that_save_in_turn_write_the_fold(redis_url: str, db: redis.Redis) -> None:
    async with worker(redis_url) as one, worker(redis_url) as two, worker(redis_url) as three:
        await one.create("m")
        workers = (one, two, three)
        for n in range(60):
            await workers[n % 3].learn("m", event(2 * n), event(2 * n + 1))
            saver = workers[(n * n) % 3]
            if n % 4:
                await saver.read("m")
            await saver.save("m")
            stored = read_snapshot(db, "m", model_uid(db, "m"))
            assert stored is not None
            assert stored_state(db) == fold_of(db, upto=stored.position)


async def test_events_learned_while_a_snapshot_is_written_are_in_the_next(
    redis_url: str, proxy: Proxy, db: redis.Redis
) -> None:
    async with worker(proxy.url) as one:
        await one.create("m")
        await one.learn("m", event(0))
        proxy.delay_s = 0.02
        for n in range(1, 10):
            saving = asyncio.ensure_future(one.save("m"))
            await asyncio.sleep(0.005)
            await one.learn("m", event(n))
            await saving
        await one.save("m")
        assert stored_state(db) == fold_of(db)


@pytest.mark.parametrize("confirmed_by", ["own save", "another worker's save"])
async def test_after_a_rollback_of_the_snapshot_alone_it_is_written_in_full(
    own_server: RedisServer, tmp_path: Path, confirmed_by: str
) -> None:
    """The log still holds the replica's position, the stored snapshot is older than its base."""
    async with worker(own_server.url) as one, worker(own_server.url) as two:
        await one.create("m")
        for n in range(10):
            await one.learn("m", event(n))
        if confirmed_by == "another worker's save":
            await two.read("m")
        own_server.copy_data(tmp_path / "copy")
        if confirmed_by == "own save":
            await one.save("m")
        else:
            await two.save("m")
            await one.read("m")
        replica = (await one.open("m")).replica
        assert replica.is_saved()
        assert replica.changed_names() == 0
        own_server.set_back(tmp_path / "copy")
        with own_server.client() as client:
            assert read_snapshot(client, "m", model_uid(client, "m")) is None
            await until(lambda: learns(one, event(10)))
            assert (await one.open("m")).replica is replica, "the log holds its position"
            assert 0 < replica.changed_names() < 5
            await one.save_for_sure("m")
            assert stored_state(client) == fold_of(client)


async def test_late_snapshots_change_nothing(redis_url: str, shared_server: RedisServer) -> None:
    """One that is older than the stored one, one of a lost past, one of a deleted model."""
    async with worker(redis_url) as one, worker(redis_url) as two:
        await one.create("m")
        await one.learn("m", event(0))
        live_model = await one.open("m")
        base, old = (
            live_model.replica.base,
            live_model.replica.take_snapshot(followers.Retention(None, 0), full=True),
        )
        keys, connection = live_model.keys, one.connection
        await two.learn("m", event(1))
        await two.save("m")
        lost = Snapshot(
            Position(f"{old.position.order[0] + 10**7}-0", "0" * 40),
            *(old.scalars, old.vectors, old.sizes, old.marks, old.wanted),
        )
        with shared_server.client() as client:
            before = everything(client)
            for snapshot, answer in ((old, "stored"), (lost, "lost")):
                saved = await snapshot_writer.save_changes(connection, keys, snapshot, base)
                assert saved.became == answer
                assert (
                    await snapshot_writer.save_full(connection, keys, snapshot, 1)
                ).became == answer
                assert everything(client) == before
            await two.lifecycle.delete("m")
            assert (
                await snapshot_writer.save_changes(connection, keys, old, base)
            ).became == "gone"
            assert (await snapshot_writer.save_full(connection, keys, old, 1)).became == "gone"
            assert leaked_keys(client) == []


def drop_one(connection: Connection, monkeypatch: pytest.MonkeyPatch, name: str) -> list[str]:
    """Let the second run of the script `name` go to nowhere; return the names of all runs."""
    run, ran = connection.run, list[str]()

    async def sometimes(
        script: LuaScript, keys: list[str], *args: str | bytes | int, **bounds: float
    ) -> Any:
        ran.append(script.name)
        if script.name == name and ran.count(name) == 2:
            return None
        return await run(script, keys, *args, **bounds)

    monkeypatch.setattr(connection, "run", sometimes)
    return ran


async def test_a_full_snapshot_that_lost_a_chunk_is_refused(
    redis_url: str, shared_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with worker(redis_url, snapshot_chunk=3) as one:
        await one.create("m")
        for n in range(10):
            await one.learn("m", event(n))
        live_model = await one.open("m")
        snapshot = live_model.replica.take_snapshot(followers.Retention(None, 2**30), full=True)
        drop_one(one.connection, monkeypatch, "stage_chunk")
        with shared_server.client() as client:
            before = everything(client)
            saved = await snapshot_writer.save_full(one.connection, live_model.keys, snapshot, 3)
            assert saved.became == "incomplete"
            assert everything(client) == before
            assert leaked_keys(client, "m") == []
            monkeypatch.undo()
            saved = await snapshot_writer.save_full(one.connection, live_model.keys, snapshot, 3)
            assert saved.became == "ok"
            assert stored_state(client) == fold_of(client)
            vector = live_model.keys.vector("weights")
            assert client.ttl(vector) == -1, "what is stored does not expire"


async def test_a_replica_goes_on_after_its_snapshot_was_refused_or_its_answer_lost(
    redis_url: str, proxy: Proxy, db: redis.Redis
) -> None:
    async with worker(proxy.url) as one:
        await one.create("m")
        for n in range(20):
            await one.learn("m", event(n))
            proxy.drop_replies = n % 2
            await one.save("m")
            proxy.drop_replies = 0
            assert replica_state(await one.read("m")) == fold_of(db)
        await one.learn("m", event(20))
        await one.save_for_sure("m")
        assert stored_state(db) == fold_of(db)
        assert proxy.dropped == 10


async def test_a_large_set_of_changes_goes_in_chunks(
    redis_url: str, db: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One script that wrote them all would stall every other client."""
    async with worker(redis_url, snapshot_every_names=10**9) as one:
        await one.create("m")
        names = {f"n{i}": 1.0 for i in range(9_000)}
        await one.learn("m", {"x": names, "y": True})
        ran = drop_one(one.connection, monkeypatch, "nothing")
        await one.save("m")
        assert ran == ["snapshot_changes"]
        await one.learn("m", {"x": names, "y": False})
        await one.learn("m", {"x": {f"o{i}": 1.0 for i in range(9_000)}, "y": True})
        ran.clear()
        await one.save_for_sure("m")
        assert set(ran) == {"stage_chunk", "snapshot_full"}
        assert stored_state(db) == fold_of(db)


@pytest.mark.parametrize("due", ["events", "names", "age", "bytes", "retention", "command"])
async def test_snapshots_come_by_number_of_events_changed_names_and_age(
    redis_url: str, db: redis.Redis, due: str
) -> None:
    changes: dict[str, Any] = {
        "events": {"snapshot_every_events": 5},
        "names": {"snapshot_every_names": 4, "housekeeping_ms": 10},
        "age": {"snapshot_every_ms": 50, "housekeeping_ms": 10},
        "bytes": {"snapshot_every_byte_s": 1_000, "housekeeping_ms": 10},
        "retention": {"retention_bytes": 500, "housekeeping_ms": 10},
        "command": {"housekeeping_ms": 10},
    }[due]

    async with worker(redis_url, **changes) as one:
        await one.create("m")
        one.housekeeping.start()
        for n in range(10):
            await one.learn("m", event(n))
        if due == "command":
            await (await one.open("m")).commands.append({"do": "freeze"})
        genesis: Any = db.xrange("hinged:{m}:log", count=1)
        base = genesis[0][0]
        await until(lambda: stored_position(db) != base)
        if due != "command":  # which the plain fold does not know
            assert stored_state(db) == fold_of(db, upto=stored_position(db))


async def test_a_command_hurries_one_snapshot_only(one: Worker) -> None:
    """Also if the model has moved on by the time that it is saved."""
    await one.create("m")
    await one.learn("m", event(0))
    live_model = await one.open("m")
    replica, keep_all = live_model.replica, followers.Retention(None, None)

    def is_due() -> bool:
        """Return whether a snapshot is due when what is not saved is two seconds old."""
        now_s = asyncio.get_running_loop().time()
        replica.is_due(now_s, one.settings, keep_all)
        return replica.is_due(now_s + 2, one.settings, keep_all)

    assert not is_due()
    for command in ("freeze", "unfreeze"):
        await live_model.commands.append({"do": command})
        assert is_due()
    snapshot = replica.take_snapshot(keep_all, full=False)
    await one.learn("m", event(1))
    assert is_due()
    replica.settle(snapshot, "ok", full=False)
    assert not is_due()
    assert not replica.is_saved()


async def test_entries_since_the_snapshot_of_another_worker_are_unsaved(
    one: Worker, two: Worker
) -> None:
    await one.create("m")
    replica = (await two.open("m")).replica
    for saved in (3, 8):
        for n in range(5):
            await one.learn("m", event(saved + n))
            if n == 2:
                await one.save("m")
        await two.read("m")
        assert replica.unsaved()[0] == (await one.open("m")).replica.unsaved()[0] == 2
    await one.learn("m", event(20))
    await one.save("m")
    await one.learn("m", event(21))
    await two.learn("m", event(22))
    assert replica.unsaved()[0] == 2


async def test_a_quiet_model_waits_for_many_events_before_it_is_saved(
    redis_url: str, db: redis.Redis
) -> None:
    """An event costs its append, not a snapshot too; what is learned is saved at the stop."""
    names = [f"m{n}" for n in range(30)]
    usual = {name: Settings.model_fields[name].default for name in SnapshotSettings.model_fields}
    one = Worker(redis_url, housekeeping_ms=20, **usual)
    try:
        for name in names:
            await one.create(name)
        one.housekeeping.start()
        for n in range(3):
            for name in names:
                await one.learn(name, event(n))
            await asyncio.sleep(0.5)
        assert all(read_snapshot(db, name, model_uid(db, name)) is None for name in names)
    finally:
        await one.stop()
    for name in names:
        assert stored_state(db, name) == fold_of(db, name)


async def test_small_snapshots_of_many_models_share_round_trips(
    redis_url: str, proxy: Proxy, db: redis.Redis
) -> None:
    """Over one connection to a Redis far away; a round whose answers get lost is sent again."""
    names = [f"m{n}" for n in range(60)]
    one = Worker(proxy.url, redis_connections=1)
    try:
        for name in names:
            await one.create(name)
            await one.learn(name, event(1))
        models = [await one.open(name) for name in names]
        proxy.drop_replies = 1
        await asyncio.gather(*(model.save() for model in models))
        assert proxy.dropped == 1
        assert not all(model.replica.is_saved() for model in models)
        for name in names:
            await one.learn(name, event(2))
        proxy.delay_s = 0.05
        began_s = time.monotonic()
        await asyncio.gather(*(model.save() for model in models))
        assert time.monotonic() - began_s < 0.5 * len(names) * proxy.delay_s
        assert all(model.replica.is_saved() for model in models)
    finally:
        await one.kill()
    assert all(stored_state(db, name) == fold_of(db, name) for name in names)


async def test_a_model_with_a_long_log_is_saved_before_it_leaves_the_memory(
    redis_url: str, db: redis.Redis
) -> None:
    async with worker(redis_url, max_replicas=2) as one:
        for name in ("long", "short", "a", "b"):
            await one.create(name)
        for n in range(20):
            await one.learn("long", event(n))
        await one.learn("short", event(0))
        for name in ("a", "b"):
            await one.open(name)
        await until(lambda: read_snapshot(db, "long", model_uid(db, "long")) is not None)
        assert stored_state(db, "long") == fold_of(db, "long")
        for name in ("short", "a", "b"):
            await one.open(name)
        assert [model.name for model in one.registry.recent()] == ["b", "a"]
        assert read_snapshot(db, "short", model_uid(db, "short")) is None
        assert await one.state("short") == fold_of(db, "short")


async def test_predictions_change_no_state_and_create_no_weight(
    one: Worker, db: redis.Redis
) -> None:
    await one.create("m")
    for n in range(20):
        await one.learn("m", event(n))
    await one.save("m")
    before, state = everything(db), await one.state("m")
    for n in range(1_000):
        live_model = await one.open("m")
        learner: Any = live_model.state.learner
        learner.score_one({"a": n, f"unknown{n}": 1.0})
        learner.predict_proba_one({f"other{n}": 1.0})
        assert learner.weights.get(f"unknown{n}") is None
    assert replica_state(live_model) == state
    assert live_model.replica.is_saved()
    await live_model.save()
    assert everything(db) == before


async def test_an_unexpected_failure_in_the_middle_of_an_event_never_reaches_redis(
    one: Worker, db: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The replica that may have moved by halves is thrown away; the entry is folded again."""
    await one.create("m")
    await one.learn("m", event(0))
    learner = (await one.open("m")).state.learner
    learn = learner.predict_learn_one
    calls = iter(range(100))

    def failing(x: Any, y: Any, w: float) -> Any:
        if next(calls) == 1:
            raise RuntimeError("a part that fails on an event that was checked")
        return learn(x, y, w)

    monkeypatch.setattr(learner, "predict_learn_one", failing)
    (await one.open("m")).state.observe(None)  # it looks at the learner's method again
    with pytest.raises(SetAside):
        await one.learn("m", event(1), event(2), event(3))
    assert (await one.learn("m", event(1), event(2), event(3))).outcomes == [None] * 3
    await one.save_for_sure("m")
    assert fold_of(db)["events"] == 4
    assert stored_state(db) == await one.state("m") == fold_of(db)


async def test_names_removed_before_a_refused_whole_snapshot_are_removed_by_the_next(
    one: Worker, two: Worker, db: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At rate times penalty 1 every event drops the weights of those before."""
    sgd = {"type": "hinge_sgd", "steps": "constant", "learning_rate": 1.0, "l2": 1.0}
    await one.create("m", learner=sgd)
    await one.learn("m", {"x": {"a": 1.0, "b": 1.0}, "y": True})
    await one.save("m")
    await one.learn("m", {"x": {"c": 1.0}, "y": False})
    keys = (await one.open("m")).keys
    held = [keys.on.meta, keys.on.followers]
    await one.connection.run(load("hold_snapshot"), held, keys.uid, 60_000)
    monkeypatch.setattr("hinged_service.engine.snapshots._NAMES_PER_SCRIPT", 0)
    await one.save("m")
    monkeypatch.undo()
    db.hdel(keys.on.meta, f"hold:{keys.uid}")
    await one.save_for_sure("m")
    assert db.hkeys(keys.vector("weights")) == ["c"]
    learner: Any = (await two.open("m")).replica.state.learner
    assert dict(learner.weights) == {"c": -1.0}
    assert (await two.open("m")).replica.is_saved()
