"""A worker loads a stored snapshot whole and of one moment, or refuses it and folds the log."""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
import redis

from hinged_service.errors import Conflict, NotFound, SetAside
from hinged_service.store import followers, snapshot_writer
from hinged_service.store.keys import StreamKeys
from hinged_service.wire import codec
from hinged_service.wire.progress import Progress
from tests.support.engine import (
    Worker,
    event,
    fold_of,
    stored_position,
    stored_state,
    until,
    worker,
)
from tests.support.plain_fold import model_uid
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer


async def _grow(one: Worker, names: int) -> None:
    await one.create("m")
    await one.learn("m", {"x": {f"w{i}": 1.0 for i in range(names)}, "y": True})
    await one.save("m")


async def test_a_cold_worker_loads_a_model_that_is_saved_all_the_time(
    redis_url: str, proxy: Proxy, db: redis.Redis
) -> None:
    """Reading takes far longer than from one snapshot to the next."""
    proxy.delay_s = 0.005

    async with (
        worker(redis_url) as busy,
        worker(proxy.url, snapshot_chunk=10, hold_ms=3_000) as cold,
    ):
        await _grow(busy, 1_000)
        opening = asyncio.ensure_future(cold.open("m"))
        number, positions = 0, set()
        while not opening.done():
            number += 1
            await busy.learn("m", event(number))
            await busy.save("m")
            positions.add(stored_position(db))
            await asyncio.sleep(0.002)
        await opening
        assert len(positions) > 5, "the model was being saved"
        assert await cold.state("m") == await busy.state("m") == fold_of(db)


async def test_a_hold_is_shared_bounded_and_cannot_keep_snapshots_away(
    redis_url: str, shared_server: RedisServer
) -> None:
    """A reader asks for a hold all the time; still a snapshot is stored in every period."""
    hold = followers._HOLD

    async with worker(redis_url) as one:
        await _grow(one, 10)
        keys = (await one.open("m")).keys
        held: Any = [keys.on.meta, keys.on.followers]
        with shared_server.client() as client:
            await one.connection.run(hold, held, keys.uid, 5_000)
            first = client.hget(keys.on.meta, f"hold:{keys.uid}")
            await one.connection.run(hold, held, keys.uid, 50_000)
            assert client.hget(keys.on.meta, f"hold:{keys.uid}") == first, "never renewed"
            client.hdel(keys.on.meta, f"hold:{keys.uid}")

            positions, number = {stored_position(client)}, 0
            end_s = time.monotonic() + 1
            while time.monotonic() < end_s:
                await one.connection.run(hold, held, keys.uid, 100)
                number += 1
                await one.learn("m", event(number))
                await one.save("m")
                positions.add(stored_position(client))
                await asyncio.sleep(0.005)
            assert 4 <= len(positions) <= 11
            await asyncio.sleep(0.1)
            await one.save_for_sure("m")
            assert stored_state(client) == fold_of(client)
            assert not client.hexists(keys.on.meta, f"hold:{keys.uid}")


async def test_a_snapshot_that_is_held_stays_as_it_is(
    redis_url: str, shared_server: RedisServer
) -> None:
    async with worker(redis_url) as one:
        await _grow(one, 10)
        live_model = await one.open("m")
        keys = live_model.keys
        await one.learn("m", event(1))
        with shared_server.client() as client:
            before = stored_state(client)
            await one.connection.run(
                followers._HOLD, [keys.on.meta, keys.on.followers], keys.uid, 50_000
            )
            changes = live_model.replica.take_snapshot(followers.Retention(None, 0), full=False)
            base = live_model.replica.base
            assert (
                await snapshot_writer.save_changes(one.connection, keys, changes, base)
            ).became == "later"
            whole = live_model.replica.take_snapshot(followers.Retention(None, 2**30), full=True)
            assert (
                await snapshot_writer.save_full(one.connection, keys, whole, 5)
            ).became == "later"
            assert stored_state(client) == before
            # a hold set by a clock that has gone back since is none
            far_ms = int(time.time() * 1000) + 10**7
            hold = f"{stored_position(client)} {far_ms}"
            client.hset(keys.on.meta, f"hold:{keys.uid}", hold)
            assert (await snapshot_writer.save_full(one.connection, keys, whole, 5)).became == "ok"
            assert stored_state(client) == fold_of(client)


Damage = Callable[[redis.Redis, str, str, str], object]

DAMAGES: dict[str, Damage] = {
    "counters changed": lambda c, state, w, f: c.hset(
        state, "scalars", str(c.hget(state, "scalars")).replace('"events": 10', '"events": 11')
    ),
    "no digest": lambda c, state, w, f: c.hdel(state, "digest"),
    "a field more": lambda c, state, w, f: c.hset(state, "more", "1"),
    "state of another type": lambda c, state, w, f: (c.delete(state), c.set(state, "x")),
    "state not UTF-8": lambda c, state, w, f: c.hset(state, "scalars", b"\xff\xfe"),
    "state lost": lambda c, state, w, f: c.delete(state),
    "weight no number": lambda c, state, w, f: c.hset(w, "a", "__import__('os')"),
    "weight infinite": lambda c, state, w, f: c.hset(w, "a", "inf"),
    "weight NaN": lambda c, state, w, f: c.hset(w, "a", "nan"),
    "weight not UTF-8": lambda c, state, w, f: c.hset(w, b"\xff", "1.0"),
    "weight too many": lambda c, state, w, f: c.hset(w, "one more", "1.0"),
    "weight too few": lambda c, state, w, f: c.hdel(w, "a"),
    "weights lost": lambda c, state, w, f: c.delete(w),
    "weights of another type": lambda c, state, w, f: (c.delete(w), c.set(w, "x")),
    "name behind the marker": lambda c, state, w, f: (c.hdel(w, "a"), c.hset(w, "\0json:{", "1")),
    "position no position": lambda c, state, w, f: c.hset(f, _uid(state), "garbage"),
    "position empty": lambda c, state, w, f: c.hset(f, _uid(state), ""),
    "position half": lambda c, state, w, f: c.hset(f, _uid(state), "12-x abc"),
    "position of the past": lambda c, state, w, f: c.hset(f, _uid(state), f"1-1 {'0' * 40}"),
    "state of another position": lambda c, state, w, f: _move(c, state),
    "learner of another kind": lambda c, state, w, f: _rewrite(
        c, state, "scalars", lambda s: s["learner"].update(type="Other")
    ),
    "counter no number": lambda c, state, w, f: _rewrite(
        c, state, "scalars", lambda s: s["learner"]["scalars"].update(events="9")
    ),
    "counter negative": lambda c, state, w, f: _rewrite(
        c, state, "scalars", lambda s: s["learner"]["scalars"].update(events=-1)
    ),
    "rejected no number": lambda c, state, w, f: _rewrite(
        c, state, "scalars", lambda s: s["counts"].update(rejected=None)
    ),
    "sizes no object": lambda c, state, w, f: _signed(c, state, sizes="[1]"),
    "scalars no object": lambda c, state, w, f: _signed(c, state, scalars="3"),
    "marks no pairs": lambda c, state, w, f: _signed(c, state, marks="[1]"),
    "marks no ids": lambda c, state, w, f: _signed(c, state, marks='[["x", 1, 1]]'),
    "marks of no bytes": lambda c, state, w, f: _signed(c, state, marks='[["1-0", null, 1]]'),
    "no learner": lambda c, state, w, f: _signed(c, state, scalars="{}"),
    "learner no object": lambda c, state, w, f: _signed(c, state, scalars='{"learner": []}'),
}


def _uid(state: str) -> str:
    return state.split(":")[-2]


def _signed(client: redis.Redis, state: str, **fields: str) -> None:
    """Change fields and put the digest right, as a buggy or hostile writer would."""
    found: Any = client.hgetall(state)
    rest = {k: v for k, v in (found | fields).items() if k != "digest"}
    client.hset(state, mapping=rest | {"digest": codec._digest(rest)})


def _rewrite(
    client: redis.Redis, state: str, field: str, change: Callable[[dict[str, Any]], object]
) -> None:
    value = json.loads(str(client.hget(state, field)))
    change(value)
    _signed(client, state, **{field: json.dumps(value)})


def _move(client: redis.Redis, state: str) -> None:
    _signed(client, state, position="5-5")


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_snapshot_is_refused_and_made_again_from_the_log(
    redis_url: str, db: redis.Redis, damage: str
) -> None:
    async with worker(redis_url) as before:
        await before.create("m")
        await before.create("neighbour", stream="m")
        for n in range(10):
            await before.learn("m", event(n))
        await before.save("m")
    uid = model_uid(db, "m")
    keys = StreamKeys("m").model(uid)
    DAMAGES[damage](db, keys.state, keys.vector("weights"), keys.on.followers)
    async with worker(redis_url) as after:
        assert await after.state("m") == fold_of(db)
        learned = await after.learn("m", event(10))
        assert learned.outcomes[0] is not None
        await after.save_for_sure("neighbour")
        await after.save_for_sure("m")
        assert stored_state(db) == fold_of(db)
        neighbour = model_uid(db, "neighbour")
        assert stored_state(db, "m", neighbour) == fold_of(db)
    async with worker(redis_url) as later:
        assert not (await later.open("m")).replica.needs_full, "it is sound again"
        assert await later.state("m") == fold_of(db)


async def test_a_damaged_snapshot_is_replaced_without_waiting_for_an_event(
    redis_url: str, db: redis.Redis
) -> None:
    """Another follower may trim the log meanwhile: what could be rebuilt must be saved soon."""
    async with worker(redis_url) as before:
        await before.create("m")
        for n in range(10):
            await before.learn("m", event(n))
        await before.save("m")
    keys = StreamKeys("m").model(model_uid(db, "m"))
    db.hset(keys.vector("weights"), "a", "nan")
    position = stored_position(db)
    async with worker(redis_url, housekeeping_ms=10) as after:
        after.housekeeping.start()
        await after.open("m")
        await until(lambda: db.hget(keys.vector("weights"), "a") != "nan")
        assert stored_position(db) == position
        assert stored_state(db) == fold_of(db)
    async with worker(redis_url) as later:
        assert not (await later.open("m")).replica.needs_full


@pytest.mark.parametrize("damage", ["state lost", "weight NaN", "position no position"])
async def test_a_damaged_snapshot_whose_log_is_gone_sets_that_model_aside(
    redis_url: str, db: redis.Redis, damage: str
) -> None:
    async with worker(redis_url, retention_bytes=0) as one:
        await one.create("m")
        await one.create("other")
        for n in range(5):
            await one.learn("m", event(n))
        await one.save("m")
        await one.learn("m", event(5))
    keys = StreamKeys("m").model(model_uid(db, "m"))
    DAMAGES[damage](db, keys.state, keys.vector("weights"), keys.on.followers)
    async with worker(redis_url) as after:
        for _ in range(2):
            with pytest.raises(SetAside) as caught:
                await after.learn("m", event(6))
            assert caught.value.status == 503
            assert caught.value.retry_after_s is not None
        assert (await after.learn("other", event(1))).outcomes[0] is not None
        await after.lifecycle.delete("m")
        await after.create("m")
        assert (await after.learn("m", event(1))).outcomes[0] is not None
        assert (await after.state("m"))["events"] == 1


@pytest.mark.parametrize("damage", ["state lost", "weight NaN", "position no position"])
async def test_a_model_whose_snapshot_and_log_are_gone_goes_on_from_a_checkpoint(
    redis_url: str, db: redis.Redis, damage: str
) -> None:
    async with worker(redis_url, retention_bytes=0) as one:
        await one.create("m")
        for n in range(5):
            await one.learn("m", event(n))
        await (await one.open("m")).checkpoints.make("kept")
        kept = await one.state("m")
        with pytest.raises(Conflict):  # there is nothing to repair
            await one.lifecycle.repair("m", "kept")
        await one.learn("m", event(5))
        await one.save("m")
        await one.learn("m", event(6))
    keys = StreamKeys("m").model(model_uid(db, "m"))
    DAMAGES[damage](db, keys.state, keys.vector("weights"), keys.on.followers)
    async with worker(redis_url) as after, worker(redis_url) as another:
        for each in (after, another):
            with pytest.raises(SetAside):
                await each.open("m")
        with pytest.raises(NotFound):
            await after.lifecycle.repair("m", "none")
        reports: list[Progress] = []
        await after.lifecycle.repair("m", "kept", on_progress=reports.append)
        assert await after.state("m") == kept
        assert {one.step for one in reports} == {"read", "write"}
        assert {one.total for one in reports} == {len(kept["weights"])}
        assert all(0 <= one.done <= one.total for one in reports)
        await after.learn("m", event(7))
        another.registry.try_again(keys.uid)
        assert await another.state("m") == await after.state("m")
        await another.save("m")
        async with worker(redis_url) as last:
            assert await last.state("m") == await after.state("m")


async def test_a_model_created_again_in_place_of_one_set_aside_is_served_at_once_by_all(
    one: Worker, two: Worker, db: redis.Redis
) -> None:
    await one.create("m")
    db.hset("hinged:{m}:meta", "chain", "0" * 40)
    for _ in range(3):
        with pytest.raises(SetAside):
            await two.learn("m", event(0))
    await one.lifecycle.delete("m")
    await one.create("m")
    assert (await two.learn("m", event(0))).outcomes[0] is not None


@pytest.mark.parametrize(
    "changes",
    [
        {"fold": "hinged-of-tomorrow"},
        {"fold": "hinged-of-tomorrow", "sizes": '{"weights": 1, "new": 1}'},
        {"fold": "hinged-of-tomorrow", "schema": "2", "scalars": "[]"},
    ],
)
async def test_a_model_of_another_version_is_neither_folded_nor_written(
    redis_url: str, one: Worker, db: redis.Redis, changes: dict[str, str]
) -> None:
    await one.create("m")
    await one.learn("m", event(0))
    await one.save("m")
    keys = StreamKeys("m").model(model_uid(db, "m"))
    _signed(db, keys.state, **changes)
    before = db.hgetall(keys.state)
    async with worker(redis_url) as after:
        with pytest.raises(SetAside, match="hinged-of-tomorrow"):
            await after.learn("m", event(1))
        await after.housekeeping.sweep()
    assert db.hgetall(keys.state) == before
    assert db.xlen(keys.on.log) == 2


@pytest.mark.parametrize("key", ["meta", "followers", "log", "producers"])
async def test_a_stream_whose_keys_are_of_another_type_is_set_aside_alone(
    one: Worker, db: redis.Redis, key: str
) -> None:
    await one.create("m")
    await one.create("other")
    await one.learn("m", event(0))
    name = f"hinged:{{m}}:{key}"
    db.delete(name)
    db.set(name, "x")
    for _ in range(2):
        with pytest.raises(SetAside):
            await one.learn("m", event(1))
    await one.housekeeping.sweep()
    assert (await one.learn("other", event(1))).outcomes[0] is not None


async def test_two_cold_workers_may_load_at_the_same_time(redis_url: str, db: redis.Redis) -> None:
    async with worker(redis_url) as busy, worker(redis_url) as one, worker(redis_url) as two:
        await _grow(busy, 500)
        states = await asyncio.gather(*(w.state("m") for w in (one, one, two, two)))
        assert all(state == fold_of(db) for state in states)
        await until(lambda: one.registry.live("m") is not None)
