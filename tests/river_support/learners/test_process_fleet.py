"""Many models of all kinds on one stream of a fleet of processes, through any failure."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator, Sequence
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
    is_numbers,
    made_events,
)
from tests.support import engine
from tests.support.fleet.faults import Fault, Faults, beside
from tests.support.fleet.processes import ProcessFleet
from tests.support.fleet.senders import Body, HttpSenders, in_bodies
from tests.support.forked_worker import ForkedWorker
from tests.support.plain_fold import model_uid
from tests.support.redis_server import RedisServer
from tests.support.service import Service

WORKERS, CLIENTS, EVENTS = 3, 8, 1_200
PATIENCE_S = 60.0


def path(rng: random.Random, body: Body) -> str:
    """Return the path of a model that takes a body."""
    events = body if isinstance(body, list) else [body]
    takers = [m for m in MODELS if m not in NUMERIC or all(map(is_numbers, events))]
    return f"/v1/models/{rng.choice(takers)}"


def faults_of(rng: random.Random, fleet: ProcessFleet[ForkedWorker]) -> list[Fault]:
    """Return the faults in some order; all workers but the last are killed."""
    faults = Faults(rng, fleet.server, fleet.proxies)
    found = [
        *[beside(faults.lose_answers, 2, 6)] * 3,
        *(beside(faults.cut), beside(faults.crash)),
        *[beside(faults.kill, worker, fleet.workers) for worker in fleet.workers[:-1]],
    ]
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
def fleet(tmp_path: Path) -> Iterator[ProcessFleet[ForkedWorker]]:
    """Three workers on one Redis, behind a proxy that misbehaves."""
    server = RedisServer(tmp_path / "redis", fsync="always")
    with ProcessFleet(server, lambda url: ForkedWorker(url, **SETTINGS), WORKERS) as fleet:
        yield fleet


def fetch(url: str, at_least: str) -> tuple[int, Any]:
    """Return what a worker answers once it has reached a position."""
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        response = httpx.get(url, params={"at_least": at_least}, timeout=10, verify=False)
        if response.status_code in (200, 409):
            answer = response.json()
            answer.pop("request_id", None)
            return response.status_code, answer
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
def test_many_models_of_one_stream_agree_through_any_failure(
    fleet: ProcessFleet[ForkedWorker],
) -> None:
    rng = random.Random(5)
    events = made_events(rng, EVENTS)
    for name, spec in MODELS.items():
        url = f"{fleet.urls[-1]}/v1/models/{name}"
        answer = httpx.put(url, json={"stream": STREAM, **spec}, timeout=30, verify=False)
        assert answer.status_code == 201, answer.text

    senders = HttpSenders(fleet.urls, path)
    bodies = in_bodies(rng, events, [1, 2, 5, 20])
    asyncio.run(senders.run(bodies, faults_of(rng, fleet), CLIENTS))
    (proxy,) = fleet.proxies
    proxy.drop_replies = 0
    fleet.until_alive()
    print(f"retries {dict(senders.trouble)}, answers lost {proxy.dropped}")

    assert max(map(len, senders.counted.values())) == 1, "an event was answered as new twice"
    with fleet.server.client() as client:
        log = list(logged(client, STREAM))
        ids = [event["id"] for _, written, skip in log for event in counted(written, skip)]
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
        assert any(found), "the labels turned round, and no detector fired"
        wait_until_saved(client, last)
        with Service(fleet.server.url, **SETTINGS) as cold:
            for name in MODELS:
                assert served(cold, name, end) == answers[name], name
        asyncio.run(compare_snapshots(fleet.server.url, log))
