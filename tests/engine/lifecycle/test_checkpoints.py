"""A checkpoint is made once, stays while anything needs it, and leaves nothing behind."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from typing import Any

import pytest
import redis

from hinged_service.engine import catch_up, export, snapshots
from hinged_service.engine.live_model import LiveModel
from hinged_service.errors import Conflict, ModelGone, NotFound, ServiceError, SetAside
from hinged_service.settings import SnapshotSettings
from hinged_service.store import checkpoints
from hinged_service.store.keys import StreamKeys
from tests.engine.lifecycle.plain_model import SCALED, fold_log, live
from tests.support.engine import Worker, event, leaked_keys, worker
from tests.support.plain_fold import model_uid
from tests.support.proxy import Proxy


async def _checkpoint(one: Worker, model: str = "m", name: str | None = None) -> str:
    return (await (await one.read(model)).checkpoints.make(name)).uid


async def _restore(one: Worker, uid: str, model: str = "m") -> None:
    await (await one.read(model)).commands.append({"do": "restore", "checkpoint": uid})


def _keys(client: redis.Redis, uid: str) -> list[str]:
    return list(client.scan_iter(f"*{uid}*"))


async def test_a_checkpoint_that_a_model_starts_with_stays(one: Worker, db: redis.Redis) -> None:
    await one.create("m", **SCALED)
    await one.learn("m", event(1))
    uid = await _checkpoint(one, name="c")
    await one.create("copy", start={"model": "m", "checkpoint": "c"}, **SCALED)
    live_model = await one.read("m")
    assert await live_model.checkpoints.drop(uid) == model_uid(db, "copy")
    assert _keys(db, uid)
    await one.read("copy")
    await one.save("copy")
    assert await live_model.checkpoints.drop(uid) is not None, "it may be needed again"
    await one.lifecycle.delete("copy")
    assert await live_model.checkpoints.drop(uid) is None
    assert _keys(db, uid) == []
    assert db.hlen(StreamKeys("m").checkpoints) == 0
    assert not [f for f in db.hkeys(StreamKeys("m").meta) if "pin" in f]


async def test_a_restored_checkpoint_stays_until_the_snapshot_is_past_the_command(
    redis_url: str, db: redis.Redis
) -> None:
    async with worker(redis_url) as one, worker(redis_url) as late:
        await one.create("m", **SCALED)
        await one.learn("m", event(1), event(2), event(3))
        uid = await _checkpoint(one)
        await one.learn("m", *(event(n) for n in range(4, 20)))
        await late.read("m")
        await _restore(one, uid)
        await one.learn("m", *(event(n) for n in range(20, 30)))
        live_model = await one.read("m")
        assert await live_model.checkpoints.drop(uid) == live_model.entry.uid
        await one.save("m")
        log: Any = db.xrange("hinged:{m}:log")
        place = next(e for e, f in log if "events" in f)
        assert await live_model.checkpoints.drop(uid) is None
        assert _keys(db, uid) == []
        plain = fold_log(db, "m", live_model.entry.uid, {uid: place}).state()
        assert live(live_model) == plain
        # a replica before the command finds the checkpoint gone; the snapshot helps
        await late.learn("m", event(50))
        await one.learn("m", event(51))
        for who in (one, late):
            assert live(await who.read("m"))["events"] == 3 + 10 + 2
        assert live(await late.read("m")) == live(await one.read("m"))


async def test_a_damaged_snapshot_whose_log_restores_a_deleted_checkpoint_is_set_aside(
    redis_url: str, db: redis.Redis
) -> None:
    """Folding that log from its beginning would come to another state: never do it silently."""
    async with worker(redis_url) as one, worker(redis_url) as cold:
        await one.create("m", **SCALED)
        await one.create("other", stream="m", **SCALED)
        uid = await _checkpoint(one)
        await one.learn("m", event(1))
        await _restore(one, uid)
        await one.learn("m", event(2))
        await one.save("m")
        live_model = await one.read("m")
        assert await live_model.checkpoints.drop(uid) is None
        db.hset(live_model.keys.state, "scalars", "{}")
        with pytest.raises(SetAside, match="checkpoint"):
            await cold.read("m")
        assert live(await cold.read("other")) == live(await one.read("other"))


async def test_lost_replies_make_a_checkpoint_once(
    redis_url: str, db: redis.Redis, proxy: Proxy
) -> None:
    async with worker(proxy.url, append_timeout_ms=5_000) as one:
        await one.create("m", **SCALED)
        for n in range(8):
            await one.learn("m", event(n))
            live_model = await one.read("m")
            proxy.drop_replies = 1 + n % 3
            made = await live_model.checkpoints.make(f"c{n}")
            proxy.drop_replies = 0
            assert live(await one.read("m"))["events"] == n + 1 == made.events
        listed = await live_model.checkpoints.listed()
        assert [c.name for c in listed] == [f"c{n}" for n in range(8)]
        assert db.hlen(StreamKeys("m").checkpoints) == 16
    assert proxy.dropped >= 8


async def test_the_last_models_deletion_takes_every_key_of_the_stream(
    one: Worker, db: redis.Redis
) -> None:
    for kind in ({"type": "perceptron"}, {"type": "multiclass_arow"}):
        await one.create("m", learner=kind)
        await one.learn(
            "m", *(event(n, y=("ab"[n % 2] if "m" in kind["type"][0] else n % 2)) for n in range(6))
        )
        await one.create("copy", learner=kind, start={"model": "m"})
        for number in range(3):
            await _checkpoint(one, name=f"n{number}")
        uid = await _checkpoint(one, "copy")
        await _restore(one, uid)
        await one.registry.aliases.set("live", "copy")
        with pytest.raises(Conflict):
            await one.lifecycle.delete("copy")
        await one.lifecycle.delete("m")
        await one.registry.aliases.delete("live")
        await one.lifecycle.delete("copy")
        assert db.keys("*") == []


async def test_copies_that_come_and_go_leave_no_checkpoint(
    one: Worker, two: Worker, db: redis.Redis
) -> None:
    """The checkpoint that a copy starts with was made for it, and goes with it."""
    await one.create("m", **SCALED)
    await one.learn("m", event(1))
    mine = await _checkpoint(one, name="mine")
    for _ in range(3):
        await asyncio.gather(
            *(w.create("copy", start={"model": "m"}, **SCALED) for w in (one, two))
        )
        await two.read("copy")
        await one.create("named", start={"model": "m", "checkpoint": "mine"}, **SCALED)
        await two.lifecycle.delete("copy")
        await two.lifecycle.delete("named")
    assert [c.uid for c in await (await one.read("m")).checkpoints.listed()] == [mine]
    assert db.hlen(StreamKeys("m").checkpoints) == 2


async def test_checkpoints_made_while_their_stream_is_deleted_leave_nothing(
    one: Worker, two: Worker, db: redis.Redis
) -> None:
    for _ in range(10):
        await one.create("m", **SCALED)
        await one.learn("m", event(1))
        live_model = await one.read("m")

        async def keep_making(live_model: LiveModel = live_model) -> int:
            number = 0
            while True:
                try:
                    await live_model.checkpoints.make(None)
                except (ModelGone, NotFound):
                    return number
                number += 1

        making = [asyncio.ensure_future(keep_making()) for _ in range(3)]
        await asyncio.sleep(0.02)
        await two.lifecycle.delete("m")
        assert sum(await asyncio.gather(*making)) > 0
        assert leaked_keys(db) == []


async def test_an_import_that_breaks_off_leaves_nothing(
    one: Worker, two: Worker, db: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker dies after it stored the state: the next sweep finishes or undoes the creation."""
    await one.create("m", **SCALED)
    await one.learn("m", event(1), event(2))
    live_model = await one.read("m")
    made = await live_model.checkpoints.make(None)
    document = export.imported(
        b"".join(export.exported(made, await live_model.checkpoints.read(made)))
    )
    for place in ("before", "after"):
        enter = checkpoints.enter

        async def dies(*args: Any, place: str = place, enter: Any = enter) -> Any:
            if place == "after":
                await enter(*args)
            raise asyncio.CancelledError

        with monkeypatch.context() as patch:
            patch.setattr(checkpoints, "enter", dies)
            with pytest.raises(asyncio.CancelledError):
                await one.lifecycle.create_imported(place, document)
        for _ in range(2):
            await two.housekeeping.sweep()
        if place == "before":
            assert db.hget("hinged:models", place) is None
        else:
            assert live(await two.read(place)) == live(await one.read("m"))
            await two.lifecycle.delete(place)
        assert not [key for key in db.keys(f"*{{{place}}}*") if db.ttl(key) == -1]


async def test_an_import_that_takes_long_is_not_swept_away(
    one: Worker, two: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await one.create("m", **SCALED)
    await one.learn("m", event(1), event(2))
    live_model = await one.read("m")
    made = await live_model.checkpoints.make(None)
    loaded = await live_model.checkpoints.read(made)
    document = export.imported(b"".join(export.exported(made, loaded)))
    stage, enter = checkpoints.stage, checkpoints.enter

    async def slow_stage(*args: Any) -> Any:
        for _ in range(3):
            await two.housekeeping.sweep()
        return await stage(*args)

    async def slow_enter(*args: Any) -> Any:
        await two.housekeeping.sweep()
        return await enter(*args)

    monkeypatch.setattr(checkpoints, "stage", slow_stage)
    monkeypatch.setattr(checkpoints, "enter", slow_enter)
    await one.lifecycle.create_imported("far", document)
    assert live(await two.read("far")) == live(await one.read("m"))


async def test_a_model_deleted_while_it_is_opened_is_gone_and_not_damaged(one: Worker) -> None:
    await one.create("m", **SCALED)
    await one.create("copy", start={"model": "m"}, **SCALED)
    entry = (await one.registry.entries())["copy"]
    await one.lifecycle.delete("copy")
    keys, chunk = StreamKeys(entry.stream), SnapshotSettings().snapshot_chunk
    with pytest.raises(ModelGone):
        await snapshots.at_origin(one.connection, keys, entry, None, None, chunk)


async def test_a_model_deleted_while_it_is_imported_is_a_conflict_and_leaves_nothing(
    one: Worker, two: Worker, db: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    await one.create("m", **SCALED)
    await one.learn("m", event(1))
    live_model = await one.read("m")
    made = await live_model.checkpoints.make(None)
    loaded = await live_model.checkpoints.read(made)
    document = export.imported(b"".join(export.exported(made, loaded)))
    enter = checkpoints.enter

    async def late_enter(*args: Any) -> Any:
        entered = await enter(*args)
        await two.lifecycle.delete("far")
        return entered

    monkeypatch.setattr(checkpoints, "enter", late_enter)
    with pytest.raises(Conflict):
        await one.lifecycle.create_imported("far", document)
    assert not [key for key in db.keys("*{far}*") if db.ttl(key) == -1]


async def test_a_copy_deleted_while_it_is_made_is_made_again(
    one: Worker, two: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller does not hear of a checkpoint that it never named."""
    await one.create("m", **SCALED)
    await one.learn("m", event(1))
    find = checkpoints.find
    found: list[Any] = []

    async def late_find(*args: Any) -> Any:
        if not found:
            found.append(args)
            await two.lifecycle.delete("copy")
        return await find(*args)

    monkeypatch.setattr(checkpoints, "find", late_find)
    await one.create("copy", start={"model": "m"}, **SCALED)
    assert found
    assert live(await two.read("copy")) == live(await one.read("m"))


async def test_a_checkpoint_that_is_deleted_while_it_is_read_is_not_found(
    one: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await one.create("m", **SCALED)
    await one.learn("m", event(1), event(2))
    live_model = await one.read("m")
    made = await live_model.checkpoints.make(None)
    scan = one.connection.hscan

    async def late_scan(key: str, count: int) -> AsyncIterator[list[tuple[str, str]]]:
        await live_model.checkpoints.drop(made.uid)
        async for pairs in scan(key, count):
            yield pairs

    monkeypatch.setattr(one.connection, "hscan", late_scan)
    with pytest.raises(NotFound):
        await live_model.checkpoints.read(made)


async def test_a_copy_of_another_kind_of_model_is_refused_and_leaves_nothing(
    one: Worker, db: redis.Redis
) -> None:
    await one.create("m", **SCALED)
    await one.learn("m", event(1))
    for other in ({"learner": {"type": "arow"}}, {**SCALED, "metrics": ["accuracy"]}):
        with pytest.raises(ServiceError) as refused:
            await one.create("copy", start={"model": "m"}, **other)
        assert refused.value.status == 422
        assert refused.value.errors[0].field == "start"
    # other parameters are the same kind of state
    fast = {**SCALED, "learner": {"type": "perceptron", "learning_rate": 9.0}}
    await one.create("fast", start={"model": "m"}, **fast)
    assert live(await one.read("fast")) == live(await one.read("m"))
    await one.lifecycle.delete("fast")
    assert db.hlen(StreamKeys("m").checkpoints) == 0
    assert set(db.hkeys("hinged:models")) == {"m"}


async def test_a_worker_slower_than_the_trims_of_others_is_not_set_aside(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with worker(redis_url, retention_bytes=0) as busy, worker(redis_url) as one:
        await busy.create("m", **SCALED)
        await one.read("m")
        numbers = itertools.count(1)

        async def trim() -> None:
            await busy.learn("m", event(next(numbers)), event(next(numbers)))
            await busy.save("m")

        load = snapshots.load_replica

        async def slow_load(*args: Any) -> Any:
            found = await load(*args)
            await trim()
            return found

        monkeypatch.setattr(catch_up, "load_replica", slow_load)
        await trim()
        await trim()
        assert live(await one.read("m")) == live(await busy.read("m"))


async def test_copies_of_a_model_whose_log_is_trimmed_all_the_time(redis_url: str) -> None:
    """Between the checkpoint and the registration a trim may pass: it is tried again."""
    async with worker(redis_url, retention_bytes=0) as busy, worker(redis_url) as one:
        await busy.create("m", **SCALED)
        done = False

        async def keep_trimming() -> None:
            number = 0
            while not done:
                number += 1
                await busy.learn("m", event(number))
                await busy.save("m")

        trimming = asyncio.ensure_future(keep_trimming())
        try:
            for number in range(15):
                await one.create(f"copy{number}", start={"model": "m"}, **SCALED)
                await one.lifecycle.delete(f"copy{number}")
        finally:
            done = True
            await trimming
        assert await (await one.read("m")).checkpoints.listed() == []
