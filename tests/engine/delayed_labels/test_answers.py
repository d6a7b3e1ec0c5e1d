"""Answers to predictions with an id and to labels that come later."""

import time

import pytest
import redis

from tests.engine.delayed_labels.conftest import NewFace
from tests.engine.delayed_labels.support import agrees_with_its_log, faults
from tests.support.processes import wait_until

X = {"f": 1.0}


def test_a_label_is_joined_once_by_any_worker(new: NewFace, db: redis.Redis) -> None:
    face = new()
    assert face.predict({"id": "a", "x": X})[1]["y"] is False
    status, first = face.learn({"id": "a", "y": True})
    assert (status, first["mistake"], first["duplicate"]) == (200, True, False)
    for body in ({"id": "a", "y": True}, {"id": "a", "x": X, "y": True}):
        status, again = face.learn(body)
        assert (status, again.get("duplicate"), "y_pred" in again) == (200, True, False)
    assert faults(face.learn({"id": "a", "y": False})) == (409, ["id"])
    assert faults(face.learn({"id": "a", "x": {"f": 2.0}, "y": True})) == (409, ["id"])
    assert faults(face.predict({"id": "a", "x": X})) == (409, ["id"])
    assert face.counts("predicted", "waiting", "joined") == (1, 0, 1)
    assert face.counts("duplicates", "conflicts", "unknown", "late") == (1, 1, 0, 0)
    agrees_with_its_log(db, face)


def test_the_first_features_win(new: NewFace) -> None:
    face = new()
    assert face.predict({"id": "a", "x": X})[0] == 200
    assert face.predict({"id": "a", "x": {"f": 1}})[0] == 200
    assert faults(face.predict({"id": "a", "x": {"f": 2.0}})) == (409, ["id"])
    assert faults(face.learn({"id": "a", "x": {"f": 2.0}, "y": True})) == (409, ["id"])
    status, learned = face.learn({"id": "a", "x": X, "y": True})
    assert (status, learned["duplicate"]) == (200, False)
    assert face.counts("predicted", "waiting", "joined", "labelled", "served") == (1, 0, 1, 1, 1)


@pytest.mark.parametrize(
    "x",
    [
        '{ "f" :\n\t1e-3 , "g":-0 }',
        '{"f":1,"f":0.1}',
        '{"\\u0066":0.30000000000000004,"\\"\\\\":2,"é\\ud83d\\ude00":5e-324}',
        '{"f":123456789012345678901234567890,"-0":-0.0}',
    ],
)
@pytest.mark.parametrize("kind", ["one", "array", "lines"])
def test_what_is_learned_is_what_was_predicted_on_however_it_was_written(
    new: NewFace, kind: str, x: str
) -> None:
    late, whole = new(), new()
    asked, sent = f'{{"id":"a","x":{x}}}', f'{{"x":{x},"y":true}}'
    line = kind == "lines"
    sent = sent.replace("\n", " ")
    body = f"[{asked}]" if kind == "array" else asked.replace("\n", " ") if line else asked
    headers = {"content-type": "application/x-ndjson" if line else "application/json"}
    for face, call, content in ((late, "predict", body), (whole, "learn", sent)):
        path = f"/v1/models/{face.name}/{call}"
        answer = face.clients[0].post(path, content=content.encode(), headers=headers)
        assert answer.status_code == 200, answer.text
    assert late.learn({"id": "a", "y": True})[0] == 200
    weights = [
        face.clients[0].get(f"/v1/models/{face.name}/weights").json()["weights"]
        for face in (late, whole)
    ]
    assert len(weights[0]) >= 1
    assert repr(weights[0]) == repr(weights[1])


def test_a_label_of_nothing_is_unknown_and_counted(new: NewFace) -> None:
    face = new()
    assert face.predict({"id": "a", "x": X})[0] == 200
    assert faults(face.learn({"id": "b", "y": True})) == (404, ["id"])
    assert face.infos()[0]["events"] == 0
    assert face.counts("unknown", "waiting") == (1, 1)


def test_expired_is_told_from_unknown_and_labelled(new: NewFace) -> None:
    face = new(wait_s=3)
    started = time.monotonic()
    face.predict(*({"id": name, "x": X} for name in "abc"))
    face.learn({"id": "a", "y": True})
    wait_until(lambda: face.counts("expired") == (2,))
    assert time.monotonic() - started > 3.0, "it was given up too early"
    assert faults(face.learn({"id": "b", "y": True})) == (410, ["id"])
    assert faults(face.predict({"id": "b", "x": X})) == (410, ["id"])
    assert face.learn({"id": "a", "y": True})[1]["duplicate"] is True
    assert faults(face.learn({"id": "a", "y": False})) == (409, ["id"])
    assert faults(face.learn({"id": "c", "x": {"f": 2}, "y": True})) == (409, ["id"])
    assert face.learn({"id": "c", "x": X, "y": True})[1]["duplicate"] is False
    assert face.counts("waiting", "joined", "expired", "late") == (0, 1, 2, 1)


def test_a_full_ring_takes_no_more_until_a_label_comes(new: NewFace) -> None:
    face = new(max_waiting=3)
    assert face.predict(*({"id": f"a{i}", "x": X} for i in range(2)))[0] == 200
    assert face.predict(*({"id": f"b{i}", "x": X} for i in range(2)))[0] == 429
    assert face.counts("predicted", "waiting") == (2, 2)
    assert face.predict({"id": "c", "x": X})[0] == 200
    assert face.predict({"id": "d", "x": X})[0] == 429
    assert face.predict({"id": "c", "x": X})[0] == 200, "it waits already"
    assert face.learn({"id": "a0", "y": True})[0] == 200
    assert face.predict({"id": "d", "x": X})[0] == 200
    assert face.counts("predicted", "waiting") == (4, 3)


def test_arrays_are_taken_whole_or_not_at_all(new: NewFace) -> None:
    face = new()
    face.predict({"id": "a", "x": X}, {"id": "b", "x": X})
    assert faults(face.predict({"id": "n", "x": X}, {"id": "a", "x": {"f": 9}})) == (
        409,
        ["[1].id"],
    )
    assert faults(face.learn({"id": "a", "y": True}, {"x": X, "y": True}, {"id": "z", "y": True}))[
        1
    ] == ["[2].id"]
    assert face.infos()[0]["events"] == 0
    assert face.counts("predicted", "waiting", "unknown") == (2, 2, 1)
    twice = ({"id": "a", "y": True}, {"id": "a", "y": True}, {"id": "b", "y": False})
    answers = face.learn(*twice)[1]
    assert [answer.get("duplicate") for answer in answers] == [False, True, False]
    assert face.counts("waiting", "joined", "duplicates") == (0, 2, 1)


def test_as_many_ids_as_a_call_may_have(new: NewFace, db: redis.Redis) -> None:
    face = new()
    assert face.predict(*({"id": f"p{i}", "x": {"f": i}} for i in range(10_000)))[0] == 200
    assert face.counts("predicted", "waiting") == (10_000, 10_000)
    assert face.learn(*({"id": f"p{i}", "y": i % 2 == 0} for i in range(10_000)))[0] == 200
    assert face.counts("waiting", "joined") == (0, 10_000)
    agrees_with_its_log(db, face)


ODD = [
    '"',
    "\\",
    "\\u0041",
    "a\nb\t\x01\x7f",
    "\u2028",
    "/",
    "é",
    "😀\U0010ffff",
    "]]},{",
    " ",
    "\0",
]


@pytest.mark.parametrize("default", [False, True], ids=["labelled", "by default"])
def test_odd_ids_and_feature_names(new: NewFace, db: redis.Redis, default: bool) -> None:
    face = new(**({"wait_s": 1, "default_label": True} if default else {}))
    names = [*ODD, "".join(ODD) * 8]
    for name in names:
        assert face.predict({"id": name, "x": {name: 1.5, '"y': -1e100}})[0] == 200
    if default:
        wait_until(lambda: face.counts("defaulted") == (len(names),))
    else:
        for name in names:
            assert face.learn({"id": name, "y": True})[0] == 200
    for name in names:
        assert face.learn({"id": name, "y": True})[1].get("duplicate") is True
    assert face.infos()[0]["rejected"] == 0
    agrees_with_its_log(db, face)


def test_an_early_label_is_joined_to_its_prediction(new: NewFace, db: redis.Redis) -> None:
    face = new(early=True)
    assert face.learn({"id": "a", "y": True})[1]["early"] is True
    assert face.learn({"id": "a", "y": True})[1]["duplicate"] is True
    assert faults(face.learn({"id": "a", "y": False})) == (409, ["id"])
    assert face.counts("early", "duplicates", "conflicts", "predicted") == (1, 1, 1, 0)
    assert face.infos()[0]["events"] == 0
    assert face.predict({"id": "a", "x": X})[1]["y"] is False
    assert [info["events"] for info in face.infos()] == [1, 1]
    assert face.predict({"id": "b", "x": X})[0] == 200
    assert face.learn({"id": "b", "y": True})[1]["duplicate"] is False
    assert faults(face.predict({"id": "a", "x": X})) == (409, ["id"])
    assert face.learn({"id": "a", "y": True})[1]["duplicate"] is True
    assert face.counts("early", "predicted", "waiting", "joined") == (0, 2, 0, 2)
    assert face.counts("labelled", "served", "served_mistakes") == (2, 2, 1)
    agrees_with_its_log(db, face)


def test_an_event_sent_whole_takes_the_place_of_its_early_label(new: NewFace) -> None:
    face = new(early=True)
    face.learn({"id": "a", "y": True})
    assert faults(face.learn({"id": "a", "x": X, "y": False})) == (409, ["id"])
    for _ in range(2):  # by either worker
        assert face.learn({"id": "a", "x": X, "y": True})[0] == 200
    assert faults(face.predict({"id": "a", "x": X})) == (409, ["id"])
    assert face.infos()[0]["events"] == 1
    assert face.counts("early") == (0,)


def test_one_array_predicts_an_early_labels_id_with_one_set_of_features(new: NewFace) -> None:
    face = new(early=True)
    face.learn({"id": "a", "y": True})
    both = ({"id": "a", "x": X}, {"id": "a", "x": {"f": 2}})
    assert faults(face.predict(*both)) == (409, ["[1].id"])
    assert face.counts("early", "joined") == (1, 0)
    assert face.predict(both[0], both[0])[0] == 200
    assert face.counts("early", "joined", "predicted") == (0, 1, 1)


def test_early_labels_are_bounded_and_forgotten(new: NewFace, db: redis.Redis) -> None:
    face = new(early=True, wait_s=2, max_waiting=3)
    assert face.predict({"id": "p", "x": X})[0] == 200
    assert face.learn({"id": "a", "y": True}, {"id": "b", "y": True})[0] == 200
    assert face.learn({"id": "c", "y": True})[0] == 429
    assert face.predict({"id": "d", "x": X})[0] == 429
    assert face.counts("early", "waiting") == (2, 1)
    wait_until(lambda: face.counts("unclaimed", "expired") == (2, 1))
    assert faults(face.predict({"id": "a", "x": X})) == (410, ["id"])
    wait_until(lambda: not db.keys(f"hinged:{{{face.name}}}:pending:*"))
    assert face.counts("early", "waiting", "joined") == (0, 0, 0)
    assert face.predict({"id": "a", "x": X})[0] == 200


def test_ids_are_known_longer_than_events_are(db: redis.Redis, new: NewFace) -> None:
    """The window of seen ids has gone by, the ring still knows."""
    face = new()
    face.predict({"id": "a", "x": X})
    face.learn({"id": "a", "y": True})
    db.delete(*(f"hinged:{{{face.name}}}:seen:{n}" for n in (0, 1)))
    assert face.learn({"id": "a", "y": True})[1]["duplicate"] is True
    assert faults(face.learn({"id": "a", "y": False})) == (409, ["id"])
    assert faults(face.predict({"id": "a", "x": X})) == (409, ["id"])


def test_an_event_learned_whole_is_not_predicted_under_its_id(new: NewFace) -> None:
    face = new()
    face.learn({"id": "a", "x": X, "y": True})
    assert faults(face.predict({"id": "a", "x": X})) == (409, ["id"])
    assert face.learn({"id": "a", "y": True})[1]["duplicate"] is True
    assert faults(face.learn({"id": "a", "y": False})) == (409, ["id"])


def test_a_label_of_no_kind_of_the_model_is_no_default(new: NewFace) -> None:
    for rules in ({"default_label": "spam"}, {"default_label": 2}):
        with pytest.raises(AssertionError, match="default_label"):
            new(**rules)
    new({"labels": ["ham", "spam"]}, default_label="spam")


def test_two_models_of_a_stream_serve_one_prediction(new: NewFace, db: redis.Redis) -> None:
    face = new(wait_s=2, default_label=False)
    other = type(face)(f"{face.name}x", *face.clients)
    other.create({"stream": face.name, "labels": ["ham", "spam"]})
    third = type(face)(f"{face.name}y", *face.clients)
    third.create({"stream": face.name})
    assert face.predict({"id": "a", "x": X})[0] == 200
    assert third.predict({"id": "a", "x": X})[0] == 200
    assert other.predict({"id": "b", "x": X})[0] == 200
    assert faults(other.predict({"id": "a", "x": {"f": 2}})) == (409, ["id"])
    assert third.learn({"id": "a", "y": True})[0] == 200
    wait_until(lambda: face.counts("defaulted") == (1,))
    assert face.counts("served", "served_mistakes", "labelled") == (1, 1, 1)
    assert third.counts("served", "served_mistakes", "labelled") == (1, 1, 1)
    assert other.counts("served", "labelled") == (0, 0)
    assert [info["rejected"] for info in other.infos()] == [2, 2]
    assert [info["events"] for info in face.infos()] == [2, 2]
    for model in (face, third, other):
        assert face.clients[0].delete(f"/v1/models/{model.name}").status_code == 204
    time.sleep(0.2)
    assert not db.keys(f"hinged:{{{face.name}}}*")
