"""Followers while Redis is away, set back, or too far ahead to be caught up with."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest

from hinged_service.errors import Unavailable
from hinged_service.follow.read_only_model import FollowedModel
from hinged_service.model.state import ModelState
from tests.follow.conftest import Create, assert_equal_answers, events, following, learn
from tests.store.transport.test_least_rights import login, refusals, users
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.running import running, serving


def test_it_goes_on_from_memory_and_never_with_what_the_log_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    acl = users(tmp_path)
    with (
        running(RedisServer(tmp_path / "redis"), *acl) as server,
        serving(login(server.url), snapshot_every_ms=50, retention_bytes=0) as api,
    ):
        api.put("/v1/models/m", json={"learner": {"type": "perceptron"}})
        learn(api, "m", *events(20))
        kept = learn(api, "m", {"x": {"a": 1}, "y": True})
        server.copy_data(tmp_path / "older")
        with following(server, "m", redis_timeout_ms=200) as model:
            lost = learn(api, "m", *events(20), {"x": {"a": 5}, "y": False})
            model.wait_for(lost, 20)
            score = model.score_one({"a": 1})

            server.kill()
            wait_until(lambda: model.status == "stale")
            assert "Predictions continue from memory" in caplog.text
            assert (model.score_one({"a": 1}), model.position) == (score, lost)

            server.set_back(tmp_path / "older", *acl)
            wait_until(lambda: model.status == "live" and model.trouble is None)
            assert model.position == kept, "it kept what the log lost"
            new = learn(api, "m", *events(20))
            model.wait_for(new, 20)
            assert_equal_answers(api, "m", model, {"a": 1}, events(1)[0]["x"])

            server.signal(signal.SIGSTOP)
            wait_until(lambda: model.status == "stale")
            assert model.position == new
            server.signal(signal.SIGCONT)
            wait_until(lambda: model.status == "live")


def test_one_that_fell_behind_a_trim_goes_on_from_a_newer_snapshot(
    api: httpx.Client, server: RedisServer, create: Create
) -> None:
    name = create(retention={"events": 0})
    learn(api, name, *events(20))
    with following(server, name, max_staleness_ms=10**8) as model, server.client() as client:
        behind = model.position
        learn(api, name, *events(20))

        def trimmed() -> bool:
            learn(api, name, *events(1))
            found: Any = client.xrange(f"hinged:{{{name}}}:log", count=1)
            return bool(found[0][0] > behind.partition(".")[0])

        wait_until(trimmed)
        assert model.position == behind
        model.wait_for(learn(api, name, *events(1)), 20)
        assert_equal_answers(api, name, model, *(one["x"] for one in events(3)))
    assert refusals(server.client()) == []


def test_one_whose_next_entry_is_lost_goes_on_past_it(
    api: httpx.Client, server: RedisServer, create: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = create()
    learn(api, name, *events(20))
    with following(server, name, max_staleness_ms=10**8) as model, server.client() as client:
        read = model._background._read

        async def late() -> FollowedModel:
            found = await read()
            await asyncio.sleep(0.2)  # the one with the newer snapshot is not served yet
            return found

        monkeypatch.setattr(model._background, "_read", late)
        score = model.score_one({"a": 1})
        lost = learn(api, name, {"x": {"a": 1}, "y": True})
        after = learn(api, name, *events(3))
        client.xdel(f"hinged:{{{name}}}:log", lost.partition(".")[0])
        assert model.score_one({"a": 1}) == score
        model.wait_for(after, 20)  # by the snapshot of the worker, which had read it
        assert_equal_answers(api, name, model, {"a": 1}, events(1)[0]["x"])


def test_a_state_that_was_left_by_halves_answers_no_caller(
    api: httpx.Client, server: RedisServer, create: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = create()
    learn(api, name, {"x": {"a": 1}, "y": True})
    with following(server, name) as model:
        broken = model._replica()

        learn_all, state = ModelState.learn_all, broken.state

        def fail(self: ModelState, *arguments: Any) -> Any:
            if self is state:
                raise RuntimeError("as a part of River may")
            return learn_all(self, *arguments)

        monkeypatch.setattr(ModelState, "learn_all", fail)
        position = learn(api, name, {"x": {"a": 1}, "y": False})
        model.wait_for(position, 20)
        assert model._replica() is not broken
        assert_equal_answers(api, name, model, {"a": 1})
        with pytest.raises(Unavailable):
            broken.label({"a": 1})
