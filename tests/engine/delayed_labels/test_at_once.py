"""Copies and rivals at the same moment, over two workers; and labels in another order."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import redis

from tests.engine.delayed_labels.conftest import NewFace
from tests.engine.delayed_labels.support import Answer, agrees_with_its_log
from tests.support.redis_server import RedisServer

X = {"a": 1.0}


def at_once(call: Any, bodies: list[dict[str, Any]]) -> list[Answer]:
    with ThreadPoolExecutor(len(bodies)) as pool:
        return list(pool.map(call, bodies))


def test_fifty_copies_of_a_prediction_and_of_its_label(new: NewFace, server: RedisServer) -> None:
    face = new()
    asked = at_once(face.predict, [{"id": "p", "x": X}] * 50)
    assert {status for status, _ in asked} == {200}
    assert face.counts("predicted", "waiting") == (1, 1)
    answers = at_once(face.learn, [{"id": "p", "y": True}] * 50)
    assert Counter((status, one["duplicate"]) for status, one in answers) == {
        (200, False): 1,
        (200, True): 49,
    }
    assert face.counts("joined", "duplicates", "conflicts", "waiting") == (1, 49, 0, 0)
    assert [info["events"] for info in face.infos()] == [1, 1]


def test_one_of_two_labels_and_one_of_two_sets_of_features_wins(new: NewFace) -> None:
    face = new()
    asked = at_once(face.predict, [{"id": "p", "x": {"a": i % 2}} for i in range(20)])
    assert Counter(status for status, _ in asked) == {200: 10, 409: 10}
    answers = at_once(face.learn, [{"id": "p", "y": i % 2 == 0} for i in range(20)])
    assert Counter(status for status, _ in answers) == {200: 10, 409: 10}
    assert face.counts("joined", "duplicates", "conflicts") == (1, 9, 10)


def test_labels_and_whole_events_of_the_same_ids(new: NewFace, db: redis.Redis) -> None:
    face = new()
    face.predict(*({"id": f"p{i}", "x": X} for i in range(10)))
    bodies: list[dict[str, Any]] = []
    for i in range(10):
        bodies += [{"id": f"p{i}", "y": True}, {"id": f"p{i}", "x": X, "y": True}]
    answers = at_once(face.learn, bodies)
    assert Counter((status, one["duplicate"]) for status, one in answers) == {
        (200, False): 10,
        (200, True): 10,
    }
    assert face.counts("joined", "waiting", "labelled", "served") == (10, 0, 10, 10)
    agrees_with_its_log(db, face)


def test_predictions_race_their_early_labels(new: NewFace, db: redis.Redis) -> None:
    face = new(early=True)
    with ThreadPoolExecutor(40) as pool:
        labels = [pool.submit(face.learn, {"id": f"p{i}", "y": True}) for i in range(200)]
        asked = [pool.submit(face.predict, {"id": f"p{i}", "x": X}) for i in range(200)]
        assert {one.result()[0] for one in (*labels, *asked)} == {200}
    assert face.counts("predicted", "joined", "waiting", "early") == (200, 200, 0, 0)
    assert [info["events"] for info in face.infos()] == [200, 200]
    agrees_with_its_log(db, face)


def test_labels_with_delays_of_their_own(new: NewFace, server: RedisServer) -> None:
    """Case C95: the served predictions were both wrong, what was learned erred once.

    p2 moves the weights to (1, 1); p1 then scores 2 and moves nothing.
    """
    face = new()
    for name in ("p1", "p2"):
        answer = face.predict({"id": name, "x": X})[1]
        assert (answer["y"], answer["score"]) == (False, 0.0)
    second = face.learn({"id": "p2", "y": True})[1]
    assert (second["score"], second["mistake"], second["hinge_loss"]) == (0.0, True, 1.0)
    first = face.learn({"id": "p1", "y": True})[1]
    assert (first["score"], first["mistake"], first["hinge_loss"]) == (2.0, False, 0.0)
    assert face.learn({"id": "p9", "y": True})[0] == 404
    assert face.counts("served", "served_mistakes") == (2, 2)
    info = face.infos()[1]
    assert (info["mistakes"], info["updates"], info["hinge_loss"]) == (1, 1, 1.0)
    found = face.clients[1].get(f"/v1/models/{face.name}/weights").json()
    assert (found["weights"], found["intercept"]) == ({"a": 1.0}, 1.0)
