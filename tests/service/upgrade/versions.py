"""Two versions of the service in one process whose arithmetic differs, and what they must come to.

Which one runs is a matter of the context that the calls are made in: tasks take over that of
whoever starts them, so a worker that is only used in its own context is of one version.
"""

from __future__ import annotations

import asyncio
import contextvars
import copy
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
import pytest
import redis

import hinged
from hinged_service import codec, fold
from hinged_service.appender import Appender, Learned
from hinged_service.upgrading import Handover
from tests.support.engine import Event, State, Worker, exact, replica_state
from tests.support.plain_fold import accounts

T = TypeVar("T")

OLD, NEW = "version-1", "version-2"
RATES = {OLD: 1.0, NEW: 1.0 + 2.0**-20}
"""What a version multiplies every event's weight with: states that were mixed up show."""

_version: contextvars.ContextVar[str] = contextvars.ContextVar("version", default=OLD)


@pytest.fixture
def versions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the fold and its tag be those of the context's version."""
    learn_all: Any = fold.Fold.learn_all

    def learn_all_so(self: fold.Fold, events: Any, *rest: Any) -> Any:
        rate = RATES[_version.get()]
        mine = [e if e is None else msgspec.structs.replace(e, w=e.w * rate) for e in events]
        return learn_all(self, mine, *rest)

    monkeypatch.setattr(codec, "fold_tag", _version.get)
    monkeypatch.setattr(fold.Fold, "learn_all", learn_all_so)


class Versioned:
    """A worker of one version; every call runs in that version's context."""

    def __init__(self, version: str, url: str, **changes: Any) -> None:
        self.version = version
        self._context = contextvars.copy_context()
        self._context.run(_version.set, version)
        self.worker: Worker = self._context.run(lambda: Worker(url, **changes))
        self._calls: set[asyncio.Task[Any]] = set()

    async def do(self, call: Callable[[Worker], Awaitable[T]]) -> T:
        """Return what a call of the worker returns."""

        async def run() -> T:
            return await call(self.worker)

        task = asyncio.get_running_loop().create_task(run(), context=self._context)
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        return await task

    async def create(self, name: str, **parts: Any) -> None:
        """Create a model."""
        await self.do(lambda one: one.create(name, **parts))

    async def learn(self, name: str, *events: Event) -> Learned:
        """Do what `POST learn` does."""
        return await self.do(lambda one: one.learn(name, *events))

    async def read(self, name: str) -> Appender:
        """Open the model and bring it to the log's end, or raise."""
        return await self.do(lambda one: one.read(name))

    async def state(self, name: str) -> State:
        """Return the replica's state at the log's end."""
        return replica_state(await self.read(name))

    async def save(self, name: str) -> None:
        """Save the replica's snapshot now."""
        await self.do(lambda one: one.save(name))

    async def upgrade(self, name: str) -> Handover:
        """Let this version go on with the model."""
        return await self.do(lambda one: one.host.upgrade(name))

    async def kill(self) -> None:
        """Stop where it stands; whoever waits for an answer gets none."""
        calls = list(self._calls)
        await self.do(lambda one: one.kill())
        for call in calls:
            call.cancel()


class Plain:
    """A model's log folded by hand: each upgrade goes on from the place that it names."""

    def __init__(self, client: redis.Redis, name: str, version: str) -> None:
        index = json.loads(str(client.hget("hinged:models", name)))
        self._uid = index["uid"]
        self._version = version
        base = index["base"].partition(".")[0]
        log: Any = client.xrange(f"hinged:{{{index['stream']}}}:log")
        ids = [entry_id for entry_id, _ in log]
        assert base in ids, "the log's beginning was trimmed away: raise the retention"
        self.upgrades = 0
        self.counted: list[str] = []
        self._kept = {base: (hinged.Perceptron(), 0)}
        self._last = base
        entries = log[ids.index(base) + 1 :]
        for number, (entry_id, fields) in enumerate(entries):
            self._fold(entry_id, fields)
            command = json.loads(fields.get("command", "{}"))
            if command.get("model") == self._uid and command["do"] == "upgrade":
                self.upgrades += 1
                self._version, self._last = command["fold"], command["from"]
                for again_id, again in entries[: number + 1]:
                    if _order(again_id) > _order(command["from"]):
                        self._fold(again_id, again)
            self.counted += [e["id"] for e in _events(fields) if e.get("id") is not None]

    def _fold(self, entry_id: str, fields: dict[str, str]) -> None:
        learner, rejected = copy.deepcopy(self._kept[self._last])
        for event in _events(fields):
            w = event.get("w", 1.0) * RATES[self._version]
            learner.learn_one({k: float(v) for k, v in event["x"].items()}, event["y"], w)
        self._kept[entry_id] = learner, rejected
        self._last = entry_id

    def state(self, entry_id: str | None = None) -> State:
        """Return what the model is at an entry of the log, at its end if that is left out."""
        learner, rejected = self._kept[entry_id or self._last]
        return exact(learner.weights, accounts(learner), rejected)


def _events(fields: dict[str, str]) -> list[Event]:
    skip = set(json.loads(fields.get("skip", "[]")))
    return [e for n, e in enumerate(json.loads(fields.get("events", "[]"))) if n not in skip]


def _order(entry_id: str) -> tuple[int, int]:
    ms, _, seq = entry_id.partition("-")
    return int(ms), int(seq)
