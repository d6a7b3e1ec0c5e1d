"""The part of its log that a stream keeps: by its spec, and for its followers."""

import itertools
import time
from typing import Any

import httpx
import pytest
import redis

from hinged_service.errors import Conflict
from hinged_service.store.keys import StreamKeys
from tests.engine.lifecycle.plain_model import SCALED, live
from tests.support.checks import order_of
from tests.support.engine import Worker, event, stored_position, worker
from tests.support.plain_fold import model_uid
from tests.support.shared_service import NewModel

LOG = "hinged:{m}:log"


def _log(client: redis.Redis) -> tuple[list[str], int, int]:
    """Return the log's entry ids, and the events and bytes of JSON after the first of them."""
    entries: Any = client.xrange(LOG)
    payloads = [fields.get("events", "") for _, fields in entries[1:]]
    events = sum(payload.count('"id"') for payload in payloads)
    return [entry_id for entry_id, _ in entries], events, sum(map(len, payloads))


async def _teach(one: Worker, first: int, count: int, size: int = 4) -> None:
    """Learn in entries of a few events, each saved."""
    for start in range(first, first + count, size):
        await one.learn("m", *(event(n) for n in range(start, start + size)))
        await one.save("m")


@pytest.mark.parametrize(
    ("retention", "events", "size"),
    [
        ({"events": 80}, 80, None),
        ({"bytes": 8_000}, None, 8_000),
        ({"events": 80, "bytes": 10**6}, 80, None),
        ({"events": 10**6, "bytes": 8_000}, None, 8_000),
        ({"events": 0}, 0, None),
    ],
    ids=str,
)
async def test_the_log_is_trimmed_to_what_the_spec_says(
    redis_url: str, db: redis.Redis, retention: dict[str, int], events: int | None, size: int | None
) -> None:
    async with worker(redis_url, retention_bytes=10**9) as one, worker(redis_url) as two:
        await one.create("m", retention=retention)
        for turn in range(8):
            await _teach((one, two)[turn // 4], 60 * turn, 60)
            _, found, found_bytes = _log(db)
            if turn > 2 and events is not None:  # a sixteenth more between two marks
                assert events <= found <= events + events // 16 + 4
            if turn > 2 and size is not None:
                assert size <= found_bytes <= size * 17 // 16 + 600
        assert await one.state("m") == await two.state("m")


async def test_the_largest_retention_of_the_models_holds(one: Worker, db: redis.Redis) -> None:
    await one.create("m", retention={"events": 20})
    await _teach(one, 0, 200)
    assert _log(db)[1] <= 25
    await one.create("more", stream="m", retention={"events": 100})
    for start in range(200, 600, 40):
        await _teach(one, start, 40)
        await one.read("more")
        await one.save("more")
    assert 100 <= _log(db)[1] <= 112


async def test_no_trim_passes_a_follower_nor_a_model_that_replays(
    one: Worker, two: Worker, db: redis.Redis
) -> None:
    await one.create("m", retention={"events": 40})
    await one.create("slow", stream="m")
    slow = model_uid(db, "slow")
    base = stored_position(db, "m", slow)
    await _teach(one, 0, 200)
    assert _log(db)[0][0] == base
    assert _log(db)[1] == 200
    await one.read("slow")
    await one.save("slow")
    await _teach(one, 200, 40)
    assert _log(db)[0][0] == stored_position(db, "m", slow)
    # a model that learns the past again holds it until it is saved
    await two.lifecycle.replay(await two.read("slow"), "again", None, None, None)
    again = model_uid(db, "again")
    base = stored_position(db, "m", again)
    assert base == _log(db)[0][0]
    for start in range(240, 480, 40):
        await _teach(one, start, 40)
        await one.read("slow")
        await one.save("slow")
        assert _log(db)[0][0] == base
    await one.create("reference", start={"model": "again"})
    await two.read("again")
    await two.save("again")
    await one.read("reference")
    await one.save("reference")
    assert await one.state("reference") == await two.state("again")
    await _teach(one, 480, 80)
    ids = _log(db)[0]
    followers = [model_uid(db, n) for n in ("m", "slow", "again", "reference")]
    places = [stored_position(db, "m", uid) for uid in followers]
    assert min(map(order_of, places)) == order_of(ids[0])
    assert order_of(ids[0]) > order_of(base)


async def test_a_checkpoint_whose_log_is_trimmed_can_only_be_restored(
    one: Worker, two: Worker, db: redis.Redis
) -> None:
    await one.create("m", **SCALED, retention={"events": 40})
    await _teach(one, 0, 20)
    made = await (await one.read("m")).checkpoints.make("old")
    then = live(await one.read("m"))
    await _teach(one, 20, 200)
    young = await (await one.read("m")).checkpoints.make("young")
    await one.learn("m", event(400), event(401))
    assert order_of(_log(db)[0][0]) > order_of(str(made.position).partition(".")[0])
    start = {"model": "m", "checkpoint": "old"}
    with pytest.raises(Conflict, match="restored"):
        await two.create("copy", start=start, **SCALED)
    source = await two.read("m")
    with pytest.raises(Conflict, match="restored"):
        await two.lifecycle.replay(source, "copy", "old", None, None)
    assert set(db.hkeys("hinged:models")) == {"m"}
    assert db.hlen(StreamKeys("m").followers) == 1
    await two.lifecycle.replay(source, "copy", "young", None, None)
    assert live(await two.read("copy")) == live(await one.read("m"))
    await (await two.read("m")).commands.restore(made)
    for who in (one, two):
        assert live(await who.read("m")) == then
    assert live(await two.read("copy")) != then
    await (await two.read("m")).commands.restore(young)


def test_over_http_a_restore_only_checkpoint_says_so(
    client: httpx.Client, new_model: NewModel
) -> None:
    model = new_model(retention={"events": 0})
    numbers = itertools.count()

    def teach() -> None:
        x = {"a": float(next(numbers))}
        client.post(f"{model}/learn", json={"x": x, "y": True}).raise_for_status()

    teach()
    client.post(f"{model}/checkpoints", json={"name": "c"}).raise_for_status()
    weights = client.get(f"{model}/weights").json()["weights"]
    name = f"{model.rpartition('/')[2]}-again"
    for _ in range(100):
        teach()
        time.sleep(0.05)
        answer = client.post(f"{model}/replay", json={"name": name, "checkpoint": "c"})
        if answer.status_code == 409:  # a snapshot was saved, and the log trimmed
            break
        client.delete(f"/v1/models/{name}").raise_for_status()
    assert answer.status_code == 409
    assert "can be restored" in answer.json()["detail"]
    assert client.get(f"/v1/models/{name}").status_code == 404
    assert client.post(f"{model}/restore", json={"checkpoint": "c"}).status_code == 200
    assert client.get(f"{model}/weights").json()["weights"] == weights
