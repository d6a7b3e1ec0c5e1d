"""A fleet in this process: workers behind a proxy that loses answers, killed while clients send."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

import redis

from hinged_service.engine.snapshots import load_replica
from hinged_service.errors import ModelGone
from hinged_service.model.spec import ModelSpec
from hinged_service.model.state import ModelState
from hinged_service.model.state_codec import state_scalars
from hinged_service.wire.decoding import parse_events
from hinged_service.wire.events import Event, MixedEvent
from tests.support.engine import Worker, body, stored_position, until
from tests.support.fleet.faults import Fault, Faults, beside
from tests.support.fleet.senders import LocalSenders, in_bodies
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer

WORKERS, CLIENTS = 3, 4

Events = Sequence[dict[str, Any]]
Logged = tuple[str, list[Any], frozenset[int]]


class Fleet(LocalSenders[Worker]):
    """Workers on one stream; each is killed once while clients send events."""

    def __init__(self, proxy: Proxy, name: str, mixed: bool, seed: int) -> None:
        self.rng = random.Random(seed)
        self.proxy = proxy
        self.name = name
        self.mixed = mixed
        super().__init__(
            [self.new_worker(number) for number in range(WORKERS)],
            lambda rng, one, events: learn(one, name, events, mixed),
        )

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

    async def send_all(self, server: RedisServer, events: Events) -> None:
        """Send all events, some again, while answers are lost and each worker is killed once."""
        faults = Faults(self.rng, server, [self.proxy])
        lose = beside(faults.lose_answers)
        troubles: list[Fault] = [*[lose] * 3, beside(faults.cut), *[self._kill] * WORKERS]
        self.rng.shuffle(troubles)
        await self.run(in_bodies(self.rng, events, range(1, 9)), troubles, CLIENTS)
        faults.calm()

    async def _kill(self) -> None:
        number = len(self.dead)
        await self.replace(number, self.new_worker(number))

    async def check(self, client: redis.Redis, events: Events, stream: str) -> ModelState:
        """Check that all replicas and the snapshot are the fold of the log; return that."""
        log = list(logged(client, stream))
        ids = [event["id"] for _, written, skip in log for event in counted(written, skip)]
        assert sorted(ids) == sorted({event["id"] for event in events})
        assert max(map(len, self.counted.values())) == 1, "an event was answered as new twice"
        for one in self.workers:
            await until(lambda one=one: _has_read(one, self.name))
        replicas = [(await one.open(self.name)).replica for one in self.workers]
        entry = (await self.workers[0].registry.open(self.name)).entry
        plain = folded(entry.spec, log, self.mixed)
        assert (plain.events, plain.rejected) == (len(ids), 0)
        wanted = state_of(plain)
        for replica in replicas:
            await replica.at_rest(None)  # long work may have it
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


async def learn(one: Worker, name: str, events: Events, mixed: bool) -> Any:
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


def counted(written: list[Any], skip: frozenset[int]) -> list[Any]:
    """Return the events of an entry that count."""
    return [event for index, event in enumerate(written) if index not in skip]


def folded(start: ModelSpec | ModelState, log: Sequence[Logged], mixed: bool) -> ModelState:
    """Fold a log in one go, without replicas, snapshots or Redis: a fresh model, or on."""
    fold = start if isinstance(start, ModelState) else ModelState(start)
    for entry_id, written, skip in log:
        made: list[Event | None] = []
        for event in written:
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
