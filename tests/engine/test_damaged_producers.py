"""Damaged records of producers: they stop no worker, and the oldest go without being read."""

import msgspec
import pytest
import redis

from hinged_service.store.keys import StreamKeys
from tests.support.engine import Worker, event

DAMAGE = [b"", b"\xff\xfe", b"junk", msgspec.msgpack.encode([1]), msgspec.msgpack.encode({"a": 1})]


@pytest.mark.parametrize("value", DAMAGE)
async def test_a_worker_goes_on_over_its_damaged_record(
    one: Worker, two: Worker, db: redis.Redis, value: bytes
) -> None:
    keys = StreamKeys("m")
    await one.create("m")
    await one.learn("m", event(0))
    for producer in list(db.hkeys(keys.producers)):
        db.hset(keys.producers, producer, value)
    await one.learn("m", event(1))
    await (await one.open("m")).commands.append({"do": "freeze"})
    for producer in list(db.hkeys(keys.producers)):
        db.hset(keys.producers, producer, value)
    await (await one.open("m")).commands.append({"do": "unfreeze"})
    for number in range(1100):  # more than are kept
        db.hset(keys.producers, f"other{number}", value)
    await two.learn("m", event(2))
    assert (await two.read("m")).state.events == 3
    assert await one.state("m") == await two.state("m")
