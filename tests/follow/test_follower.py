"""Followers: the worker's model in this process, read from its log and told when it is not."""

from __future__ import annotations

import asyncio
import math
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx
import pandas as pd
import pytest

import hinged
from hinged_service.engine.live_model import LiveModel
from hinged_service.errors import Conflict, NotFound, Refused, Unavailable, Unprocessable
from hinged_service.follow import follow, follow_async
from tests.follow.conftest import (
    Create,
    Event,
    assert_equal_answers,
    events,
    following,
    learn,
)
from tests.store.transport.test_least_rights import login, refusals
from tests.support.engine import fold_of, replica_state
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer


def test_it_is_the_plain_fold_of_the_log_and_the_model_of_the_worker(
    api: httpx.Client, server: RedisServer, create: Create
) -> None:
    name = create()
    learn(api, name, *events(50))
    with following(server, name) as model:
        for one in events(100):
            learn(api, name, one)
        position = learn(api, name, *events(30))
        model.wait_for(position, 20)
        assert model.position == position
        assert_equal_answers(api, name, model, *(e["x"] for e in events(5)))
        with server.client() as client:
            assert replica_state(model._background.model()) == fold_of(client, name)
    assert refusals(server.client()) == [], "it asked for more than to read"


def test_pipelines_classes_and_pools(
    api: httpx.Client, server: RedisServer, create: Create
) -> None:
    texts = [{"x": {"text": f"free {n} offer"}, "y": "ab"[n % 2]} for n in range(20)]
    words = {"pipeline": [{"type": "BagOfWords", "on": "text"}], "labels": ["a", "b"]}
    classes = {"learner": {"type": "multiclass_perceptron"}, "labels": "integers"}
    named = {"learner": {"type": "passive_aggressive"}, "labels": ["no", "yes"]}
    cases: list[tuple[Event, list[Event]]] = [
        ({"pipeline": [{"type": "StandardScaler"}], "calibrate": True}, events(20)),
        (words, texts),
        (classes, [{**one, "y": n % 3} for n, one in enumerate(events(20))]),
        ({"learner": {"type": "auto"}}, events(20)),
        ({"labels": [0, 1]}, [{**one, "y": int(one["y"])} for one in events(20)]),
        (named, [{**one, "y": "yes" if one["y"] else "no"} for one in events(20)]),
    ]
    for spec, sent in cases:
        name = create(**spec)
        position = learn(api, name, *sent)
        with following(server, name) as model:
            model.wait_for(position)
            assert_equal_answers(api, name, model, *(one["x"] for one in sent[:4]))


def test_explanations_and_frames(api: httpx.Client, server: RedisServer, create: Create) -> None:
    name = create()
    learn(api, name, {"x": {"a": 2, "b": -1}, "y": True}, {"x": {"b": 3}, "y": False})
    with following(server, name) as model:
        # the first moves w to (2, -1) and b to 1; the second has score -2 and moves nothing
        assert model.explain_one({"a": 3, "b": 5}) == {"a": 6.0, "b": -5.0, hinged.INTERCEPT: 1.0}
        frame = pd.DataFrame({"a": [1.0, 0.0], "b": [0.0, 4.0]}, index=[7, 9])
        found = model.predict_many(frame)
        assert found.to_dict() == {7: True, 9: False}
        assert found.dtype == bool
        with pytest.raises(hinged.InvalidEvent) as refused:
            model.predict_one({"a": math.inf})
        assert refused.value.field == "x['a']"


def test_labels_of_odd_questions_are_those_of_the_learner(
    api: httpx.Client, server: RedisServer, create: Create
) -> None:
    zero = {"learner": {"type": "perceptron", "label_at_zero": True, "fit_intercept": False}}
    questions: list[Event] = [{}, {"a": 1}, {"a": -1}, {"a": True}, {"a": 0}, {"new": 1}]
    questions += [{"a": None}, {"a": math.nan}, {"a": 1e300}, {"a": -1e300}]
    wrong: list[Event] = [{"a": "text"}, {"a": math.inf}, {"a": [1]}, {"a": 10**400}]
    for spec in ({}, {"labels": ["no", "yes"]}, zero):
        name = create(**spec)
        y: Any = "yes" if "labels" in spec else True
        learn(api, name, {"x": {"a": 1}, "y": y}, {"x": {"a": -1e100, "b": 1}, "y": y})
        with following(server, name) as model:
            state = model._replica().state
            learner: Any = state.learner
            for x in questions:
                expected = state.answers.label(learner.predict_one(x))
                assert (model.predict_one(x), x) == (expected, x)
            for x in wrong:
                with pytest.raises(hinged.InvalidEvent):
                    model.predict_one(x)


def test_an_alias_is_followed_through_a_promotion(
    api: httpx.Client, server: RedisServer, create: Create
) -> None:
    old = create()
    new = create(stream=old, learner={"type": "passive_aggressive"})
    alias = f"{old}-prod"
    api.put(f"/v1/aliases/{alias}", json={"model": old})
    learn(api, old, *events(20))
    with following(server, alias) as model:
        assert model.model == old
        api.post(f"/v1/aliases/{alias}/promote", json={"from": old, "to": new})
        wait_until(lambda: model.model == new)
        model.wait_for(learn(api, new, *events(3)), 20)
        assert_equal_answers(api, new, model, events(1)[0]["x"])
        api.delete(f"/v1/aliases/{alias}")
        wait_until(lambda: model.status == "gone")


def test_commands_of_the_log(api: httpx.Client, server: RedisServer, create: Create) -> None:
    name = create()
    with following(server, name) as model:
        learn(api, name, {"x": {"a": 1}, "y": True})
        api.post(f"/v1/models/{name}/checkpoints", json={"name": "good"})
        learn(api, name, {"x": {"a": 1}, "y": False})
        wait_until(lambda: model.score_one({"a": 1}) == 0.0)
        api.post(f"/v1/models/{name}/restore", json={"checkpoint": "good"})
        wait_until(lambda: model.score_one({"a": 1}) == 2.0)
        assert model.predict_one({"a": 1}) is True
        api.post(f"/v1/models/{name}/reset", json={})
        wait_until(lambda: model.score_one({"a": 1}) == 0.0)
        assert model.predict_one({"a": 1}) is False
        api.post(f"/v1/models/{name}/freeze", json={})
        model.wait_for(learn(api, name, {"x": {"a": 1}, "y": True}), 20)
        assert model.score_one({"a": 1}) == 0.0


def test_learned_events_are_in_the_log_once(
    api: httpx.Client, server: RedisServer, create: Create
) -> None:
    name = create()
    with follow(login(server.url), name, redis_timeout_ms=10_000, hold=True) as model:
        for _ in range(2):
            model.learn_one({"a": 1, 7: True}, True, id="once")
            assert model.score_one({"a": 1.0, "7": 1.0}) == 3.0
        explained = api.post(
            f"/v1/models/{name}/predict", json={"x": {"a": 1}}, params={"at_least": model.position}
        )
        assert explained.json()["score"] == 2.0
        with pytest.raises(Unprocessable):
            model.learn_one({"a": 1}, "text")
        with pytest.raises(Conflict):
            model.learn_one({"a": 1}, False, id="once")
    with following(server, name) as model:
        with pytest.raises(Refused):
            model.learn_one({"a": 1}, True)
        assert model.score_one({"a": 1}) == 2.0
    with server.client() as client:
        client.acl_log_reset()
    with pytest.raises(Unavailable, match="closed"):
        model.learn_one({"a": 1}, True)


async def test_with_asyncio(api: httpx.Client, server: RedisServer, create: Create) -> None:
    name = create()
    async with follow_async(login(server.url), name, redis_timeout_ms=10_000) as model:
        await model.wait_for(learn(api, name, {"x": {"a": 1}, "y": True}), 20)
        await model.learn_one({"b": 1}, False)
        assert (model.predict_one({"a": 1}), model.predict_one({"b": 1})) == (True, False)


def test_waiting_for_a_position(api: httpx.Client, server: RedisServer, create: Create) -> None:
    name = create()
    position = learn(api, name, *events(2))
    entry, _, chain = position.partition(".")
    with following(server, name) as model:
        model.wait_for(position)
        with pytest.raises(Conflict):
            model.wait_for(f"{entry}.{chain[::-1]}")
        began_s = time.monotonic()
        with pytest.raises(Unavailable):
            model.wait_for(f"{int(entry.split('-')[0]) + 10**6}-0.{chain}", 0.2)
        assert 0.2 <= time.monotonic() - began_s < 5
        with pytest.raises(ValueError, match="position"):
            model.wait_for("nowhere")


def test_a_model_that_is_deleted_answers_no_more_and_its_successor_does(
    api: httpx.Client, server: RedisServer, create: Create
) -> None:
    name = create()
    learn(api, name, {"x": {"a": 1}, "y": True})
    with following(server, name) as model:
        assert model.predict_one({"a": 1}) is True
        api.delete(f"/v1/models/{name}")
        wait_until(lambda: model.status == "gone")
        assert model.staleness_s == math.inf
        with pytest.raises(NotFound):
            model.predict_one({"a": 1})
        create(name)
        wait_until(lambda: model.status == "live")
        assert model.score_one({"a": 1}) == 0.0
    with pytest.raises(NotFound), following(server, "nosuch"):
        pass


def test_another_version_stops_it_and_it_says_so(
    api: httpx.Client, server: RedisServer, create: Create, caplog: pytest.LogCaptureFixture
) -> None:
    name = create()
    learn(api, name, {"x": {"a": 1}, "y": True})
    with following(server, name) as model, server.client() as client:
        uid = model._background.model().entry.uid
        client.hset(f"hinged:{{{name}}}:meta", f"fold:{uid}", "hinged-999")
        wait_until(lambda: model.status == "set_aside")
        assert "hinged-999" in str(model.trouble)
        assert any("hinged-999" in line for line in caplog.messages)
        at_s = model.staleness_s
        assert model.score_one({"a": 1}) == 2.0
        time.sleep(0.05)
        assert model.staleness_s > at_s
        client.hdel(f"hinged:{{{name}}}:meta", f"fold:{uid}")
        wait_until(lambda: model.status == "live")
        assert_equal_answers(api, name, model, {"a": 1})


def test_an_entry_off_the_chain_is_left_out_as_by_the_worker(
    api: httpx.Client, server: RedisServer, create: Create
) -> None:
    name = create()
    learn(api, name, {"x": {"a": 1}, "y": True})
    with following(server, name) as model, server.client() as client:
        foreign: Any = {"events": '[{"x":{"a":9},"y":false}]', "skip": "[]", "from": "x",
                        "chain": "0" * 40, "bytes": 1, "count": 2}  # fmt: skip
        client.xadd(f"hinged:{{{name}}}:log", foreign)
        position = learn(api, name, {"x": {"b": 1}, "y": False})
        model.wait_for(position, 20)
        assert_equal_answers(api, name, model, {"a": 1, "b": 1})
        assert replica_state(model._background.model())["rejected"] == 0
    assert refusals(server.client()) == []


def test_no_answer_is_of_half_an_entry(
    api: httpx.Client, server: RedisServer, create: Create
) -> None:
    name = create(learner={"type": "perceptron", "fit_intercept": False})
    pairs = [{"x": {"a": 1}, "y": y} for y in (True, False)] * 400
    # every second event takes back what the one before it did: within an entry the weight is 1
    answers: set[Any] = set()
    done = threading.Event()
    interval_s = sys.getswitchinterval()
    with following(server, name) as model:

        def ask(question: Callable[[Any], Any]) -> None:
            while not done.is_set():
                answers.add(question({"a": 1}))

        asking = [
            threading.Thread(target=ask, args=[question])
            for question in (model.predict_one, model.score_one)
        ]
        sys.setswitchinterval(1e-5)
        for one in asking:
            one.start()
        try:
            for _ in range(10):
                position = learn(api, name, *pairs)
            model.wait_for(position, 30)
        finally:
            done.set()
            for one in asking:
                one.join()
            sys.setswitchinterval(interval_s)
    assert not any(answers), "True or above 0: between two events of one entry"


def test_an_end_that_takes_long_is_not_cut_off(
    server: RedisServer, create: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[bool] = []
    usual = LiveModel.aclose

    async def slowly(model: LiveModel) -> None:
        await asyncio.sleep(0.3)
        await usual(model)
        ended.append(True)

    with following(server, create()):
        monkeypatch.setattr(LiveModel, "aclose", slowly)
    assert ended
