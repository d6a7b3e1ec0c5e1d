"""Promises in seconds: rollback, Redis away and back, other clients of a large model."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx

from tests.bench.servers import SERVICE, Server, running
from tests.bench.table import Row
from tests.support.pings import Pings
from tests.support.redis_server import RedisServer

WORKERS = 3
PER_EVENT, PER_CALL = 1_000, 10_000
MODEL = "/v1/models/m"
PROBE = {"x": {"n5": 1.0, "n99999": 0.5}}
EVENT = {"x": {"a": 1.0}, "y": True}
SPEC = {"learner": {"type": "passive_aggressive"}}


def measure(folder: Path, rounds: int, weights: int) -> list[Row]:
    """Return the rows; `weights` of the large model, a tenth of them of the one rolled back."""
    return [
        *_rollback(folder, rounds, weights // 10),
        *_away(folder, rounds),
        *_large(folder, rounds, weights),
    ]


def _rollback(folder: Path, rounds: int, weights: int) -> list[Row]:
    """Return the row: from the call to a state that all workers predict with."""
    with RedisServer(folder / "rollback") as redis:
        workers = [_worker(redis) for _ in range(WORKERS)]
        took: list[float] = []
        with running(*workers):
            clients = [httpx.Client(base_url=worker.url, timeout=30) for worker in workers]
            one, two, three = clients
            one.put(MODEL, json=SPEC).raise_for_status()
            _grow(one, weights)
            for turn in range(rounds + 1):  # the first one opens the model everywhere
                then = _scores(clients, at_least=_learn(one, 0, True))
                two.post(f"{MODEL}/checkpoints", json={"name": f"c{turn}"}).raise_for_status()
                poisoned = _scores(clients, at_least=_learn(one, 0, False))
                assert poisoned != then
                began_s = time.perf_counter()
                three.post(f"{MODEL}/restore", json={"checkpoint": f"c{turn}"}).raise_for_status()
                while _scores(clients) != then:
                    pass
                took.append(time.perf_counter() - began_s)
            for client in clients:
                client.close()
    name = f"rollback of {weights:,} weights, until {WORKERS} workers predict with it"
    return [Row(name, took[1:], "s", target=1.0, at_most=True)]


def _away(folder: Path, rounds: int) -> list[Row]:
    """Return the rows: learning while Redis stands still, and from its return to a learned event.

    The service is as it comes: its bounds on waiting are those of production.
    """
    with RedisServer(folder / "away") as redis:
        worker = Server(SERVICE, HINGED_REDIS_URL=redis.url)
        refused: list[float] = []
        back: list[float] = []
        with running(worker), httpx.Client(base_url=worker.url, timeout=30) as client:
            client.put(MODEL, json=SPEC).raise_for_status()
            client.post(f"{MODEL}/learn", json=EVENT).raise_for_status()
            for _ in range(rounds):
                redis.signal(signal.SIGSTOP)
                refused.append(_seconds_until(lambda: _learned(client) == 503))
                redis.signal(signal.SIGCONT)
                back.append(_seconds_until(lambda: _learned(client) == 200))
    return [
        Row("Redis stands still: learn is told 503", refused, "s", target=1.0, at_most=True),
        Row("Redis is back: an event is learned", back, "s", target=1.0, at_most=True),
    ]


def _large(folder: Path, rounds: int, weights: int) -> list[Row]:
    """Return the rows: how long another client of Redis waited, at most."""
    courses = [_course(folder / f"large-{number}", weights) for number in range(rounds)]
    return [
        Row(
            f"a model of {weights:,} weights is {step}: another client of Redis waits at most",
            [waited[step] for waited in courses],
            "ms",
            target=100,
            at_most=True,
        )
        for step in courses[0]
    ]


def _course(folder: Path, weights: int) -> dict[str, float]:
    """Return by step in a large model's life how long another client waited, in milliseconds."""
    with RedisServer(folder) as redis:
        warm, cold = _worker(redis), _worker(redis)
        waited: dict[str, float] = {}
        with (
            running(warm, cold),
            httpx.Client(base_url=warm.url, timeout=60) as client,
            httpx.Client(base_url=cold.url, timeout=60) as other,
        ):
            client.put(MODEL, json=SPEC).raise_for_status()
            steps: dict[str, Callable[[], Any]] = {
                "learned and saved": lambda: _grow_and_save(client, redis, weights),
                "loaded": lambda: other.post(f"{MODEL}/predict", json=PROBE).raise_for_status(),
                "deleted": lambda: client.delete(MODEL).raise_for_status(),
            }
            for name, step in steps.items():
                pings = Pings(redis, folder / "pings")
                step()
                waited[name] = pings.stop()
    return waited


def _worker(redis: RedisServer) -> Server:
    """Return a worker that waits for Redis as long as a large model takes on a slow machine."""
    return Server(
        SERVICE,
        HINGED_REDIS_URL=redis.url,
        HINGED_REDIS_TIMEOUT_MS="20000",
        HINGED_APPEND_TIMEOUT_MS="20000",
    )


def _grow(client: httpx.Client, weights: int) -> None:
    for first in range(0, weights, PER_CALL):
        _learn(client, first, True)


def _grow_and_save(client: httpx.Client, redis: RedisServer, weights: int) -> None:
    _grow(client, weights)
    with redis.client() as store:
        log: Any = store.xrevrange("hinged:{m}:log", count=1)
        while True:
            saved: Any = store.hgetall("hinged:{m}:followers")
            if all(position.split()[0] == log[0][0] for position in saved.values()):
                return
            time.sleep(0.01)


def _learn(client: httpx.Client, first: int, y: bool) -> str:
    """Learn so many features from `first` on; return the position after them."""
    starts = range(first, first + PER_CALL, PER_EVENT)
    events = [{"x": {f"n{n}": 1.0 for n in range(s, s + PER_EVENT)}, "y": y} for s in starts]
    answer = client.post(f"{MODEL}/learn", json=events).raise_for_status()
    position: str = answer.json()[-1]["position"]
    return position


def _learned(client: httpx.Client) -> int:
    return client.post(f"{MODEL}/learn", json=EVENT).status_code


def _scores(clients: Sequence[httpx.Client], **at: str) -> set[float]:
    answers = [client.post(f"{MODEL}/predict", json=PROBE, params=at) for client in clients]
    return {answer.raise_for_status().json()["score"] for answer in answers}


def _seconds_until(condition: Callable[[], bool]) -> float:
    began_s = time.perf_counter()
    while not condition():
        pass
    return time.perf_counter() - began_s
