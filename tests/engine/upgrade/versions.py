"""Two versions of the service in one process whose arithmetic differs, and what they must come to.

Which one runs is a matter of the context that the calls are made in: tasks take over that of
the code that starts them, so a worker that is only used in its own context is of one version.
"""

import asyncio
import contextvars
import copy
import json
from collections.abc import Awaitable, Callable, Iterable
from types import SimpleNamespace
from typing import Any, TypeVar

import msgspec
import pytest
import redis

import hinged
from hinged_service.engine import group_commit
from hinged_service.engine.live_model import AppendResult, LiveModel
from hinged_service.engine.upgrade import Handover
from hinged_service.model import state as fold
from hinged_service.wire import codec
from tests.support.checks import order_of
from tests.support.engine import Event, State, Worker, exact, replica_state
from tests.support.plain_fold import accounts

T = TypeVar("T")

OLD, NEW = "version-1", "version-2"
RATES = {OLD: 1.0, NEW: 1.0 + 2.0**-20}
"""Factor of every event's weight, by version: states that were mixed up show."""

_version: contextvars.ContextVar[str] = contextvars.ContextVar("version", default="")
_process = [OLD]


_learn_all: Any = fold.ModelState.learn_all


def _tag() -> str:
    return _version.get() or _process[0]


def _learn_all_so(self: fold.ModelState, events: Any, *rest: Any) -> Any:
    rate = RATES[_tag()]
    mine = [e if e is None else msgspec.structs.replace(e, w=e.w * rate) for e in events]
    return _learn_all(self, mine, *rest)


@pytest.fixture
def versions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the fold and its tag be those of the context's version."""
    monkeypatch.setattr(codec, "fold_tag", _tag)
    same = SimpleNamespace(Context=contextvars.copy_context)  # its tasks leave the context else
    monkeypatch.setattr(group_commit, "contextvars", same)
    monkeypatch.setattr(fold.ModelState, "learn_all", _learn_all_so)


def become_old() -> None:
    _become(OLD)


def become_new() -> None:
    _become(NEW)


def _become(version: str) -> None:
    _process[0] = version
    codec.fold_tag = _tag
    setattr(fold.ModelState, "learn_all", _learn_all_so)  # noqa: B010 - mypy sees no assignment then


class Versioned:
    """A worker of one version; every call runs in that version's context."""

    def __init__(self, version: str, url: str, **changes: Any) -> None:
        self.version = version
        self._context = contextvars.copy_context()
        self._context.run(_version.set, version)
        self.worker: Worker = self._context.run(lambda: Worker(url, **changes))
        self._calls: set[asyncio.Task[Any]] = set()

    async def do(self, call: Callable[[Worker], Awaitable[T]]) -> T:

        async def run() -> T:
            return await call(self.worker)

        task = asyncio.get_running_loop().create_task(run(), context=self._context)
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        return await task

    async def create(self, name: str, **parts: Any) -> None:
        await self.do(lambda one: one.create(name, **parts))

    async def learn(self, name: str, *events: Event) -> AppendResult:
        return await self.do(lambda one: one.learn(name, *events))

    async def read(self, name: str) -> LiveModel:
        return await self.do(lambda one: one.read(name))

    async def state(self, name: str) -> State:
        return replica_state(await self.read(name))

    async def save(self, name: str) -> None:
        await self.do(lambda one: one.save(name))

    async def save_for_sure(self, name: str) -> None:
        await self.do(lambda one: one.save_for_sure(name))

    async def upgrade(self, name: str) -> Handover:
        return await self.do(lambda one: one.lifecycle.upgrade(name))

    async def kill(self) -> None:
        """Stop where it stands; callers that wait get no answer."""
        calls = list(self._calls)
        await self.do(lambda one: one.kill())
        for call in calls:
            call.cancel()


class Plain:
    """A model's log folded by hand: each upgrade goes on from the place that it names.

    Parameters
    ----------
    client
        A client that decodes its replies.
    name, version
        The model's name, and the version that made it.
    keep
        Ids of entries at which its state is wanted.

    """

    def __init__(
        self, client: redis.Redis, name: str, version: str, keep: Iterable[str] = ()
    ) -> None:
        index = json.loads(str(client.hget("hinged:models", name)))
        log: Any = client.xrange(f"hinged:{{{index['stream']}}}:log")
        base = index["base"].partition(".")[0]
        ids = [entry_id for entry_id, _ in log]
        assert base in ids, "the log's beginning was trimmed away: raise the retention"
        entries = log[ids.index(base) + 1 :]
        commands = [json.loads(fields.get("command", "{}")) for _, fields in entries]
        mine = [c if c.get("model") == index["uid"] else {} for c in commands]
        ups = [c if c.get("do") == "upgrade" else None for c in mine]
        self.upgrades = sum(up is not None for up in ups)
        self.counted: list[str] = []
        self.end = f"{ids[-1]}.{log[-1][1]['chain']}"
        self._version = version
        self._kept: dict[str, hinged.Perceptron] = {}
        self._keep = {*keep, *(up["from"] for up in ups if up is not None)}
        self._learner = hinged.Perceptron()
        self._note(base)
        for number, (entry_id, fields) in enumerate(entries):
            self._fold(entry_id, fields)
            self.counted += [e["id"] for e in _events(fields) if e.get("id") is not None]
            if (up := ups[number]) is not None:
                self._version = up["fold"]
                self._learner = copy.deepcopy(self._kept[up["from"]])
                for again_id, again in entries[: number + 1]:
                    if order_of(again_id) > order_of(up["from"]):
                        self._fold(again_id, again)

    def _fold(self, entry_id: str, fields: dict[str, str]) -> None:
        for event in _events(fields):
            w = event.get("w", 1.0) * RATES[self._version]
            self._learner.learn_one({k: float(v) for k, v in event["x"].items()}, event["y"], w)
        self._note(entry_id)

    def _note(self, entry_id: str) -> None:
        if entry_id in self._keep:
            self._kept[entry_id] = copy.deepcopy(self._learner)

    def state(self, entry_id: str | None = None) -> State:
        learner = self._learner if entry_id is None else self._kept[entry_id]
        return exact(learner.weights, accounts(learner), 0)


def _events(fields: dict[str, str]) -> list[Event]:
    skip = set(json.loads(fields.get("skip", "[]")))
    return [e for n, e in enumerate(json.loads(fields.get("events", "[]"))) if n not in skip]
