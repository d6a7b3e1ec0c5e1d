"""Redis lost the index or a part of it: models are found again, or nothing is made over them."""

import json
from typing import Any

import pytest
import redis

from hinged_service.errors import Conflict, NotFound
from tests.api.test_error_replies import EVENT, SPEC
from tests.support.engine import Worker, event, fold_of, worker
from tests.support.plain_fold import model_uid
from tests.support.redis_server import RedisServer
from tests.support.running import serving

INDEX = "hinged:models"


def forget_note(db: redis.Redis, stream: str = "m") -> None:
    """Make the stream as a version without notes left it."""
    meta = f"hinged:{{{stream}}}:meta"
    fields: Any = db.hkeys(meta)
    db.hdel(meta, *(field for field in fields if field.startswith("entry:")))


@pytest.mark.parametrize("saved", [True, False])
async def test_a_creation_finds_a_lost_model_again(
    redis_url: str, db: redis.Redis, saved: bool
) -> None:
    async with worker(redis_url) as first:
        await first.create("m")
        for n in range(5):
            await first.learn("m", event(n))
        if saved:
            await first.save("m")
    uid = model_uid(db, "m")
    db.delete(INDEX)
    async with worker(redis_url) as other:
        _, new = await other.lifecycle.create("m", (await _spec(other)))
        assert not new
        assert model_uid(db, "m") == uid
        assert await other.state("m") == fold_of(db)
        assert (await other.state("m"))["events"] == 5


async def _spec(one: Worker) -> Any:
    await one.create("other")
    entry = (await one.registry.entries())["other"]
    return entry.spec.model_copy(update={"stream": None})


@pytest.mark.parametrize("call", ["learn", "predict"])
async def test_a_call_finds_a_lost_model_again(redis_url: str, db: redis.Redis, call: str) -> None:
    async with worker(redis_url) as first:
        await first.create("m")
        await first.learn("m", event(0))
    db.delete(INDEX)
    async with worker(redis_url) as other:
        if call == "learn":
            await other.learn("m", event(1))
        else:
            await other.open("m")
        assert await other.state("m") == fold_of(db)
        assert list(await other.registry.entries()) == ["m"]


async def test_other_models_of_a_stream_are_put_back_by_the_sweep(
    one: Worker, db: redis.Redis
) -> None:
    await one.create("m")
    await one.learn("m", event(0))
    await one.create("n", stream="m")
    await one.save("n")
    db.hdel(INDEX, "n")
    for _ in range(4):  # the second one used to remove it
        await one.housekeeping.sweep()
    assert list(await one.registry.entries()) == ["m", "n"]
    assert (await one.learn("n", event(1))).outcomes[0] is not None


async def test_a_name_that_was_taken_meanwhile_destroys_nothing(
    one: Worker, db: redis.Redis
) -> None:
    await one.create("m")
    await one.create("n", stream="m")
    uid = model_uid(db, "n")
    db.hdel(INDEX, "n")
    await one.create("n")
    for _ in range(4):
        await one.housekeeping.sweep()
    assert db.hexists("hinged:{m}:followers", uid)
    assert db.hget("hinged:{m}:meta", f"aside:{uid}") == "1", "the log does not wait for it"


async def test_a_model_of_a_version_without_notes_is_not_made_over(
    redis_url: str, db: redis.Redis
) -> None:
    async with worker(redis_url) as first:
        await first.create("m")
        await first.learn("m", event(0))
    forget_note(db)
    db.delete(INDEX)
    before = db.hgetall("hinged:{m}:followers")
    async with worker(redis_url) as other:
        with pytest.raises(NotFound):
            await other.open("m")
        with pytest.raises(Conflict, match="that the index does not know"):
            await other.create("m")
        assert db.hgetall("hinged:{m}:followers") == before
        assert not db.exists(INDEX)
        await other.lifecycle.delete("m")
        assert list(db.scan_iter("hinged:*")) == []
        await other.create("m")


async def test_a_creation_that_a_failover_lost_a_part_of_is_done_again(
    one: Worker, db: redis.Redis
) -> None:
    await one.create("m")  # the index is on another primary, which lost this
    lost = model_uid(db, "m")
    forget_note(db)
    db.delete(INDEX)
    db.xadd("hinged:{m}:inbox", {"event": json.dumps(event(0))})
    assert (await one.lifecycle.create("m", await _spec(one)))[1]
    uid = model_uid(db, "m")
    assert set(db.hkeys("hinged:{m}:followers")) == {lost, uid}
    for _ in range(2):
        await one.housekeeping.sweep()
    assert db.hkeys("hinged:{m}:followers") == [uid]
    assert db.xlen("hinged:{m}:inbox") == 1, "what waits there is learned"
    await one.learn("m", event(0))
    assert await one.state("m") == fold_of(db)


@pytest.mark.parametrize("held", ["a command", "a checkpoint"])
async def test_data_of_a_lost_model_are_not_passed_over(
    one: Worker, db: redis.Redis, held: str
) -> None:
    await one.create("m")
    live_model = await one.open("m")
    if held == "a command":
        await live_model.commands.append({"do": "freeze"})
    else:
        await live_model.checkpoints.make("kept")
    forget_note(db)
    db.delete(INDEX)
    with pytest.raises(Conflict, match="DELETE /v1/models/m, then create it again"):
        await one.create("m")


async def test_the_sweep_notes_models_of_older_versions(one: Worker, db: redis.Redis) -> None:
    await one.create("m")
    forget_note(db)
    await one.housekeeping.sweep()
    uid = model_uid(db, "m")
    name, text = str(db.hget("hinged:{m}:meta", f"entry:{uid}")).split(" ", 1)
    assert name == "m"
    assert json.loads(text) == json.loads(str(db.hget(INDEX, "m")))


async def test_a_lost_model_can_be_deleted(one: Worker, db: redis.Redis) -> None:
    await one.create("m")
    db.delete(INDEX)
    await one.lifecycle.delete("m")
    assert list(db.scan_iter("hinged:*")) == []
    with pytest.raises(NotFound):
        await one.lifecycle.delete("m")
    assert (await one.lifecycle.create("m", await _spec(one)))[1]


async def test_a_model_beside_others_of_its_stream_is_made_as_before(one: Worker) -> None:
    """Its stream is known to the index: nothing is lost."""
    await one.create("m")
    await one.create("n", stream="m")
    await one.lifecycle.delete("m")
    await one.create("m")
    assert list(await one.registry.entries()) == ["m", "n"]


def test_over_http(own_server: RedisServer, own_db: redis.Redis) -> None:
    with serving(own_server.url) as client:
        client.put("/v1/models/m", json=SPEC)
        client.post("/v1/models/m/learn", json=[EVENT] * 3)
        own_db.delete(INDEX)
        assert client.put("/v1/models/m", json=SPEC).status_code == 200
        assert client.get("/v1/models/m").json()["events"] == 3
    own_db.delete(INDEX)
    with serving(own_server.url) as client:
        other = {"learner": {"type": "averaged_perceptron"}}
        assert client.put("/v1/models/m", json=other).status_code == 409
        assert client.get("/v1/models/m").json()["events"] == 3
        assert client.get("/v1/models/never").status_code == 404
