"""An upgrade hands a model over to another version: no worker of the wrong one folds across it.

One file: a list of what may happen around one upgrade, each to be read by itself.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
import redis

from hinged_service.errors import Conflict, ServiceError, SetAside, Unavailable
from hinged_service.store import upgrades
from hinged_service.store.keys import StreamKeys
from hinged_service.store.scripts import load
from tests.engine.upgrade.versions import NEW, OLD, Plain, Versioned
from tests.support.engine import event, everything, stored_position, stored_state, until
from tests.support.plain_fold import model_uid
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer

pytestmark = pytest.mark.usefixtures("versions")


@contextlib.asynccontextmanager
async def workers(url: str, *kinds: str, **changes: Any) -> AsyncIterator[list[Versioned]]:
    """Give a worker of each version and kill all of them in the end."""
    made = [Versioned(kind, url, **changes) for kind in kinds]
    try:
        yield made
    finally:
        for one in made:
            await one.kill()


class Killed(Exception):
    """A worker that is no more."""


async def _learn(one: Versioned, first: int, last: int, name: str = "m") -> None:
    for n in range(first, last):
        await one.learn(name, event(n))


async def _all_agree(client: redis.Redis, ones: list[Versioned], events: int, name: str) -> Plain:
    """Check what the workers of the version in charge hold, live, stored and loaded."""
    plain = Plain(client, name, OLD)
    assert plain.counted == [f"e{n}" for n in range(events)]
    for one in ones:
        assert await one.state(name) == plain.state()
    await ones[0].save(name)
    assert stored_state(client, uid=model_uid(client, name)) == plain.state()
    return plain


async def test_a_model_is_handed_over_from_its_snapshot_on(redis_url: str, db: redis.Redis) -> None:
    async with workers(redis_url, OLD, NEW, NEW) as (old, new, third):
        await old.create("m")
        await _learn(old, 0, 20)
        await old.save("m")
        await _learn(old, 20, 30)
        with pytest.raises(SetAside, match=f"{OLD}.*{NEW}.*hinged upgrade"):
            await new.read("m")
        position = stored_position(db)
        before = Plain(db, "m", OLD, [position])
        assert await old.state("m") == before.state()
        done = await new.upgrade("m")
        assert (done.position.id, done.fold, done.before) == (position, NEW, OLD)
        await _learn(new, 30, 40)
        plain = await _all_agree(db, [new, third], 40, "m")
        assert plain.upgrades == 1
        assert plain.state(position) == before.state(position)
        assert plain.state() != before.state()


async def test_workers_of_the_version_before_write_nothing_any_more(
    redis_url: str, db: redis.Redis
) -> None:
    async with workers(redis_url, *[OLD] * 5, NEW) as (*olds, new):
        await olds[0].create("m")
        await _learn(olds[0], 0, 20)
        replicas = [await old.read("m") for old in olds]
        await new.upgrade("m")
        await _learn(new, 20, 25)
        before = everything(db)
        learning, saving, reading, commanding, sweeping = olds
        with pytest.raises(SetAside, match=NEW):
            await learning.learn("m", event(30))
        await saving.do(lambda _: replicas[1].save())
        await until(lambda: replicas[1].status.ended)
        with pytest.raises(SetAside, match=NEW):
            await reading.read("m")
        with pytest.raises(SetAside, match=NEW):
            await commanding.do(lambda _: replicas[3].commands.append({"do": "freeze"}))
        await sweeping.do(lambda one: one.housekeeping.sweep())
        assert everything(db) == before
        await _all_agree(db, [new], 25, "m")


async def test_a_model_that_was_never_saved_is_of_the_version_that_made_it(
    redis_url: str, db: redis.Redis
) -> None:
    async with workers(redis_url, OLD, NEW) as (old, new):
        await old.create("m")
        await _learn(old, 0, 5)
        with pytest.raises(SetAside):
            await new.learn("m", event(5))
        await new.upgrade("m")
        await _learn(new, 5, 10)
        with pytest.raises(SetAside):
            await old.read("m")
        await _all_agree(db, [new], 10, "m")


async def test_an_upgrade_again_changes_nothing(redis_url: str, db: redis.Redis) -> None:
    async with workers(redis_url, OLD, NEW, NEW) as (old, new, third):
        await old.create("m")
        await _learn(old, 0, 5)
        await old.save("m")
        done = await old.upgrade("m")
        assert (done.fold, done.before) == (OLD, OLD)
        ends = await asyncio.gather(new.upgrade("m"), third.upgrade("m"), new.upgrade("m"))
        assert {end.fold for end in ends} == {NEW}
        assert sorted(end.before for end in ends) == [OLD, NEW, NEW]
        before = everything(db)
        assert (await new.upgrade("m")).before == NEW
        assert everything(db) == before
        assert (await _all_agree(db, [new, third], 5, "m")).upgrades == 1


async def test_a_lost_answer_to_an_upgrade_is_asked_for_again(
    redis_url: str, proxy: Proxy, db: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker killed right after it: either all of it is there or nothing."""
    upgrade = upgrades.upgrade

    async def lossy(*given: Any) -> Any:
        proxy.drop_replies = 1
        return await upgrade(*given)

    async with workers(redis_url, OLD, NEW) as (old, other), workers(proxy.url, NEW) as (new,):
        db.script_load(load("upgrade").source)  # else the answer lost is that it is not there
        await old.create("m")
        await _learn(old, 0, 5)
        await old.save("m")
        await _learn(old, 5, 10)
        with monkeypatch.context() as patch:
            patch.setattr(upgrades, "upgrade", lossy)
            with pytest.raises(Unavailable):
                await new.upgrade("m")
        await _learn(other, 10, 15)
        assert (await new.upgrade("m")).before == NEW
        assert (await _all_agree(db, [new, other], 15, "m")).upgrades == 1
    assert proxy.dropped == 1


async def test_a_worker_that_dies_before_it_handed_over_leaves_all_as_it_was(
    redis_url: str, db: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def die(*_: Any) -> Any:
        raise Killed

    async with workers(redis_url, OLD, NEW) as (old, new):
        await old.create("m")
        await _learn(old, 0, 5)
        await old.save("m")
        before = everything(db)
        monkeypatch.setattr(upgrades, "upgrade", die)
        with pytest.raises(Killed):
            await new.upgrade("m")
        assert everything(db) == before
        await _learn(old, 5, 10)
        assert (await _all_agree(db, [old], 10, "m")).upgrades == 0


async def test_a_snapshot_that_moves_meanwhile_is_read_again_and_held_still(
    redis_url: str, db: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    upgrade = upgrades.upgrade
    became: list[str] = []

    async with workers(redis_url, OLD, NEW) as (old, new):

        async def late(*given: Any) -> Any:
            await old.learn("m", event(10 + len(became)))
            await old.save("m")
            became.append(await upgrade(*given))
            return became[-1]

        await old.create("m")
        await _learn(old, 0, 10)
        await old.save("m")
        monkeypatch.setattr(upgrades, "upgrade", late)
        await new.upgrade("m")
        assert became == ["moved", "ok"], "the second time it is held still"
        await _all_agree(db, [new], 12, "m")


async def test_back_and_forth_with_replicas_that_slept_through_it(
    redis_url: str, db: redis.Redis
) -> None:
    """Each wakes up when its own version is in charge again, with a state of another line."""
    async with workers(redis_url, OLD, NEW, OLD, NEW) as (old, new, sleepy_old, sleepy_new):
        await old.create("m")
        await _learn(old, 0, 10)
        await old.save("m")
        await _learn(old, 10, 12)
        slept = await sleepy_old.read("m")
        await new.upgrade("m")
        await _learn(new, 12, 20)
        await sleepy_new.read("m")
        await new.save("m")
        await _learn(new, 20, 22)
        back = Versioned(OLD, redis_url)
        await back.upgrade("m")
        await _learn(back, 22, 30)
        await sleepy_old.do(lambda _: slept.save())
        await _learn(sleepy_old, 30, 32)
        plain = await _all_agree(db, [back, sleepy_old], 32, "m")
        assert plain.upgrades == 2
        forth = Versioned(NEW, redis_url)
        await forth.upgrade("m")
        await _learn(sleepy_new, 32, 40)
        plain = await _all_agree(db, [forth, sleepy_new], 40, "m")
        assert plain.upgrades == 3
        await back.kill()
        await forth.kill()


async def test_a_failover_that_loses_an_upgrade_which_is_then_made_again(
    own_server: RedisServer,
) -> None:
    """Workers of the new version that folded past the lost one do not go on with its state."""
    async with workers(own_server.url, OLD, NEW, NEW) as (old, new, third):
        await old.create("m")
        await _learn(old, 0, 10)
        await old.save("m")
        await _learn(old, 10, 15)
        copy = own_server.directory.parent / "copy"
        own_server.copy_data(copy)
        await new.upgrade("m")
        await _learn(new, 15, 20)
        await third.read("m")
        own_server.set_back(copy)
        again = Versioned(OLD, own_server.url)
        await _patiently(again, 15)
        await again.save("m")
        fourth = Versioned(NEW, own_server.url)
        await fourth.upgrade("m")
        await _learn(fourth, 16, 20)
        with own_server.client() as client:
            assert (await _all_agree(client, [fourth, third, new], 20, "m")).upgrades == 1
        await again.kill()
        await fourth.kill()


async def _patiently(one: Versioned, number: int) -> None:
    while True:
        try:
            await one.learn("m", event(number))
        except ServiceError:
            await asyncio.sleep(0.05)
        else:
            return


async def test_nothing_is_saved_between_the_snapshot_and_the_upgrade(
    redis_url: str, db: redis.Redis
) -> None:
    """The entry tells which snapshot was handed over: until it is passed, that one stays."""
    async with (
        workers(redis_url, OLD) as (old,),
        workers(redis_url, NEW, NEW, reply_bytes=1024, snapshot_every_events=1) as (new, third),
    ):
        await old.create("m")
        await _learn(old, 0, 10)
        await old.save("m")
        await _learn(old, 10, 60)
        handed = stored_position(db)
        await new.upgrade("m")
        assert stored_position(db) == handed
        await new.read("m")
        await new.save("m")
        assert stored_position(db) != handed
        await _all_agree(db, [new, third], 60, "m")


async def test_each_model_of_a_stream_is_handed_over_by_itself(
    redis_url: str, shared_server: RedisServer
) -> None:
    async with workers(redis_url, OLD, NEW, retention_bytes=0) as (old, new):
        await old.create("m")
        await _learn(old, 0, 5)
        await old.create("copy", start={"model": "m"})
        await old.create("challenger", stream="m", start="now")
        for name in ("m", "copy", "challenger"):
            await old.save(name)
        await new.upgrade("copy")
        await _learn(old, 5, 10)
        await new.learn("copy", event(10))
        await old.save("m")
        await old.save("challenger")
        with pytest.raises(SetAside):
            await new.learn("challenger", event(11))
        with pytest.raises(SetAside):
            await old.learn("copy", event(11))
        await new.upgrade("challenger")
        await new.save("challenger")
        await new.save("copy")
        counts = [(await new.state(name))["events"] for name in ("copy", "challenger")]
        assert counts == [11, 6]
        assert (await old.state("m"))["events"] == 11


async def test_the_log_is_kept_for_a_model_that_waits_to_be_handed_over(
    redis_url: str, db: redis.Redis
) -> None:
    async with workers(redis_url, OLD, NEW, retention_bytes=0) as (old, new):
        await old.create("m")
        await _learn(old, 0, 5)
        await old.save("m")
        await new.create("other", stream="m")
        await _learn(new, 5, 20, "other")
        await new.save("other")
        handed = stored_position(db)
        assert db.xrange("hinged:{m}:log", handed, handed)
        await new.upgrade("m")
        await _learn(new, 20, 25, "other")
        await new.save("other")
        assert db.xrange("hinged:{m}:log", handed, handed)
        assert (await new.state("m"))["events"] == 25


async def test_a_frozen_model_and_checkpoints_outlive_an_upgrade(
    redis_url: str, shared_server: RedisServer
) -> None:
    async with workers(redis_url, OLD, NEW, NEW) as (old, new, third):
        await old.create("m")
        await _learn(old, 0, 10)
        made = await (await old.read("m")).checkpoints.make("before")
        kept = await old.state("m")
        await _learn(old, 10, 15)
        await (await old.read("m")).commands.append({"do": "freeze"})
        await new.upgrade("m")
        live_model = await new.read("m")
        assert live_model.state.frozen
        await new.do(lambda _: live_model.commands.restore(made))
        assert await new.state("m") == await third.state("m") == kept
        assert not live_model.state.frozen
        await new.create("from", start={"model": "m", "checkpoint": "before"})
        assert (await new.state("from"))["events"] == 15


async def test_a_damaged_snapshot_behind_an_upgrade_is_not_guessed_but_folded_again_when_told(
    redis_url: str, db: redis.Redis
) -> None:
    async with workers(redis_url, OLD, NEW, NEW) as (old, new, live):
        await old.create("m")
        await _learn(old, 0, 10)
        await old.save("m")
        await new.upgrade("m")
        await _learn(new, 10, 20)
        await new.save("m")
        await live.read("m")
        keys = StreamKeys("m").model(model_uid(db, "m"))
        db.hset(keys.vector("weights"), "a", "nan")
        later, last = Versioned(NEW, redis_url), Versioned(NEW, redis_url)
        with pytest.raises(SetAside, match=r"damaged.*hinged upgrade"):
            await later.read("m")
        await later.upgrade("m")
        await _learn(live, 20, 25)
        plain = await _all_agree(db, [later, live, new, last], 25, "m")
        assert plain.upgrades == 2
        assert (await later.upgrade("m")).before == NEW
        await later.kill()
        await last.kill()


@pytest.mark.parametrize("retention_bytes", [10**6, 0])
async def test_a_state_that_cannot_be_read_is_folded_again_if_the_log_reaches_back(
    redis_url: str, db: redis.Redis, retention_bytes: int
) -> None:
    async with workers(redis_url, OLD, NEW, retention_bytes=retention_bytes) as (old, new):
        await old.create("m")
        await _learn(old, 0, 10)
        await old.save("m")
        keys = StreamKeys("m").model(model_uid(db, "m"))
        db.hset(keys.state, "scalars", "what an old version wrote")
        before = everything(db)
        if retention_bytes:
            await new.upgrade("m")
            await _learn(new, 10, 15)
            await _all_agree(db, [new], 15, "m")
        else:
            with pytest.raises(Conflict, match="does not reach back"):
                await new.upgrade("m")
            assert everything(db) == before


async def test_an_upgrade_that_the_log_does_not_hold_is_not_taken_on_trust(
    redis_url: str, db: redis.Redis
) -> None:
    async with workers(redis_url, OLD, NEW) as (old, new):
        await old.create("m")
        await _learn(old, 0, 5)
        await old.save("m")
        await new.upgrade("m")
        field = f"barrier:{model_uid(db, 'm')}"
        position = stored_position(db)
        db.hset("hinged:{m}:meta", field, f"9999999999999-0 {position}")
        third = Versioned(NEW, redis_url)
        with pytest.raises(SetAside, match="lost an upgrade"):
            await third.read("m")
        await third.kill()


async def test_of_a_deleted_model_nothing_is_left(redis_url: str, db: redis.Redis) -> None:
    async with workers(redis_url, OLD, NEW) as (old, new):
        await old.create("m")
        await old.create("other", stream="m")
        await new.upgrade("other")
        uid = model_uid(db, "other")
        await new.do(lambda one: one.lifecycle.delete("other"))
        fields: Any = db.hkeys("hinged:{m}:meta")
        assert not [field for field in fields if uid in field]
