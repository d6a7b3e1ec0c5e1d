"""Empty the inbox of each stream: the door for producers that speak to Redis only.

A producer writes ::

    XADD hinged:{STREAM}:inbox * id ID event JSON

with the event as `POST learn` takes one. Some worker appends it to the log, by
the offset kept with the log: each entry once, in the order of the entries, also after crashes. Each
id once too, if the entry or the event has one. A record that is no event of any model of the
stream becomes a dead letter, in `hinged:{STREAM}:dead`, with the reason. Taken entries are removed.

A user for producers, who can write into inboxes and touch nothing else::

    ACL SETUSER producer on >PASSWORD resetkeys resetchannels -@all +xadd %W~hinged:*:inbox

Such a user can hurt the inbox alone. If it adds an entry with an id far in the future, later ids
continue from there until the inbox is empty and created again. With MAXLEN it can remove entries of
others that were not taken yet.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import random
from collections.abc import Hashable

from hinged_service.engine.live_model import LiveModel
from hinged_service.engine.registry import ModelRegistry
from hinged_service.errors import ModelGone, NotFound, ServiceError, SetAside, Unavailable
from hinged_service.ingest.records import MAX_RECORD_BYTES, Fault, Raw
from hinged_service.ingest.writer import gathered_for
from hinged_service.model.index_entry import IndexEntry
from hinged_service.model.state import ModelState
from hinged_service.settings import TuningSettings
from hinged_service.store.inbox import Item, filled, take
from hinged_service.store.keys import StreamKeys
from hinged_service.store.log_types import INBOX
from hinged_service.tasks import cancel
from hinged_service.wire.codec import DamagedState

__all__ = ["Inboxes"]

logger = logging.getLogger(__name__)

_BATCH = 500
_BATCH_BYTES = 2**20
_MOST_AT_ONCE = 8
_TURN = 20
_INDEX_S = 1.0
_ASIDE_S = 5.0
_SHORT_S = 0.2
_LONGEST_PAUSE_S = 2.0
_IDLE_SHARE = 0.05

_DICE = random.Random()  # noqa: S311 - no secrets; the global one is its user's


class Inboxes:
    """The worker's part in emptying the inboxes."""

    def __init__(self, registry: ModelRegistry, settings: TuningSettings) -> None:
        self._registry = registry
        self._changes = registry.connection.observer.changes
        self._poll_s = settings.inbox_poll_ms / 1000
        self._index: dict[str, IndexEntry] = {}
        self._index_s = -1e9
        self._models: dict[str, dict[str, IndexEntry]] = {}
        self._draining: dict[str, asyncio.Task[None]] = {}
        self._not_before_s: dict[str, float] = {}
        self._task: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()

    def start(self) -> None:
        """Start the background task."""
        self._task = asyncio.create_task(self._watch())

    async def aclose(self) -> None:
        """Stop; records that were read and not yet taken stay in the inboxes."""
        await cancel(self._task)  # first: it begins to drain others
        await cancel(*self._draining.values())

    async def _watch(self) -> None:
        pause_s = self._poll_s
        while True:
            await asyncio.sleep(pause_s * _DICE.uniform(0.8, 1.2))
            began_s = self._loop.time()
            try:
                await self._look()
            except ServiceError:  # Redis is away
                pause_s = min(2 * pause_s, max(_LONGEST_PAUSE_S, self._poll_s))
            except Exception as error:  # noqa: BLE001 - logged there; the next look may go well
                self._log_reason("inboxes", "the inboxes cannot be read", error, exc_info=True)
                pause_s = max(_ASIDE_S, self._poll_s)
            else:
                self._changes.leave("inboxes", logger, "the inboxes are read again")
                pause_s = max(self._poll_s, (self._loop.time() - began_s) / _IDLE_SHARE)

    async def _look(self) -> None:
        now_s = self._loop.time()
        self._not_before_s = {s: t for s, t in self._not_before_s.items() if t > now_s}
        index_due = now_s >= self._index_s + _INDEX_S
        if index_due:
            await self._read_index()
            self._index_s = now_s
        idle = [s for s in self._models if s not in self._draining and s not in self._not_before_s]
        busy = await filled(self._registry.connection, idle)
        _DICE.shuffle(busy)
        if index_due and idle:  # an empty one may be at the end of its ids: see take_inbox.lua
            busy.insert(0, _DICE.choice(idle))
            busy = list(dict.fromkeys(busy))
        for stream in busy[: _MOST_AT_ONCE - len(self._draining)]:
            task = self._draining[stream] = asyncio.create_task(self._drain(stream))
            task.add_done_callback(functools.partial(self._drained, stream))

    def _drained(self, stream: str, _: asyncio.Task[None]) -> None:
        del self._draining[stream]

    async def _read_index(self) -> None:
        index = await self._registry.entries()
        if index == self._index:
            return
        models: dict[str, dict[str, IndexEntry]] = {}
        for name, entry in index.items():
            models.setdefault(entry.stream, {})[name] = entry
        self._models, self._index = models, index

    async def _drain(self, stream: str) -> None:
        """Take batches while there are any, and while no other worker takes them."""
        wait_s = 0.0
        try:
            for _ in range(_TURN):
                if not await self._take_one(stream):
                    break
            self._changes.leave(("inbox", stream), logger, "the inbox of %s works again", stream)
        except SetAside:
            wait_s = _ASIDE_S
        except (NotFound, ModelGone):  # deleted meanwhile
            self._index = {}
            wait_s = _INDEX_S
        except ServiceError:
            wait_s = _SHORT_S
        except Exception as error:  # noqa: BLE001 - logged there; the next look may go well
            expected = isinstance(error, DamagedState)
            self._log_reason(
                ("inbox", stream), f"the inbox of {stream}", error, exc_info=not expected
            )
            wait_s = _ASIDE_S
        if wait_s:
            self._not_before_s[stream] = self._loop.time() + wait_s

    def _log_reason(
        self, key: Hashable, what: str, error: Exception, exc_info: bool = False
    ) -> None:
        """Log once the reason why records stay in an inbox."""
        why = type(error).__name__ if exc_info else error
        self._changes.enter(
            key, logger, "%s: %s", what, why, level=logging.ERROR, exc_info=exc_info
        )

    async def _take_one(self, stream: str) -> bool:
        """Take one batch; return whether to go on at once."""
        inbox = await take(
            self._registry.connection, StreamKeys(stream), _BATCH, _BATCH_BYTES, MAX_RECORD_BYTES
        )
        if not inbox.items:
            return False
        writer = await self._writer(stream)
        records = [_raw(item) for item in inbox.items]
        batch = await gathered_for(writer, records)
        if batch.letters and len(self._models.get(stream, ())) > 1:
            batch = await gathered_for(writer, records, await self._judges(stream, writer))
        try:
            fed = await writer.learn_each(
                batch.events, batch.payload, batch.span(INBOX, INBOX, inbox.offset, inbox.end)
            )
        except ModelGone:
            self._registry.forget(writer.name, writer)
            raise
        return fed.offset in (inbox.offset, inbox.end)  # else another worker is at it

    async def _writer(self, stream: str) -> LiveModel:
        """Return the first model of the stream that works here."""
        why: ServiceError = NotFound("The stream has no models.")
        for name in self._models.get(stream, ()):
            try:
                model = self._registry.live(name) or await self._registry.open(name)
                await model.freshness.ensure_caught_up()
            except (NotFound, ModelGone) as error:
                why = error
            except (SetAside, Unavailable) as error:
                if not isinstance(why, Unavailable):
                    why = error  # what may end soon is reported rather than what will not
            else:
                return model
        raise why

    async def _judges(self, stream: str, writer: LiveModel) -> list[ModelState]:
        """Return the other models of the stream, for events that only they can take."""
        found = []
        for name, entry in self._models.get(stream, {}).items():
            if name != writer.name:
                with contextlib.suppress(ServiceError):  # its pipeline cannot be made here
                    found.append(await asyncio.to_thread(ModelState, entry.fold))  # may import
        return found


def _raw(item: Item) -> Raw:
    body: bytes | Fault
    if item.event is None:
        body = Fault("event", "is not a field of the entry")
    elif isinstance(item.event, int):
        body = Fault("event", f"has {item.event} bytes; at most {MAX_RECORD_BYTES} are taken")
    else:
        body = item.event
    if item.name is None:
        return Raw(item.id, body)
    try:
        return Raw(item.id, body, item.name.decode())
    except UnicodeDecodeError:
        return Raw(item.id, Fault("id", "is not UTF-8"))
