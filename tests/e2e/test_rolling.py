"""Workers are replaced one after the other while events come: nothing is lost, nothing doubled."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

import hinged
from tests.engine.upgrade import versions
from tests.support.forked_worker import ForkedWorker
from tests.support.plain_fold import fold_log, model_uid, read_snapshot
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.served import bits, served

SPEC = {"learner": {"type": "perceptron"}}
PATH = "/v1/models/m"
EVENTS, RESTARTS, PATIENCE_S = 5_000, 6, 60.0


def _event(number: int) -> dict[str, Any]:
    x = {"a": number % 7 / 10 - 0.3, f"n{number % 40}": 1 / (1 + number), "b": number % 5 - 2.0}
    return {"x": x, "y": number % 3 == 0, "id": f"e{number}"}


class Load:
    """Clients that send each event to one worker or another until it is acknowledged."""

    def __init__(self, workers: list[ForkedWorker]) -> None:
        self.workers = workers
        self.acknowledged: set[str] = set()
        self.outcomes: Counter[str] = Counter()
        self.answers: Counter[int] = Counter()
        self.faults: list[str] = []
        self.position = ""
        self._numbers = itertools.count()
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._send, args=(size,)) for size in (1, 10, 40)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def wait_for(self, events: int) -> None:
        """Return once so many more events are acknowledged."""
        wanted = len(self.acknowledged) + events
        wait_until(lambda: len(self.acknowledged) >= wanted or bool(self.faults), PATIENCE_S)
        assert not self.faults

    def _send(self, size: int) -> None:
        with httpx.Client(timeout=30, verify=False) as client:
            while not self._over.is_set():
                events = [_event(next(self._numbers)) for _ in range(size)]
                try:
                    self._send_all(client, events)
                except Exception as error:
                    self.faults.append(repr(error))
                    return

    def _send_all(self, client: httpx.Client, events: list[dict[str, Any]]) -> None:
        give_up_s = time.monotonic() + PATIENCE_S
        for attempt in itertools.count(int(events[0]["id"][1:])):
            worker = self.workers[attempt % len(self.workers)]
            try:
                answer = client.post(f"{worker.url}{PATH}/learn", json=events)
            except httpx.TransportError:
                self.answers[0] += 1
            else:
                self.answers[answer.status_code] += 1
                if answer.status_code == 200:
                    break
                assert answer.status_code == 503, answer.text
            assert time.monotonic() < give_up_s, "no worker takes it"
            time.sleep(0.005)
        for event, one in zip(events, answer.json(), strict=True):
            self.outcomes[event["id"]] += not one["duplicate"]
            self.position = one["position"]
        self.acknowledged |= {event["id"] for event in events}

    def check(self, counted: list[str]) -> None:
        """Check that all events were learned, each once."""
        assert not self.faults
        assert len(counted) == len(set(counted)), "learned twice"
        assert self.acknowledged == set(counted), "lost, or learned unasked"
        assert max(self.outcomes.values()) == 1, "told twice what it did"
        assert set(self.answers) <= {0, 200, 503}


@pytest.fixture
def started(own_server: RedisServer) -> Iterator[Callable[..., ForkedWorker]]:
    """Start a worker; all are killed in the end."""
    made: list[ForkedWorker] = []

    def start(prepare: Callable[[], None] | None = None) -> ForkedWorker:
        # A worker that starts under load may hold the snapshot still for so long, also from those
        # that stop meanwhile.
        settings = {"snapshot_every_events": 500, "hold_ms": 200}
        made.append(ForkedWorker(own_server.url, retention_bytes=10**9, **settings))
        made[-1].prepare = prepare
        made[-1].start()
        return made[-1]

    yield start
    for worker in made:
        worker.kill()


def test_a_rolling_restart_under_load(
    own_server: RedisServer, started: Callable[..., ForkedWorker]
) -> None:
    workers = [started(), started()]
    httpx.put(f"{workers[0].url}{PATH}", json=SPEC, verify=False).raise_for_status()
    with Load(workers) as load:
        for number in range(RESTARTS):
            load.wait_for(EVENTS // RESTARTS // 2)
            worker = workers[number % 2]
            assert worker.stop() in (0, -15)
            worker.start()
        load.wait_for(max(200, EVENTS - len(load.acknowledged)))
    with own_server.client() as client:
        folded = fold_log(client, "m", hinged.Perceptron())
        load.check(folded.counted_ids)
        for worker in workers:
            weights, _ = served(worker, PATH, f"{folded.position}.{folded.chain}")
            assert bits(weights) == bits(folded.weights)
            worker.stop()
        stored = read_snapshot(client, "m", model_uid(client, "m"))
        assert stored is not None
        assert (stored.position, stored.weights) == (folded.position, folded.weights)


def test_a_rolling_upgrade_under_load(
    own_server: RedisServer, started: Callable[..., ForkedWorker]
) -> None:
    """While both versions run the old one goes on; then one command hands the model over."""
    workers = [started(versions.become_old), started(versions.become_old)]
    httpx.put(f"{workers[0].url}{PATH}", json=SPEC, verify=False).raise_for_status()
    with Load(workers) as load:
        load.wait_for(500)
        for number in range(2):
            old, workers[number] = workers[number], started(versions.become_new)
            old.stop()
            if number == 0:
                load.wait_for(500)
        answer = (
            httpx.post(f"{workers[0].url}{PATH}/upgrade", timeout=30, verify=False)
            .raise_for_status()
            .json()
        )
        assert (answer["before"], answer["fold"]) == (versions.OLD, versions.NEW)
        load.wait_for(1_000)
    with own_server.client() as client:
        plain = versions.Plain(client, "m", versions.OLD)
        load.check(plain.counted)
        assert plain.upgrades == 1
        for worker in workers:
            weights, _ = served(worker, PATH, plain.end)
            assert bits(weights) == plain.state()["weights"]
