"""Once and in order, always: a fleet of workers under kills, cuts, flushes and restarts."""

from __future__ import annotations

import asyncio
import functools
import itertools
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

import hinged
from tests.support.forked_worker import ForkedWorker
from tests.support.plain_fold import fold_log, model_uid
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer
from tests.support.served import bits, served, wait_for_snapshot

MODEL, STREAM = "fleet", "clicks"
WORKERS, CLIENTS, EVENTS = 4, 32, 20_000
SEEDS = [7]
SPEC = {"learner": {"type": "perceptron", "learning_rate": 0.3}, "stream": STREAM}
PATH = f"/v1/models/{MODEL}"
GIVE_UP_S = 60.0

Event = dict[str, Any]


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


def made_bodies(rng: random.Random, events: Sequence[Event]) -> list[Event | list[Event]]:
    """Return every event 1 to 3 times, copies near and far, as single events and arrays."""
    placed: list[tuple[float, Event]] = []
    for number, event in enumerate(events):
        later = [rng.expovariate(1 / rng.choice([5, 50, 1000])) for _ in range(rng.randint(0, 2))]
        placed += [(number + distance, event) for distance in (0.0, *later)]
    placed.sort(key=lambda pair: pair[0])
    sent = [event for _, event in placed]
    bodies: list[Event | list[Event]] = []
    while sent:
        size = rng.choice([0, 0, 1, rng.randint(2, 20), rng.randint(20, 80)])
        bodies.append(sent[:size] if size else sent[0])
        del sent[: size or 1]
    return bodies


@dataclass
class Clients:
    """Clients that send each body to some worker until one of them acknowledges it."""

    urls: Sequence[str]
    seed: int
    outcomes: Counter[str] = field(default_factory=Counter)
    positions: set[str] = field(default_factory=set)
    acknowledged: set[str] = field(default_factory=set)
    retries: Counter[str] = field(default_factory=Counter)

    async def run(self, number: int, jobs: asyncio.Queue[Event | list[Event]]) -> None:
        """Be client `number`, for ever."""
        rng = random.Random(f"{self.seed} client {number}")
        limits = httpx.Limits(max_connections=4)
        async with httpx.AsyncClient(limits=limits, verify=False) as client:
            while True:
                body = await jobs.get()
                await asyncio.wait_for(self._send(client, rng, body), GIVE_UP_S)
                jobs.task_done()

    async def _send(
        self, client: httpx.AsyncClient, rng: random.Random, body: Event | list[Event]
    ) -> None:
        impatient = rng.random() < 0.03
        while True:
            url = f"{rng.choice(self.urls)}{PATH}/learn"
            try:
                response = await client.post(url, json=body, timeout=0.01 if impatient else 5)
            except httpx.TransportError as error:
                self.retries[type(error).__name__] += 1
            else:
                if response.status_code == 200:
                    self._note(body, response.json())
                    return
                assert response.status_code in (429, 503), response.text
                assert int(response.headers["retry-after"]) >= 1
                self.retries[str(response.status_code)] += 1
            impatient = False
            await asyncio.sleep(rng.uniform(0.01, 0.05))

    def _note(self, body: Event | list[Event], answer: Any) -> None:
        events, answers = (body, answer) if isinstance(body, list) else ([body], [answer])
        assert len(events) == len(answers)
        for event, one in zip(events, answers, strict=True):
            self.acknowledged.add(event["id"])
            self.positions.add(one["position"])
            if not one["duplicate"]:
                self.outcomes[event["id"]] += 1


class Troubles:
    """What goes wrong while the clients send: one trouble at a time, each brought to its end."""

    def __init__(
        self, rng: random.Random, server: RedisServer, proxy: Proxy, workers: Sequence[ForkedWorker]
    ) -> None:
        self._rng = rng
        self._server = server
        self._proxy = proxy
        self._workers = workers

    def all(self) -> list[Callable[[], None]]:
        """Return them in the order in which they come; every worker is killed once."""
        troubles: list[Callable[[], None]] = [
            *[self.lose_answers] * 3,
            *[self.cut_connections] * 2,
            *[self.flush_scripts] * 2,
            self.restart_the_server,
            self.kill_the_server,
            self.freeze_the_server,
            *[functools.partial(self.kill, worker) for worker in self._workers],
        ]
        self._rng.shuffle(troubles)
        return troubles

    def lose_answers(self) -> None:
        """Let Redis run some commands and lose what it says."""
        self._proxy.drop_replies = self._rng.randint(3, 10)

    def cut_connections(self) -> None:
        """Cut the workers' connections wherever they are."""
        self._proxy.cut()

    def flush_scripts(self) -> None:
        """Make Redis forget the scripts."""
        with self._server.client() as client:
            client.script_flush()

    def restart_the_server(self) -> None:
        """Stop Redis in order and start it from its append-only file."""
        self._server.stop()
        self._server.start()

    def kill_the_server(self) -> None:
        """Kill Redis in mid-write; with appendfsync always it keeps what it acknowledged."""
        self._server.kill()
        self._server.start()

    def freeze_the_server(self) -> None:
        """Stop Redis from answering for longer than a command may take; then it does them all."""
        self._server.signal(signal.SIGSTOP)
        time.sleep(1.2)
        self._server.signal(signal.SIGCONT)

    def kill(self, worker: ForkedWorker) -> None:
        """Kill a worker and start it again."""
        worker.kill()
        worker.start()


async def drill(
    clients: Clients, bodies: Sequence[Event | list[Event]], troubles: Sequence[Callable[[], None]]
) -> None:
    """Send all bodies, with every trouble under load, and return when all are acknowledged."""
    jobs: asyncio.Queue[Event | list[Event]] = asyncio.Queue()
    share = len(bodies) // (len(troubles) + 1)
    sending = iter(bodies)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(clients.run(number, jobs)) for number in range(CLIENTS)]
        for trouble in troubles:
            for body in itertools.islice(sending, share):
                jobs.put_nowait(body)
            while jobs.qsize() > share * 2 // 3:  # noqa: ASYNC110 - the queue has no such event
                await asyncio.sleep(0.005)
            await asyncio.to_thread(trouble)
        for body in sending:
            jobs.put_nowait(body)
        await jobs.join()
        for task in tasks:
            task.cancel()


@dataclass(frozen=True)
class Fleet:
    """Four workers on one Redis, behind a proxy that misbehaves."""

    server: RedisServer
    proxy: Proxy
    workers: Sequence[ForkedWorker]


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    server = RedisServer(tmp_path / "redis", fsync="always")
    server.start()
    proxy = Proxy(server.port)
    proxy.start()
    settings = {
        "retention_bytes": 2**40,
        "snapshot_every_events": 500,
        "snapshot_every_ms": 200,
        "housekeeping_ms": 50,
    }
    workers = [ForkedWorker(proxy.url, **settings) for _ in range(WORKERS)]
    try:
        for worker in workers:
            worker.start(wait=False)
        for worker in workers:
            worker.wait_until_alive()
        yield Fleet(server, proxy, workers)
    finally:
        for worker in workers:
            worker.kill()
        proxy.stop()
        server.kill()


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_every_event_counts_once_and_in_one_order_whatever_breaks(fleet: Fleet, seed: int) -> None:
    rng = random.Random(seed)
    events = made_events(rng, EVENTS)
    bodies = made_bodies(rng, events)
    troubles = Troubles(rng, fleet.server, fleet.proxy, fleet.workers).all()
    assert httpx.put(f"{fleet.workers[0].url}{PATH}", json=SPEC, verify=False).status_code == 201

    clients = Clients([worker.url for worker in fleet.workers], seed)
    asyncio.run(drill(clients, bodies, troubles))

    print(f"seed {seed}: {len(bodies)} calls, retries {dict(clients.retries)}")
    ids = {event["id"] for event in events}
    assert len(clients.acknowledged) == len(ids) == EVENTS
    assert max(clients.outcomes.values()) == 1, "an event was answered as new twice"
    with fleet.server.client() as client:
        folded = fold_log(client, STREAM, hinged.Perceptron(learning_rate=0.3))
        assert [i for i, times in Counter(folded.counted_ids).items() if times > 1] == []
        assert ids - set(folded.counted_ids) == set()
        assert (folded.accounts["events"], folded.rejected) == (EVENTS, 0)
        assert [p for p in clients.positions if not folded.reached(p)] == []
        end = f"{folded.position}.{folded.chain}"
        for worker in fleet.workers:
            weights, accounts = served(worker, PATH, end)
            assert bits(weights) == bits(folded.weights)
            shown = {name: value for name, value in folded.accounts.items() if name != "clock"}
            assert bits(accounts) == bits(shown)
        uid = model_uid(client, MODEL)
        stored = wait_for_snapshot(client, STREAM, uid, folded.position)
        assert stored.follower == f"{stored.position} {stored.chain}" == end.replace(".", " ")
        assert bits(stored.weights) == bits(folded.weights)
        assert bits(stored.accounts) == bits(folded.accounts)
        assert (stored.rejected, stored.sizes) == (0, {"weights": len(folded.weights)})
        assert lasting_keys(client) <= lasting(uid)
    assert folded.accounts["mistakes"] < 0.35 * EVENTS, "the labels can be learned"


def lasting(uid: str) -> set[str]:
    """Return the keys that one stream with one model may leave for good."""
    own = {f"model:{uid}:state", f"model:{uid}:weights"}
    kinds = {"meta", "log", "followers", "producers", "seen:0", "seen:1"} | own
    return {"hinged:models"} | {f"hinged:{{{STREAM}}}:{kind}" for kind in kinds}


def lasting_keys(client: redis.Redis) -> set[str]:
    """Return the keys that do not expire by themselves."""
    return {str(key) for key in client.scan_iter() if client.ttl(key) == -1}
