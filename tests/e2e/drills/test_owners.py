"""Owners of streams die, stand still, or are not agreed on: that costs speed, and nothing else."""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.drills.drill import Drill
from tests.e2e.drills.serving import Serving, workers_on
from tests.support.fleet.load import Load
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer

pytestmark = pytest.mark.slow

PAUSE_S = 10.0
_AGREE_S = 30.0


@pytest.fixture
def folder() -> Iterator[Path]:
    """The directory that the workers share, in which paths of sockets are short enough."""
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


@pytest.fixture
def workers(own_server: RedisServer, folder: Path) -> Iterator[list[Serving]]:
    """Two workers of one service, each with a port of its own."""
    with workers_on(own_server.url, metrics_dir=folder) as started:
        yield started


@pytest.fixture
def drill(
    workers: list[Serving],
    own_server: RedisServer,
    record_property: Callable[[str, object], None],
) -> Drill:
    return Drill(workers, own_server.client, record_property)


def learner_of(worker: Serving, drill: Drill, event: dict[str, Any]) -> int:
    """Return the process that learns what `worker` gets; `event` was acknowledged before."""
    answer = httpx.post(f"{worker.url}{drill.path}/learn", json=event, timeout=30, verify=False)
    assert answer.status_code == 200, answer.text
    assert answer.json()["duplicate"]
    return int(answer.headers["x-hinged-owner"].rpartition("-")[2])


def owner_and_other(drill: Drill, load: Load) -> tuple[Serving, Serving]:
    """Return the worker that learns what both get, and the other one, once they agree."""
    event = load.sent[next(iter(load.acknowledged))]
    first, second = (worker for worker in drill.workers if isinstance(worker, Serving))
    found: set[int] = set()

    def agree() -> bool:
        found.clear()
        found.update(learner_of(worker, drill, event) for worker in (first, second))
        return len(found) == 1

    wait_until(agree, _AGREE_S)
    return (first, second) if first.pid in found else (second, first)


def test_owners_that_are_killed(drill: Drill) -> None:
    with drill.load() as load:
        for _ in range(2):
            owner, _ = owner_and_other(drill, load)
            owner.kill()
            killed_s = time.monotonic()
            owner.start()
            recover_s = load.recovered(killed_s)
            load.until_more()
    drill.judge("owner killed", "kill -9 of the owner of the stream, twice", load, recover_s)


def test_an_owner_that_stands_still(drill: Drill) -> None:
    with drill.load() as load:
        owner, other = owner_and_other(drill, load)
        number = list(drill.workers).index(other)
        owner.pause()
        paused_s = time.monotonic()
        recover_s = load.recovered(paused_s, [number])  # it appends what the owner does not answer
        load.until_more()
        time.sleep(max(0.0, paused_s + PAUSE_S - time.monotonic()))
        owner.resume()
        load.recovered(time.monotonic())
        owner_and_other(drill, load)
    done = f"SIGSTOP of the owner of the stream for {PAUSE_S:.0f} s; the other appends"
    drill.judge("owner stands still", done, load, recover_s)


def test_workers_that_disagree_about_who_lives(drill: Drill, folder: Path) -> None:
    with drill.load() as load:
        owner, _ = owner_and_other(drill, load)
        for file in (folder / "workers").iterdir():  # what starts now does not see the others
            file.unlink()
        owner.kill()
        owner.start()
        load.recovered(time.monotonic())
        event = load.sent[next(iter(load.acknowledged))]
        assert learner_of(owner, drill, event) == owner.pid
        load.until_more(500)
        assert learner_of(owner, drill, event) == owner.pid
    done = "one worker sees both, the other sees itself alone"
    drill.judge("owners not agreed on", done, load, 0.0)


def test_events_without_ids_are_never_doubled_silently(
    drill: Drill, own_server: RedisServer
) -> None:
    statuses: dict[str, int] = {}
    over = threading.Event()

    def send(number: int, url: str) -> None:
        with httpx.Client(timeout=30, verify=False) as client:
            while not over.is_set():
                name = f"f{number}-{len(statuses)}"
                event = {"x": {name: 1.0}, "y": True}
                answer = client.post(f"{url}{drill.path}/learn", json=event)
                statuses[name] = answer.status_code

    with drill.load() as load:
        owner, other = owner_and_other(drill, load)
    senders = [threading.Thread(target=send, args=(n, other.url), daemon=True) for n in range(8)]
    for sender in senders:
        sender.start()
    wait_until(lambda: len(statuses) > 200)
    owner.kill()
    sent = len(statuses)
    wait_until(lambda: len(statuses) > sent + 200)
    over.set()
    for sender in senders:
        sender.join(30)

    with own_server.client() as client:
        entries: Any = client.xrange(f"hinged:{{{drill.model}}}:log")
    logged: Counter[str] = Counter()
    for _, fields in entries:
        for event in json.loads(fields.get("events", "[]")):
            logged.update(name for name in event["x"] if name in statuses)
    assert set(statuses.values()) <= {200, 503}
    assert max(logged.values()) == 1
    assert {name for name, status in statuses.items() if status == 200} <= logged.keys()
