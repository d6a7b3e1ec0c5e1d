"""Many models of all kinds on one stream of a fleet of processes, whatever breaks."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from hinged_service.engine.snapshots import load_replica
from tests.river_support.learners.fleet import Logged, counted, folded, logged, state_of
from tests.river_support.learners.side_by_side import (
    MODELS,
    NUMERIC,
    STREAM,
    Event,
    is_numbers,
    made_events,
)
from tests.support import engine
from tests.support.forked_worker import ForkedWorker
from tests.support.plain_fold import model_uid
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer
from tests.support.service import Service

WORKERS, CLIENTS, EVENTS = 3, 8, 1_200
PATIENCE_S = 60.0

Body = Sequence[Event]


def made_bodies(rng: random.Random, events: Sequence[Event]) -> list[Body]:
    """Return every event once or more, in bodies of a few, some of them again later."""
    bodies: list[Body] = []
    rest = list(events)
    while rest:
        size = rng.choice([1, 2, 5, 20])
        bodies.append(rest[:size])
        del rest[:size]
        if rng.random() < 0.3:
            bodies.append(rng.choice(bodies[-20:]))
    return bodies


@dataclass
class Senders:
    """Clients that send each body to some model on some worker until one acknowledges it."""

    urls: Sequence[str]
    outcomes: Counter[str] = field(default_factory=Counter)
    retries: Counter[str] = field(default_factory=Counter)

    async def run(self, number: int, jobs: asyncio.Queue[Body]) -> None:
        """Be client `number`, for ever."""
        rng = random.Random(f"client {number}")
        async with httpx.AsyncClient(verify=False) as client:
            while True:
                body = await jobs.get()
                await asyncio.wait_for(self._send(client, rng, body), PATIENCE_S)
                jobs.task_done()

    async def _send(self, client: httpx.AsyncClient, rng: random.Random, body: Body) -> None:
        takers = [m for m in MODELS if m not in NUMERIC or all(map(is_numbers, body))]
        timeout_s = 0.01 if rng.random() < 0.05 else 5.0
        while True:
            url = f"{rng.choice(self.urls)}/v1/models/{rng.choice(takers)}/learn"
            try:
                response = await client.post(url, json=body, timeout=timeout_s)
            except httpx.TransportError as error:
                self.retries[type(error).__name__] += 1
            else:
                if response.status_code == 200:
                    for event, one in zip(body, response.json(), strict=True):
                        self.outcomes[event["id"]] += not one["duplicate"]
                    return
                assert response.status_code in (429, 503), response.text
                self.retries[str(response.status_code)] += 1
            timeout_s = 5.0
            await asyncio.sleep(rng.uniform(0.01, 0.05))


@dataclass(frozen=True)
class Fleet:
    """Workers on one Redis, behind a proxy that misbehaves."""

    server: RedisServer
    proxy: Proxy
    workers: Sequence[ForkedWorker]

    def troubles(self, rng: random.Random) -> list[Callable[[], None]]:
        """Return what goes wrong, in some order."""

        def lose() -> None:
            self.proxy.drop_replies = rng.randint(2, 6)

        def restart_redis() -> None:
            self.server.kill()
            self.server.start()

        def restart(worker: ForkedWorker) -> Callable[[], None]:
            def run() -> None:
                for other in self.workers:
                    other.wait_until_alive()
                worker.kill()
                worker.start(wait=False)

            return run

        killed = self.workers[:-1]
        found = [lose, lose, lose, self.proxy.cut, restart_redis, *map(restart, killed)]
        rng.shuffle(found)
        return found


SETTINGS: dict[str, Any] = {
    "retention_bytes": 2**40,
    "snapshot_every_events": 100,
    "snapshot_every_ms": 200,
    "housekeeping_ms": 50,
    "max_staleness_ms": 0,
}


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    server = RedisServer(tmp_path / "redis", fsync="always")
    server.start()
    proxy = Proxy(server.port)
    proxy.start()
    workers = [ForkedWorker(proxy.url, **SETTINGS) for _ in range(WORKERS)]
    try:
        for worker in workers:
            worker.start(wait=False)
        workers[-1].wait_until_alive()
        yield Fleet(server, proxy, workers)
    finally:
        for worker in workers:
            worker.kill()
        proxy.stop()
        server.kill()


async def drill(
    senders: Senders, bodies: Sequence[Body], troubles: Sequence[Callable[[], None]]
) -> None:
    """Send all bodies, with every trouble in mid-stream."""
    jobs: asyncio.Queue[Body] = asyncio.Queue()
    share = len(bodies) // (len(troubles) + 1)
    sending = iter(bodies)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(senders.run(number, jobs)) for number in range(CLIENTS)]
        for trouble in troubles:
            for body in itertools.islice(sending, share):
                jobs.put_nowait(body)
            while jobs.qsize() > share // 2:  # noqa: ASYNC110 - the queue has no such event
                await asyncio.sleep(0.005)
            await asyncio.to_thread(trouble)
        for body in sending:
            jobs.put_nowait(body)
        await jobs.join()
        for task in tasks:
            task.cancel()


def fetch(url: str, at_least: str) -> tuple[int, Any]:
    """Return what a worker answers once it has reached a position."""
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        response = httpx.get(url, params={"at_least": at_least}, timeout=10, verify=False)
        if response.status_code in (200, 409):
            said = response.json()
            said.pop("request_id", None)
            return response.status_code, said
        assert response.status_code == 503, response.text
        assert time.monotonic() < deadline_s, response.text
        time.sleep(0.05)


def served(worker: ForkedWorker | Service, name: str, end: str) -> tuple[dict[str, Any], Any]:
    """Return what a worker says of a model at the end of the log, and its weights."""
    url = f"{worker.url}/v1/models/{name}"
    status, model = fetch(url, end)
    assert status == 200
    assert model["position"] == end
    del model["snapshot"], model["stale_s"]
    return model, fetch(f"{url}/weights", end)


def wait_until_saved(client: redis.Redis, last: str) -> None:
    """Wait until the snapshot of every model is the end of the log."""
    deadline_s = time.monotonic() + PATIENCE_S
    uids = {name: model_uid(client, name) for name in MODELS}
    while True:
        stored = {n: engine.stored_position(client, STREAM, uid) for n, uid in uids.items()}
        if set(stored.values()) == {last}:
            return
        assert time.monotonic() < deadline_s, f"not saved at {last}: {stored}"
        time.sleep(0.02)


async def compare_snapshots(url: str, log: Sequence[Logged]) -> None:
    """Check that what a cold worker loads is the fold of the log, to the bit."""
    one = engine.Worker(url)
    try:
        for name in MODELS:
            entry = (await one.registry.open(name)).entry
            loaded = await load_replica(one.connection, one.settings, entry)
            assert not loaded.needs_full, f"the snapshot of {name} is not sound"
            assert loaded.position.id == log[-1][0]
            plain = state_of(folded(entry.spec, log, mixed=False))
            assert state_of(loaded.state) == plain, name
            assert state_of((await one.read(name)).state) == plain, name
    finally:
        await one.kill()


@pytest.mark.slow
def test_many_models_of_one_stream_agree_whatever_breaks(fleet: Fleet) -> None:
    rng = random.Random(5)
    events = made_events(rng, EVENTS)
    for name, spec in MODELS.items():
        path = f"{fleet.workers[-1].url}/v1/models/{name}"
        answer = httpx.put(path, json={"stream": STREAM, **spec}, timeout=30, verify=False)
        assert answer.status_code == 201, answer.text

    senders = Senders([worker.url for worker in fleet.workers])
    asyncio.run(drill(senders, made_bodies(rng, events), fleet.troubles(rng)))
    fleet.proxy.drop_replies = 0
    for worker in fleet.workers:
        worker.wait_until_alive()
    print(f"retries {dict(senders.retries)}, answers lost {fleet.proxy.dropped}")

    assert max(senders.outcomes.values()) == 1, "an event was answered as new twice"
    with fleet.server.client() as client:
        log = list(logged(client, STREAM))
        ids = [event["id"] for _, said, skip in log for event in counted(said, skip)]
        assert sorted(ids) == sorted(event["id"] for event in events)
        ((last, fields),) = client.xrevrange(f"hinged:{{{STREAM}}}:log", count=1)
        assert last == log[-1][0]
        end = f"{last}.{fields['chain']}"
        numbers = sum(map(is_numbers, events))
        answers = {name: served(fleet.workers[0], name, end) for name in MODELS}
        for name, (model, _) in answers.items():
            taken = numbers if name in NUMERIC else EVENTS
            assert (model["events"], model["rejected"]) == (taken, EVENTS - taken), name
            for worker in fleet.workers[1:]:
                assert served(worker, name, end) == answers[name], name
        drifting = [name for name, spec in MODELS.items() if "drift" in spec]
        found = [answers[name][0]["detections"] for name in drifting]
        assert any(found), "the labels turned round, and nobody noticed"
        wait_until_saved(client, last)
        with Service(fleet.server.url, **SETTINGS) as cold:
            for name in MODELS:
                assert served(cold, name, end) == answers[name], name
        asyncio.run(compare_snapshots(fleet.server.url, log))
