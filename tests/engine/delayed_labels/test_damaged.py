"""Damaged predictions that wait: named by their id at every door, and nothing else is held up."""

import json
from typing import Any

import pytest
import redis

from hinged_service.store.keys import StreamKeys
from tests.engine.delayed_labels.conftest import NewFace
from tests.engine.delayed_labels.support import Face, agrees_with_its_log, faults
from tests.support.processes import wait_until

X = {"f": 1.0}
DAMAGE = [
    b"",
    b"\xff\xfe",
    b"junk",
    b"\x94\xaeshort",
    b"\x94\xae01234567890123\xa1{\x01\x90",  # features that are no JSON
    b"\x94\xae01234567890123\xa2{}\x01\x92\xa1u\xa1{",  # a label that is none
]


def _spoil(db: redis.Redis, face: Face, name: str, value: bytes) -> None:
    slots = [key for key in StreamKeys(face.name).pending if db.hexists(key, name)]
    assert len(slots) == 1
    db.hset(slots[0], name, value)


@pytest.mark.parametrize("value", DAMAGE)
def test_a_label_is_refused_by_its_id_and_the_rest_goes_on(
    new: NewFace, db: redis.Redis, value: bytes
) -> None:
    face = new()
    for name in "abc":
        assert face.predict({"id": name, "x": X})[0] == 200
    _spoil(db, face, "a", value)
    assert faults(face.learn({"id": "a", "y": True})) == (409, ["id"])
    assert faults(face.learn({"id": "b", "y": True}, {"id": "a", "y": True})) == (409, ["[1].id"])
    assert face.learn({"id": "b", "y": True})[0] == 200
    inbox = StreamKeys(face.name)
    for name in "ac":
        db.xadd(inbox.inbox, {"event": json.dumps({"id": name, "y": True})})
    wait_until(lambda: face.counts("joined") == (2,))
    letters: Any = db.xrange(inbox.dead)
    assert [fields["reason"] for _, fields in letters] == ["id names a prediction that is damaged"]
    # With its features the event counts; it is joined to nothing.
    assert face.damaged() == ["prediction a"]
    assert face.learn({"id": "a", "x": X, "y": True})[0] == 200
    assert face.damaged() == []
    assert face.counts("predicted", "waiting", "joined") == (3, 0, 2)
    agrees_with_its_log(db, face)


@pytest.mark.parametrize("value", DAMAGE)
def test_a_new_prediction_takes_the_place_of_a_damaged_one(
    new: NewFace, db: redis.Redis, value: bytes
) -> None:
    face = new()
    assert face.predict({"id": "a", "x": X})[0] == 200
    _spoil(db, face, "a", value)
    assert face.learn({"id": "a", "y": True})[0] == 409
    assert face.damaged() == ["prediction a"]
    assert face.predict({"id": "a", "x": X})[0] == 200
    assert face.damaged() == []
    assert face.learn({"id": "a", "y": True})[0] == 200
    assert face.counts("predicted", "waiting", "joined") == (1, 0, 1)
    agrees_with_its_log(db, face)


@pytest.mark.parametrize("value", [b"E" + b"0" * 14, b"E" + b"0" * 14 + b"{", b"E"])
def test_a_damaged_early_label_gives_way_to_the_prediction(
    new: NewFace, db: redis.Redis, value: bytes
) -> None:
    face = new(early=True)
    assert face.learn({"id": "a", "y": True})[0] == 200
    _spoil(db, face, "a", value)
    assert face.predict({"id": "a", "x": X})[0] == 200
    assert face.learn({"id": "a", "y": True})[0] == 200
    agrees_with_its_log(db, face)


@pytest.mark.parametrize("value", DAMAGE)
def test_a_damaged_one_expires_and_the_others_get_the_default_label(
    new: NewFace, db: redis.Redis, value: bytes
) -> None:
    face = new(wait_s=1, default_label=False)
    for name in "abc":
        assert face.predict({"id": name, "x": X})[0] == 200
    _spoil(db, face, "b", value)
    wait_until(lambda: face.counts("defaulted", "expired") == (2, 1))
    agrees_with_its_log(db, face)


def test_a_repair_removes_damaged_predictions(new: NewFace, db: redis.Redis) -> None:
    face = new()
    for name in "abc":
        assert face.predict({"id": name, "x": X})[0] == 200
    for name in "ab":
        _spoil(db, face, name, b"junk")
        assert face.learn({"id": name, "y": True})[0] == 409
    assert face.damaged() == ["prediction a", "prediction b"]
    assert sorted(face.repair()["records"]) == ["prediction a", "prediction b"]
    assert (face.damaged(), face.repair()["records"]) == ([], [])
    assert face.counts("waiting", "expired") == (1, 2)
    assert faults(face.learn({"id": "a", "y": True}))[0] == 404
    assert face.learn({"id": "c", "y": True})[0] == 200
    assert face.counts("waiting", "joined") == (0, 1)
    agrees_with_its_log(db, face)
