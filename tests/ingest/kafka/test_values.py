"""Kafka values: events, flat objects, registered shapes, tombstones, poison."""

from __future__ import annotations

from typing import Any

import pytest

from hinged_service.ingest.kafka.values import Shape
from hinged_service.ingest.target import Failed
from tests.ingest.kafka.conftest import Kafka
from tests.ingest.kafka.stored import logged
from tests.support.ingest import letters, reasons

EVENT: dict[str, Any] = {"x": {"a": 1.0}, "y": True}
SCHEMA = b"\x00\x00\x00\x00\x07"


def test_poison_and_tombstones_do_not_stop_it(kafka: Kafka) -> None:
    poison = [
        b'{"id":"c"',
        b"",
        b"[1]",
        b"\xff\xfe",
        b'{"x":' * 20_000,
        b"[" * 100_000,
        b'{"x":{"a":' + b"1" * 400 + b'},"y":true}',
        b'{"x":{"a":' + b"1" * 5_000 + b'},"y":true}',
        b'{"x":{"two":"0.25"},"y":true}',
        b'{"x":{"a":1},"y":"maybe"}',
        b'{"x":{"a":1}}',
        b'{"x":{"a":NaN},"y":true}',
        b'{"x":{"a":1},"y":true,"id":9007199254740993}',
    ]
    kafka.create("t")
    for value in poison:
        kafka.put("t", [EVENT, value, None])
    brought = kafka.bring()
    assert brought.tally.learned == len(poison)
    assert brought.tally.dead == len(poison)
    assert brought.noted["tombstones"] == len(poison)
    found = letters(kafka.server)
    assert [letter["offset"] for letter in found] == [f"t/0/{3 * i + 1}" for i in range(13)]
    assert all(letter["reason"] for letter in found)
    assert found[0]["record"] == '{"id":"c"'
    assert found[0]["source"].startswith("kafka:")
    again = kafka.bring()
    assert (again.tally.records, again.noted["tombstones"]) == (0, 0)


def test_losses_are_told_by_the_exit_code(kafka: Kafka) -> None:
    kafka.create("t")
    kafka.put("t", [EVENT, b"[1]", None, EVENT])
    code, summary, stderr = kafka.ingest("--drain", redis_url=kafka.redis_url).end()
    assert (code, summary["state"], summary["bad"]) == (1, "incomplete", 1), stderr
    assert "NOT LEARNED: 1 of 3 records, MORE than --max-bad 0 allows" in stderr
    kafka.put("t", [b"[2]", None, EVENT])
    words = ("--drain", "--max-bad", "50%")
    code, summary, stderr = kafka.ingest(*words, redis_url=kafka.redis_url).end()
    assert (code, summary["state"], summary["bad"]) == (0, "done", 1), stderr
    with kafka.server.client() as client:
        client.flushall()
    missing = kafka.ingest("--drain", redis_url=kafka.redis_url, topic="none").end()
    assert missing[0] == 2
    with kafka.server.client() as client:
        assert not client.exists("hinged:models")


def test_nothing_but_tombstones_moves_the_offset(kafka: Kafka) -> None:
    kafka.create("t")
    kafka.put("t", [None, None])
    assert kafka.bring().noted["tombstones"] == 2
    assert kafka.bring().noted["tombstones"] == 0
    assert logged(kafka.server) == []


def test_flat_objects_with_fields_for_label_id_and_weight(kafka: Kafka) -> None:
    kafka.create("t")
    kafka.put(
        "t",
        [
            {"a": 0.1, "up": True, "n": "e1", "times": 2},
            b'{"a":0.30000000000000004,"up":false,"n":9007199254740993}',
            b'{"a":1,"up":false,"n":9007199254740992}',
            {"a": 5, "up": True, "n": "e1"},
            {"a": 1, "n": "e4"},
            [1],
            {"a": {"b": 1}, "up": True},
        ],
    )
    brought = kafka.bring(Shape("up", "n", "times"))
    assert brought.tally.learned == 3
    assert logged(kafka.server) == [
        {"x": {"a": 0.1}, "y": True, "w": 2, "id": "e1"},
        {"x": {"a": 0.30000000000000004}, "y": False, "id": "9007199254740993"},
        {"x": {"a": 1}, "y": False, "id": "9007199254740992"},
    ]
    assert sorted(reasons(kafka.server)) == ["t/0/3", "t/0/4", "t/0/5", "t/0/6"]
    assert reasons(kafka.server)["t/0/3"] == "id names another event already"


def test_a_flat_number_is_the_same_id_however_it_is_written(kafka: Kafka) -> None:
    kafka.create("t")
    numbers = ["123", "123.0", "1.23e2", '"123"', "9007199254740993", "123.5", "9007199254740993.0"]
    kafka.put("t", [b'{"a":1,"up":true,"n":%b}' % n.encode() for n in numbers])
    brought = kafka.bring(Shape("up", "n"))
    assert (brought.tally.learned, brought.tally.duplicates, brought.tally.dead) == (2, 3, 2)
    assert [event["id"] for event in logged(kafka.server)] == ["123", "9007199254740993"]
    by_id = reasons(kafka.server)
    assert all("field n must be text or a whole" in by_id[f"t/0/{at}"] for at in (5, 6))


def test_the_key_is_the_events_id(kafka: Kafka) -> None:
    kafka.create("t", 2)
    kafka.put("t", [EVENT, EVENT], 0, key=b"k1")
    kafka.put("t", [EVENT], 1, key=b"k1")
    kafka.put("t", [EVENT], 1)
    kafka.put("t", [EVENT], 1, key=b"\xff")
    brought = kafka.bring(Shape(id="key"))
    assert (brought.tally.learned, brought.tally.duplicates) == (1, 2)
    assert logged(kafka.server) == [EVENT | {"id": "k1"}]
    assert sorted(reasons(kafka.server)) == ["t/1/1", "t/1/2"]


def test_json_of_a_registered_schema_is_read_and_other_shapes_are_not(kafka: Kafka) -> None:
    kafka.create("t")
    kafka.put("t", [SCHEMA + b'{"a":1,"y":true}', SCHEMA + b"\x02\x08mail", b"\x00\x00"])
    brought = kafka.bring(Shape("y"))
    assert (brought.tally.learned, brought.tally.dead) == (1, 2)
    assert "schema 7 and not JSON, but Avro or Protobuf" in reasons(kafka.server)["t/0/1"]


def test_marks_and_names_that_stand_twice_in_flat_and_in_registered_values(kafka: Kafka) -> None:
    mark, flat = b"\xef\xbb\xbf", b'{"a":"z","a":1,"up":[],"up":true,"n":1,"n":2}'
    kafka.create("t")
    kafka.put("t", [mark + flat, SCHEMA + mark + flat.replace(b"2", b"3")])
    kafka.put("t", [flat.decode().encode("utf-16-be"), flat.decode().encode("utf-32-be")])
    brought = kafka.bring(Shape("up", "n"))
    assert (brought.tally.learned, brought.tally.dead) == (2, 2)
    assert [event["x"] for event in logged(kafka.server)] == [{"a": 1}, {"a": 1}]
    assert [event["id"] for event in logged(kafka.server)] == ["2", "3"]
    by_id = reasons(kafka.server)
    assert "is UTF-16" in by_id["t/0/2"]
    assert "is UTF-32" in by_id["t/0/3"]


def test_a_topic_in_avro_is_refused_and_left_alone(kafka: Kafka) -> None:
    kafka.create("t")
    kafka.put("t", [SCHEMA + b"\x02\x08mail"] * 5)
    with pytest.raises(Failed, match="t/0 cannot be read: a record is of registered schema 7"):
        kafka.bring()
    assert letters(kafka.server) == []


def test_text_features_where_the_model_takes_them(kafka: Kafka) -> None:
    kafka.create("t")
    kafka.put("t", [{"text": "win money", "spam": True}])
    pipeline = [{"type": "OneHotEncoder"}]
    brought = kafka.bring(Shape("spam"), model={"pipeline": pipeline})
    assert brought.tally.learned == 1
    assert logged(kafka.server) == [{"x": {"text": "win money"}, "y": True}]
