"""Followers that are paused, killed, cut off, or behind a rollback: they tell it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

import httpx
import pytest

from hinged_service.follow import follow
from tests.follow.conftest import (
    Create,
    assert_equal_answers,
    events,
    following,
    learn,
    reading,
)
from tests.store.transport.test_least_rights import refusals
from tests.support.forked import fresh, processes
from tests.support.processes import wait_until
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer
from tests.support.running import running

X = {"n1": 1.0, "n2": -2.0}
PAUSE_S = 1.5
"""Far longer than the age allowed; the server keeps the connection, as it does for 10 s."""


class Report(NamedTuple):
    """The status of a follower, read in one go."""

    status: str
    staleness_s: float
    position: str
    score: float


class Elsewhere:
    """A follower in another process, and the way to ask it."""

    def __init__(self, process: BaseProcess, pipe: Connection) -> None:
        self._pipe = pipe
        self.process = process

    def ask(self) -> Report:
        self._pipe.send(None)
        assert self._pipe.poll(30), "the follower does not answer"
        return Report(*self._pipe.recv())

    def signal(self, number: int) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, number)


@contextmanager
def elsewhere(url: str, name: str) -> Iterator[Elsewhere]:
    ours, theirs = processes.Pipe()
    process = processes.Process(target=_follow, args=(url, name, theirs))
    with fresh(), theirs:
        process.start()
    try:
        one = Elsewhere(process, ours)
        one.ask()
        yield one
    finally:
        process.kill()
        process.join()
        ours.close()


def _follow(url: str, name: str, pipe: Connection) -> None:
    with follow(url, name, redis_timeout_ms=10_000, open_timeout_s=60.0) as model:
        while True:
            pipe.recv()
            # the state may move on in between: then it is asked again
            while True:
                before = model.status, model.staleness_s, model.position
                score = model.score_one(X)
                if model.position == before[2]:
                    break
            pipe.send((*before, score))


@pytest.fixture
def scores(api: httpx.Client) -> Callable[..., str]:
    """Learn events one by one, and note the score at each position."""
    noted: dict[str, float] = {}

    def learned(name: str, count: int) -> str:
        position = ""
        for one in events(count):
            position = learn(api, name, one)
            noted[position] = api.post(
                f"/v1/models/{name}/predict", json={"x": X}, params={"at_least": position}
            ).json()["score"]
        return position

    learned.noted = noted  # type: ignore[attr-defined]
    return learned


def test_one_that_stood_still_says_so_and_catches_up(
    api: httpx.Client, server: RedisServer, create: Create, scores: Any
) -> None:
    name = create()
    first = scores(name, 5)
    with elsewhere(reading(server), name) as model:
        wait_until(lambda: model.ask().position == first, 20)
        model.signal(signal.SIGSTOP)
        began_s = time.monotonic()
        last = scores(name, 10)
        time.sleep(max(0.0, began_s + PAUSE_S - time.monotonic()))
        model.signal(signal.SIGCONT)
        report = model.ask()
        assert report.score == scores.noted[report.position]
        assert report.position == last or (report.status == "stale" and report.staleness_s > 0.1), (
            report
        )

        def caught_up() -> bool:
            report = model.ask()
            assert report.score == scores.noted[report.position]
            return report.position == last and report.status == "live"

        wait_until(caught_up, 20)


def test_one_that_is_killed_leaves_nothing_behind(
    api: httpx.Client, server: RedisServer, create: Create, scores: Any
) -> None:
    name = create()
    scores(name, 5)
    with server.client() as client:
        wait_until(lambda: bool(client.keys(f"hinged:{{{name}}}:model:*:weights")), 20)
        keys: Any = client.keys(f"hinged:{{{name}}}*")
        notes: Any = client.hkeys(f"hinged:{{{name}}}:meta")
        followers: Any = client.hkeys(f"hinged:{{{name}}}:followers")
        with elsewhere(reading(server), name) as model:
            model.signal(signal.SIGKILL)
            model.process.join()
        last = scores(name, 5)
        assert set(client.keys(f"hinged:{{{name}}}*")) == set(keys)
        assert set(client.hkeys(f"hinged:{{{name}}}:meta")) == set(notes)
        assert client.hkeys(f"hinged:{{{name}}}:followers") == followers
    with following(server, name) as again:
        assert (again.position, again.score_one(X)) == (last, scores.noted[last])
    assert refusals(server.client()) == []


def test_one_that_is_cut_off_says_so_and_goes_on(
    api: httpx.Client, server: RedisServer, create: Create, scores: Any
) -> None:
    name = create()
    first = scores(name, 5)
    with running(Proxy(server.port)) as proxy:
        url = reading(server).replace(str(server.port), str(proxy.port))
        with follow(url, name, redis_timeout_ms=500) as model:
            for silent in (True, False):
                wait_until(lambda: model.status == "live", 20)
                if silent:
                    proxy.hold = True  # no answer, and no end of the connection
                else:
                    proxy.refuse = True
                    proxy.cut()
                wait_until(lambda: model.status == "stale", 20)
                last = scores(name, 3)
                assert (model.position, model.score_one(X)) == (first, scores.noted[first])
                assert model.staleness_s > 0.1
                proxy.hold = proxy.refuse = False
                model.wait_for(last, 20)
                assert (model.position, model.score_one(X)) == (last, scores.noted[last])
                first = last


def test_one_behind_a_rollback_and_an_upgrade_never_mixes_states(
    api: httpx.Client, server: RedisServer, create: Create, scores: Any
) -> None:
    name = create()
    kept = scores(name, 5)
    api.post(f"/v1/models/{name}/checkpoints", json={"name": f"{name}-kept"}).raise_for_status()
    with following(server, name, max_staleness_ms=10**8) as model:
        scores(name, 5)
        answer = api.post(f"/v1/models/{name}/restore", json={"checkpoint": f"{name}-kept"})
        answer.raise_for_status()
        # restored and dropped before it was read: the state comes from a newer snapshot
        api.delete(f"/v1/models/{name}/checkpoints/{name}-kept")
        assert (model.position, model.score_one(X)) == (kept, scores.noted[kept])
        model.wait_for(answer.json()["position"], 20)
        assert model.score_one(X) == scores.noted[kept]
        last = scores(name, 3)
        assert api.post(f"/v1/models/{name}/upgrade").is_success
        newest = scores(name, 3)
        model.wait_for(newest, 20)
        assert (model.position, model.score_one(X)) == (newest, scores.noted[newest])
        assert last < newest
        assert_equal_answers(api, name, model, X)
