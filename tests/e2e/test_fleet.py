"""Once and in order, always: a fleet of workers under kills, cuts, flushes and restarts."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx
import pytest
import redis

import hinged
from tests.support.fleet.balance import agree
from tests.support.fleet.faults import Fault, Faults, beside
from tests.support.fleet.processes import ProcessFleet
from tests.support.fleet.senders import Body, Event, HttpSenders
from tests.support.forked_worker import ForkedWorker
from tests.support.plain_fold import fold_log, model_uid
from tests.support.redis_server import RedisServer

MODEL, STREAM = "fleet", "clicks"
WORKERS, CLIENTS, EVENTS = 4, 32, 20_000
SEEDS = [7]
SPEC = {"learner": {"type": "perceptron", "learning_rate": 0.3}, "stream": STREAM}
PATH = f"/v1/models/{MODEL}"


def made_events(rng: random.Random, count: int) -> list[Event]:
    """Return events of 8 frequent and 4 rare features, a linear label, 5 % of them wrong."""
    names = [f"f{i}" for i in range(58)] + ["naïve", 'a "quoted" name']
    rare = [f"rare{i}" for i in range(3_000)]
    truth = {name: rng.gauss(0, 1) for name in names} | dict.fromkeys(rare, 0.0)
    events: list[Event] = []
    for number in range(count):
        present = rng.sample(names, 8) + rng.sample(rare, 4)
        x = {name: round(rng.gauss(0, 3), rng.randint(0, 17)) for name in present}
        y = sum(truth[name] * value for name, value in x.items()) > 0
        event: Event = {"x": x, "y": y is not (rng.random() < 0.05), "id": f"e{number}"}
        if rng.random() < 0.1:
            event["w"] = rng.choice([0, 0.5, 2])
        events.append(event)
    return events


def made_bodies(rng: random.Random, events: Sequence[Event]) -> list[Body]:
    """Return every event 1 to 3 times, copies near and far, as single events and arrays."""
    placed: list[tuple[float, Event]] = []
    for number, event in enumerate(events):
        later = [rng.expovariate(1 / rng.choice([5, 50, 1000])) for _ in range(rng.randint(0, 2))]
        placed += [(number + distance, event) for distance in (0.0, *later)]
    placed.sort(key=lambda pair: pair[0])
    sent = [event for _, event in placed]
    bodies: list[Body] = []
    while sent:
        size = rng.choice([0, 0, 1, rng.randint(2, 20), rng.randint(20, 80)])
        bodies.append(sent[:size] if size else sent[0])
        del sent[: size or 1]
    return bodies


def faults_of(rng: random.Random, fleet: ProcessFleet[ForkedWorker]) -> list[Fault]:
    """Return the faults in the order in which they come; every worker is killed once."""
    faults = Faults(rng, fleet.server, fleet.proxies)
    found = [
        *[beside(faults.lose_answers, 3, 10)] * 3,
        *[beside(faults.cut)] * 2,
        *[beside(faults.forget_scripts)] * 2,
        beside(faults.restart),
        beside(faults.crash),
        beside(faults.stand_still, 1.2),  # longer than a command may take
        *[beside(faults.kill, worker) for worker in fleet.workers],
    ]
    rng.shuffle(found)
    return found


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[ProcessFleet[ForkedWorker]]:
    """Four workers on one Redis, behind a proxy that misbehaves."""
    settings = {
        "retention_bytes": 2**40,
        "snapshot_every_events": 500,
        "snapshot_every_ms": 200,
        "housekeeping_ms": 50,
    }
    server = RedisServer(tmp_path / "redis", fsync="always")
    with ProcessFleet(server, lambda url: ForkedWorker(url, **settings), WORKERS) as fleet:
        yield fleet


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_every_event_counts_once_and_in_one_order_through_any_failure(
    fleet: ProcessFleet[ForkedWorker], seed: int
) -> None:
    rng = random.Random(seed)
    events = made_events(rng, EVENTS)
    bodies = made_bodies(rng, events)
    assert httpx.put(f"{fleet.urls[0]}{PATH}", json=SPEC, verify=False).status_code == 201

    clients = HttpSenders(fleet.urls, lambda rng, body: PATH)
    asyncio.run(clients.run(bodies, faults_of(rng, fleet), CLIENTS))

    fleet.until_alive()
    print(f"seed {seed}: {len(bodies)} calls, retries {dict(clients.trouble)}")
    ids = {event["id"] for event in events}
    assert len(clients.acknowledged) == len(ids) == EVENTS
    assert max(map(len, clients.counted.values())) == 1, "an event was answered as new twice"
    with fleet.server.client() as client:
        folded = fold_log(client, STREAM, hinged.Perceptron(learning_rate=0.3))
        assert [i for i, times in Counter(folded.counted_ids).items() if times > 1] == []
        assert ids - set(folded.counted_ids) == set()
        assert (folded.accounts["events"], folded.rejected) == (EVENTS, 0)
        assert [p for p in clients.positions if not folded.reached(p)] == []
        stored = agree(client, STREAM, MODEL, folded, fleet.workers)
        assert (stored.rejected, stored.sizes) == (0, {"weights": len(folded.weights)})
        assert lasting_keys(client) <= lasting(model_uid(client, MODEL))
    assert folded.accounts["mistakes"] < 0.35 * EVENTS, "the labels can be learned"


def lasting(uid: str) -> set[str]:
    """Return the keys that one stream with one model may leave for good."""
    own = {f"model:{uid}:state", f"model:{uid}:weights"}
    kinds = {"meta", "log", "followers", "producers", "seen:0", "seen:1"} | own
    return {"hinged:models"} | {f"hinged:{{{STREAM}}}:{kind}" for kind in kinds}


def lasting_keys(client: redis.Redis) -> set[str]:
    """Return the keys that do not expire by themselves."""
    return {str(key) for key in client.scan_iter() if client.ttl(key) == -1}
