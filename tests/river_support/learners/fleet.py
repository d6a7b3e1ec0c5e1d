"""A fleet in this process: workers behind a proxy that loses answers, killed while clients send."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from typing import Any

import redis

from hinged_service.engine.snapshots import load_replica
from hinged_service.errors import ModelGone, NotFound, SetAside, Unavailable
from hinged_service.model.spec import ModelSpec
from hinged_service.model.state import ModelState
from hinged_service.model.state_codec import state_scalars
from hinged_service.wire.decoding import parse_events
from hinged_service.wire.events import Event, MixedEvent
from tests.support.engine import Worker, body, stored_position, until
from tests.support.proxy import Proxy

WORKERS, CLIENTS = 3, 4
PATIENCE_S = 30.0

Body = Sequence[dict[str, Any]]
Logged = tuple[str, list[Any], frozenset[int]]


def bodies(rng: random.Random, events: Body) -> deque[Body]:
    """Return every event at least once, in bodies of a few, a third of them again later."""
    made: list[Body] = []
    sent = list(events)
    while sent:
        size = rng.randint(1, 8)
        made.append(sent[:size])
        del sent[:size]
        if rng.random() < 0.3:
            made.append(rng.choice(made[-6:]))
    return deque(made)


class Fleet:
    """Workers on one stream, and whatever goes wrong; what is decided here comes from `seed`."""

    def __init__(self, proxy: Proxy, name: str, mixed: bool, seed: int) -> None:
        self.rng = random.Random(seed)
        self.proxy = proxy
        self.name = name
        self.mixed = mixed
        self.workers = [self.new_worker(number) for number in range(WORKERS)]
        self.dead: list[Worker] = []
        self.outcomes: Counter[str] = Counter()
        self.happened: Counter[str] = Counter()
        self._attempts: defaultdict[Worker, set[asyncio.Task[Any]]] = defaultdict(set)

    def new_worker(self, number: int) -> Worker:
        """Return a worker that saves all the time; the first one reads the log in pieces."""
        one = Worker(
            self.proxy.url,
            append_timeout_ms=2_000,
            redis_timeout_ms=400,
            snapshot_every_events=15,
            snapshot_every_ms=50,
            housekeeping_ms=15,
            reply_bytes=(1024, 2**22, 2**22)[number],
            snapshot_chunk=7,
            hold_ms=200,
        )
        one.housekeeping.start()
        return one

    async def send(self, waiting: deque[Body]) -> None:
        """Send all bodies while answers are lost and each worker is killed once."""
        troubles = [*[self._lose] * 3, self._cut, *[self._kill] * WORKERS]
        self.rng.shuffle(troubles)
        share = len(waiting) // (len(troubles) + 1)
        clients = [asyncio.ensure_future(self._client(waiting)) for _ in range(CLIENTS)]
        everybody = asyncio.gather(*clients)
        for number, trouble in enumerate(troubles, start=1):
            left = len(waiting) - share
            while len(waiting) > left and not everybody.done():  # noqa: ASYNC110 - no such event
                await asyncio.sleep(0.001)
            await trouble(number)
        await everybody
        self.proxy.drop_replies = 0

    async def _client(self, waiting: deque[Body]) -> None:
        while waiting:
            events = waiting.popleft()
            end_s = time.monotonic() + PATIENCE_S
            while not await self._attempt(events):
                assert time.monotonic() < end_s, "no worker takes the events"
                await asyncio.sleep(0.01)

    async def _attempt(self, events: Body) -> bool:
        one = self.rng.choice(self.workers)
        task = asyncio.ensure_future(learn(one, self.name, events, self.mixed))
        self._attempts[one].add(task)
        await asyncio.wait([task], timeout=1)
        self._attempts[one].discard(task)
        if not task.done() or task.cancelled():  # a worker that is killed answers nobody
            task.cancel()
            self.happened["unanswered"] += 1
            return False
        error = task.exception()
        assert not isinstance(error, SetAside), f"a sound model is set aside: {error.detail}"
        if isinstance(error, (Unavailable, NotFound, ModelGone)):
            self.happened[type(error).__name__] += 1
            return False
        for event, outcome in zip(events, task.result().outcomes, strict=True):
            self.outcomes[event["id"]] += outcome is not None
        return True

    async def _lose(self, _: int) -> None:
        self.proxy.drop_replies += self.rng.randint(1, 4)

    async def _cut(self, _: int) -> None:
        self.proxy.cut()

    async def _kill(self, _: int) -> None:
        number = self.happened["killed"]
        old, self.workers[number] = self.workers[number], self.new_worker(number)
        self.happened["killed"] += 1
        self.dead.append(old)
        for task in self._attempts.pop(old, ()):
            task.cancel()
        await old.kill()

    async def stop(self) -> None:
        """Kill everybody."""
        for one in [*self.workers, *self.dead]:
            await one.kill()

    async def check(self, client: redis.Redis, events: Body, stream: str) -> ModelState:
        """Check that all replicas and the snapshot are the fold of the log; return that."""
        log = list(logged(client, stream))
        ids = [event["id"] for _, said, skip in log for event in counted(said, skip)]
        assert sorted(ids) == sorted({event["id"] for event in events})
        assert max(self.outcomes.values()) == 1, "an event was answered as new twice"
        for one in self.workers:
            await until(lambda one=one: _has_read(one, self.name))
        replicas = [(await one.open(self.name)).replica for one in self.workers]
        entry = (await self.workers[0].registry.open(self.name)).entry
        plain = folded(entry.spec, log, self.mixed)
        assert (plain.events, plain.rejected) == (len(ids), 0)
        wanted = state_of(plain)
        for replica in replicas:
            assert replica.position.id == log[-1][0]
            assert state_of(replica.state) == wanted
        saver = self.workers[1]

        async def is_saved() -> bool:
            await saver.save(self.name)
            return stored_position(client, stream, entry.uid) == log[-1][0]

        await until(is_saved)
        loaded = await load_replica(saver.connection, saver.settings, entry)
        assert loaded.position.id == log[-1][0]
        assert not loaded.needs_full, "the snapshot is sound"
        assert state_of(loaded.state) == wanted
        return plain


async def _has_read(one: Worker, name: str) -> bool:
    await one.read(name)
    return True


async def learn(one: Worker, name: str, events: Body, mixed: bool) -> Any:
    """Do what `POST learn` does."""
    parsed, payload, _ = parse_events(body(*events), 10**6, mixed)
    live_model = await one.registry.open(name)
    try:
        return await live_model.learn(parsed, payload)
    except ModelGone:
        one.registry.forget(name, live_model)
    return await (await one.registry.open(name)).learn(parsed, payload)


def logged(client: redis.Redis, stream: str) -> Iterator[Logged]:
    """Read a log by hand: id, events and the indices of those that do not count."""
    found: Any = client.xrange(f"hinged:{{{stream}}}:log")
    for entry_id, fields in found:
        if "events" in fields:
            skip = frozenset(json.loads(fields["skip"]))
            yield entry_id, json.loads(fields["events"]), skip


def counted(said: list[Any], skip: frozenset[int]) -> list[Any]:
    """Return the events of an entry that count."""
    return [event for index, event in enumerate(said) if index not in skip]


def folded(start: ModelSpec | ModelState, log: Sequence[Logged], mixed: bool) -> ModelState:
    """Fold a log in one go, without replicas, snapshots or Redis: a fresh model, or on."""
    fold = start if isinstance(start, ModelState) else ModelState(start)
    for entry_id, said, skip in log:
        made: list[Event | None] = []
        for event in said:
            sent = {k: float(v) if type(v) is int else v for k, v in event["x"].items()}
            plain = all(type(value) is float for value in sent.values())
            kind: Any = MixedEvent if mixed or not plain else Event
            made.append(kind(sent, event["y"], float(event.get("w", 1.0)), event.get("id")))
        fold.learn_all(made, skip, entry_id)
    return fold


def state_of(fold: ModelState) -> dict[str, Any]:
    """Return all of a model's state, equal only if it is so to the bit."""
    vectors = {
        name: {repr(n): float(v).hex() for n, v in sorted(vector.view().items())}
        for name, vector in fold.vectors().items()
    }
    return {"scalars": json.dumps(state_scalars(fold), sort_keys=True, allow_nan=False), **vectors}
