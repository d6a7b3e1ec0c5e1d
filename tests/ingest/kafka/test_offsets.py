"""Offsets are the model's: set back, trimmed away, created again, far apart."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hinged_service.ingest.kafka import source
from hinged_service.ingest.kafka.client import KafkaLog, Part
from hinged_service.ingest.signals import Stop
from hinged_service.ingest.target import Failed
from hinged_service.ingest.writer import Tally
from tests.ingest.kafka.broker import Broker
from tests.ingest.kafka.conftest import Kafka
from tests.ingest.kafka.reading import FAST, bring, until
from tests.ingest.kafka.stored import logged
from tests.support.engine import fold_of, stored_state
from tests.support.ingest import letters, taken
from tests.support.redis_server import RedisServer


def rows(first: int, count: int) -> list[dict[str, Any]]:
    return [{"x": {"n": float(n), "b": 1.0}, "y": n % 3 == 0} for n in range(first, first + count)]


def numbers(server: RedisServer) -> list[int]:
    return [int(event["x"]["n"]) for event in logged(server)]


def test_a_redis_set_back_makes_it_seek_back(
    broker: Broker, own_server: RedisServer, tmp_path: Path
) -> None:
    broker.create("t", 3)
    for part in range(3):
        broker.put("t", rows(1000 * part, 40), part)

    async def meanwhile(tally: Tally, _: Stop) -> None:
        await until(lambda: taken(own_server) == 120)
        own_server.copy_data(tmp_path / "copy")
        broker.put("t", rows(40, 60), 0)
        broker.put("t", rows(1040, 60), 1)
        await until(lambda: taken(own_server) == 240)
        await asyncio.to_thread(own_server.set_back, tmp_path / "copy")
        assert taken(own_server) == 120
        broker.put("t", rows(2040, 10), 2)
        broker.put("t", rows(100, 5), 0)
        broker.put("t", rows(1100, 5), 1)
        await until(lambda: taken(own_server) == 260)

    brought = bring(broker, own_server.url, meanwhile=meanwhile)
    assert brought.noted["seeks"] >= 1
    assert sorted(numbers(own_server)) == [
        *range(105), *range(1000, 1105), *range(2000, 2050)
    ]  # fmt: skip
    with own_server.client() as client:
        assert stored_state(client) == fold_of(client)


def test_redis_away_for_a_while(broker: Broker, own_server: RedisServer) -> None:
    broker.create("t", 2)

    async def meanwhile(tally: Tally, _: Stop) -> None:
        broker.put("t", rows(0, 20), 0)
        await until(lambda: taken(own_server) == 20)
        own_server.kill()
        broker.put("t", rows(20, 20), 0)
        broker.put("t", rows(1000, 20), 1)
        await asyncio.sleep(4.5)  # longer than members may say nothing
        await asyncio.to_thread(own_server.start)
        await until(lambda: taken(own_server) == 60)
        broker.put("t", rows(1020, 20), 1)
        await until(lambda: taken(own_server) == 80)

    client = FAST | {"max.poll.interval.ms": "3000"}
    brought = bring(broker, own_server.url, meanwhile=meanwhile, client=client)
    assert sorted(numbers(own_server)) == [*range(40), *range(1000, 1040)]
    assert len([line for line in brought.lines if line.startswith("Waiting")]) <= 2
    assert len([line for line in brought.lines if line.startswith("Reading")]) == 1


def test_kafka_away_for_a_while(kafka: Kafka) -> None:
    kafka.create("t")
    kafka.put("t", rows(0, 20))
    kafka.down()

    async def meanwhile(tally: Tally, _: Stop) -> None:
        await asyncio.sleep(1)
        kafka.up()
        await until(lambda: tally.learned == 20)
        kafka.down()
        await asyncio.sleep(2)
        kafka.up()
        await asyncio.to_thread(kafka.put, "t", rows(20, 20))
        await until(lambda: tally.learned == 40)

    brought = kafka.bring(meanwhile=meanwhile)
    assert numbers(kafka.server) == list(range(40))
    waiting = [line for line in brought.lines if line.startswith("Waiting for Kafka")]
    assert len(waiting) == 2


def test_records_gone_before_they_were_learned_stop_it(kafka: Kafka) -> None:
    kafka.create("t")
    kafka.put("t", rows(0, 10))
    kafka.bring()
    kafka.put("t", rows(10, 20))
    kafka.trim("t", 0, 15)
    with pytest.raises(Failed, match=r"the records 10 to 14 of t/0 are gone .* --on-gap continue"):
        kafka.bring()
    assert numbers(kafka.server) == list(range(10))
    brought = kafka.bring(over_gaps=True)
    assert brought.noted["lost"] == 5
    assert numbers(kafka.server) == [*range(10), *range(15, 30)]
    assert kafka.bring().tally.records == 0


def test_a_topic_created_again_is_another_source(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if it has as many records as the old one had."""
    monkeypatch.setattr(source, "_LOOK_EVERY_S", 1.0)
    kafka.create("t")
    kafka.put("t", rows(0, 10))

    async def meanwhile(tally: Tally, _: Stop) -> None:
        await until(lambda: tally.learned == 10)
        kafka.delete("t")
        kafka.create("t")
        kafka.put("t", rows(100, 10))
        await until(lambda: tally.learned == 20)

    kafka.bring(meanwhile=meanwhile)
    assert numbers(kafka.server) == [*range(10), *range(100, 110)]
    with kafka.server.client() as client:
        offsets: Any = client.hgetall("hinged:{m}:offsets")
    assert sorted(offsets.values()) == ["10", "10"]
    assert letters(kafka.server) == []


def test_where_it_begins_the_first_time(kafka: Kafka) -> None:
    kafka.create("t")
    kafka.put("t", rows(0, 10))
    assert kafka.bring(begin="end").tally.records == 0
    kafka.put("t", rows(10, 5))  # no reader was there, but its place is kept
    assert kafka.bring(begin="end").tally.learned == 5
    assert numbers(kafka.server) == list(range(10, 15))


def test_it_begins_at_a_time(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mock cluster knows no times, so its answer is made up here."""
    asked = []

    def at(_: KafkaLog, part: Part, time_ms: int) -> int:
        asked.append((*part, time_ms))
        return 4

    monkeypatch.setattr(KafkaLog, "at", at)
    kafka.create("t")
    kafka.put("t", rows(0, 10))
    assert kafka.bring(begin=1_000).tally.learned == 6
    assert numbers(kafka.server) == list(range(4, 10))
    assert asked == [("t", 0, 1_000)]


def test_the_groups_own_offsets_are_never_trusted(kafka: Kafka) -> None:
    import confluent_kafka as ck

    kafka.create("t")
    kafka.put("t", rows(0, 10))
    stranger = ck.Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "g"})
    stranger.commit(offsets=[ck.TopicPartition("t", 0, 7)], asynchronous=False)
    stranger.close()
    assert kafka.bring(group="g").tally.learned == 10
    assert kafka.committed("g", "t") == 10
    assert numbers(kafka.server) == list(range(10))


def test_several_topics_and_one_that_is_not_there(kafka: Kafka) -> None:
    kafka.create("t")
    kafka.create("u", 2)
    kafka.put("t", rows(0, 5))
    kafka.put("u", rows(10, 5), 1)
    assert kafka.bring(topics=("t", "u")).tally.learned == 10
    with pytest.raises(Failed, match="Kafka has no topic v"):
        kafka.bring(topics=("t", "v"))
