"""The storage engine without HTTP: workers in this process, and streams driven by hand."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

import redis

import hinged
from hinged_service.engine.housekeeping import Housekeeping
from hinged_service.engine.lifecycle import ModelLifecycle
from hinged_service.engine.live_model import AppendResult, LiveModel
from hinged_service.engine.registry import ModelRegistry
from hinged_service.engine.status import Status
from hinged_service.errors import ModelGone, ServiceError
from hinged_service.model.spec import ModelSpec
from hinged_service.settings import Settings
from hinged_service.store import followers
from hinged_service.store.connection import Connection
from hinged_service.store.keys import ModelKeys, StreamKeys
from hinged_service.store.log import EventLog
from hinged_service.store.log_types import Appended, Batch, Caller
from hinged_service.wire.decoding import parse_events
from hinged_service.wire.position import Position
from tests.support.long_timeouts import LONG_TIMEOUTS
from tests.support.plain_fold import accounts, fold_log, model_uid, read_snapshot

PERCEPTRON = {"learner": {"type": "perceptron"}}
NEVER_MS = 10**9
"""Far beyond the end of any test."""

Event = dict[str, Any]


def settings(url: str, **changes: Any) -> Settings:
    """Return settings for a worker that saves, sweeps and forgets nothing on its own."""
    quiet: dict[str, Any] = {
        "snapshot_every_ms": NEVER_MS,
        "snapshot_every_byte_s": NEVER_MS,
        "housekeeping_ms": NEVER_MS,
        "max_staleness_ms": 0,
    }
    return Settings(**(LONG_TIMEOUTS | quiet | {"redis_url": url} | changes))


def spec(**parts: Any) -> ModelSpec:
    """Return a model's spec, a plain perceptron unless `parts` say otherwise."""
    return ModelSpec.model_validate_json(json.dumps(PERCEPTRON | parts))


def event(number: int, **parts: Any) -> Event:
    """Return one of an endless row of different events whose order matters to a perceptron."""
    x = {"a": 0.1 * (number % 7) - 0.3, f"n{number % 11}": 1.0 + number / 3, "b": 1 / (1 + number)}
    return {"x": x, "y": number % 3 == 0, "id": f"e{number}"} | parts


def body(*events: Event) -> bytes:
    """Return events as a client posts them."""
    return json.dumps(list(events)).encode()


class Worker:
    """A worker without its HTTP face, in this process and event loop."""

    def __init__(self, url: str, **changes: Any) -> None:
        self.settings = settings(url, **changes)
        self.connection = Connection(url, self.settings)
        self.registry = ModelRegistry(self.connection, self.settings)
        self.lifecycle = ModelLifecycle(self.registry, self.settings)
        self.housekeeping = Housekeeping(self.registry, self.lifecycle, self.settings)

    async def create(self, name: str, **parts: Any) -> None:
        """Create a model."""
        await self.lifecycle.create(name, spec(**parts))

    async def learn(self, name: str, *events: Event, raw: bytes | None = None) -> AppendResult:
        """Do what `POST learn` does, but for the model's check before the log."""
        parsed, payload, _ = parse_events(body(*events) if raw is None else raw, 10**6)
        live_model = await self.registry.open(name)
        try:
            result: AppendResult = await live_model._append(parsed, payload)
        except ModelGone:
            self.registry.forget(name, live_model)
            result = await (await self.registry.open(name))._append(parsed, payload)
        return result

    async def open(self, name: str) -> LiveModel:
        """Do what a prediction does: open the model and look at the log."""
        live_model = await self.registry.open(name)
        try:
            await live_model.freshness.refresh_if_stale()
        except ModelGone:
            self.registry.forget(name, live_model)
            return await self.registry.open(name)
        return live_model

    async def read(self, name: str) -> LiveModel:
        """Open the model and bring it to the log's end, or raise."""
        live_model = await self.registry.open(name)
        await live_model.freshness.read()
        return live_model

    async def state(self, name: str) -> State:
        """Return the replica's state at the log's end."""
        return replica_state(await self.read(name))

    async def save(self, name: str) -> None:
        """Save the replica's snapshot now."""
        await (await self.registry.open(name)).save()

    async def save_for_sure(self, name: str) -> None:
        """Save it, after other workers that hold the stored one while they load it."""
        live_model = await self.registry.open(name)

        async def is_saved() -> bool:
            await live_model.save()
            return live_model.replica.is_saved()

        await until(is_saved, 30)

    async def stop(self) -> None:
        """Stop in order."""
        await self.housekeeping.aclose()
        await self.registry.aclose()
        await self.connection.aclose()

    async def kill(self) -> None:
        """Stop where it stands: all work under way is cut off, nothing is saved."""
        tasks: list[asyncio.Future[Any] | None] = [self.housekeeping._task]
        tasks += [*self.registry._opening.values(), *self.registry._switching._tasks]
        for live_model in self.registry._live.values():
            live_model._commit._end(Status.GONE)
            tasks += [live_model._commit._task, live_model._snapshots._task]
            tasks.append(live_model.freshness._reading)
        alive = {task for task in tasks if task is not None and not task.done()}
        while alive:  # an answer that comes in the same moment may swallow a cancel
            for task in alive:
                task.cancel()
            _, alive = await asyncio.wait(alive, timeout=0.1)
        await self.connection.aclose()


@contextlib.asynccontextmanager
async def worker(url: str, **changes: Any) -> AsyncIterator[Worker]:
    """Give a worker and kill it in the end."""
    one = Worker(url, **changes)
    try:
        yield one
    finally:
        await one.kill()


State = dict[str, Any]


def exact(weights: Mapping[Any, float], account: Mapping[str, int | float], rejected: int) -> State:
    """Return all that decides a model's future, such that equal means equal bit for bit."""
    counts = {k: float(v).hex() if isinstance(v, float) else v for k, v in account.items()}
    bits = {name: float(value).hex() for name, value in weights.items()}
    return {"weights": bits, "rejected": rejected} | counts


def replica_state(live_model: LiveModel) -> State:
    """Return the state of a live replica."""
    fold = live_model.state
    learner: Any = fold.learner
    return exact(learner.weights, accounts(learner), fold.rejected)


def fold_of(client: redis.Redis, stream: str = "m", upto: str = "+") -> State:
    """Return what a plain perceptron is after the stream's whole log, by `hinged` alone."""
    folded = fold_log(client, stream, hinged.Perceptron(), upto=upto)
    return exact(folded.weights, folded.accounts, folded.rejected)


def stored_state(client: redis.Redis, stream: str = "m", uid: str | None = None) -> State:
    """Return a stored snapshot, read by hand; the stream's namesake unless `uid` says whose."""
    stored = read_snapshot(client, stream, uid or model_uid(client, stream))
    assert stored is not None, "nothing was saved"
    assert stored.follower == f"{stored.position} {stored.chain}"
    assert stored.sizes == {"weights": len(stored.weights)}
    return exact(stored.weights, stored.accounts, stored.rejected)


def stored_position(client: redis.Redis, stream: str = "m", uid: str | None = None) -> str:
    """Return the entry id of a model's stored snapshot."""
    value: Any = client.hget(StreamKeys(stream).followers, uid or model_uid(client, stream))
    position: str = value.split()[0]
    return position


class Script:
    """One stream with one follower, driven through the functions of the store."""

    def __init__(self, connection: Connection, stream: str = "s", uid: str = "m") -> None:
        self.connection = connection
        self.keys: StreamKeys = StreamKeys(stream)
        self.model: ModelKeys = self.keys.model(uid)
        self.log = EventLog(connection, self.model)
        self.base = Position("0-0", "0" * 40)
        self.end = self.base

    async def register(self, seen_ms: int = NEVER_MS, seen_ids: int = 10**6) -> Position:
        """Make the stream and its follower."""
        rules = followers.StreamRules(seen_ms, seen_ids)
        self.base = self.end = await followers.register(self.connection, self.model, rules)
        return self.base

    async def append(
        self,
        *callers: Sequence[Event],
        producer: str = "p",
        sequence: int,
        position: Position | None = None,
        reply_bytes: int = 2**22,
    ) -> Appended:
        """Append one batch of arrays, one per caller."""
        payload = b"[" + b",".join(body(*events)[1:-1] for events in callers) + b"]"
        batch = Batch(producer, sequence, payload, [_caller(events) for events in callers])
        reply = await self.log.append(position or self.end, batch, reply_bytes, False)
        if reply.kind == "ok" and reply.position is not None:
            self.end = reply.position
        return reply


def _sha1(value: object) -> str:
    return hashlib.sha1(repr(value).encode()).hexdigest()


def _caller(events: Sequence[Event]) -> Caller:
    marks: list[int | str] = []
    for index, one in enumerate(events):
        if one.get("id") is not None:
            marks += (index, 0, str(one["id"]), _sha1(one["x"])[:14] + _sha1(one["y"])[:14])
    return Caller(len(events), marks or None)


@contextlib.asynccontextmanager
async def connected(url: str, **changes: Any) -> AsyncIterator[Connection]:
    """Give a connection and close it."""
    connection = Connection(url, settings(url, **changes))
    try:
        yield connection
    finally:
        await connection.aclose()


def stream_from_tomorrow(client: redis.Redis, stream: str = "m") -> None:
    """Make a stream by hand whose entry ids are 1, 2, 3 … of one millisecond a day ahead.

    As after a clock that ran ahead: Redis counts on from the last id. So what
    comes after a rollback gets the very ids that were lost.
    """
    keys, uid = StreamKeys(stream), secrets.token_hex(16)
    chain = hashlib.sha1(uid.encode()).hexdigest()
    now: Any = client.time()
    ahead_ms = (now[0] + 86_400) * 1000
    with client.pipeline(transaction=True) as pipe:
        entry: Any = {"genesis": uid, "chain": chain, "bytes": 0, "count": 0}
        pipe.xadd(keys.log, entry, id=f"{ahead_ms}-0")
        meta: Any = {"uid": uid, "last": f"{ahead_ms}-0", "chain": chain, "bytes": 0, "count": 0}
        meta |= {"generation": 0, "generation_start": now[0] * 1000, "generation_ids": 0}
        pipe.hset(keys.meta, mapping=meta | {"seen_ms": NEVER_MS, "seen_ids": 10**6})
        pipe.execute()


async def until(
    condition: Callable[[], bool] | Callable[[], Awaitable[bool]], seconds: float = 10
) -> None:
    """Wait until a condition holds, not longer than `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        result = condition()
        if isinstance(result, bool):
            holds = result
        else:
            try:
                holds = await result
            except ServiceError:
                holds = False
        if holds:
            return
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.005)


def everything(client: redis.Redis) -> dict[str, Any]:
    """Return what a server holds, but for what expires: to tell whether anything was written."""
    content: dict[str, Any] = {}
    for key in client.scan_iter(count=1000):
        if client.ttl(key) != -1:
            continue
        kind: Any = client.type(key)
        if kind == "hash":
            content[key] = client.hgetall(key) if "producers" not in key else client.hlen(key)
        else:
            content[key] = client.xrange(key)
    return content


def leaked_keys(client: redis.Redis, *streams: str) -> list[str]:
    """Return the keys that belong to no stream in `streams` and never expire."""
    allowed = {"hinged:models"}
    for stream in streams:
        keys = StreamKeys(stream)
        allowed |= set(keys.all())
        followers: Any = client.hkeys(keys.followers)
        for uid in followers:
            allowed |= set(keys.model(uid).all())
    found: list[str] = list(client.scan_iter(count=1000))
    return [key for key in found if key not in allowed and client.ttl(key) == -1]
