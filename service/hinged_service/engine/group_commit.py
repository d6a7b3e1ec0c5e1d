"""Group commit: all traffic of one model with its log, one request at a time.

All that waits when a request comes back goes out together with the next one. The work
runs in a task of its own: a caller that hangs up cancels its waiting, never the append.
"""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import logging
from time import perf_counter
from typing import Any, Final

from hinged_service.engine.catch_up import LogFollower
from hinged_service.engine.damage import set_aside_for
from hinged_service.engine.delayed_labels import DelayedLabels
from hinged_service.engine.long_work import TURN_S
from hinged_service.engine.snapshots import SnapshotWriter
from hinged_service.engine.status import Status
from hinged_service.engine.write_queue import (
    PendingWrite,
    SourceAppendResult,
    WriteQueue,
    answer_all,
    batch_of,
    fail,
)
from hinged_service.errors import GoneWithEvents, ModelGone, ServiceError, SetAside, Unavailable
from hinged_service.model.results import Result
from hinged_service.retry import RETRY_S
from hinged_service.store.log_types import Appended, Batch, Span
from hinged_service.tasks import Answer
from hinged_service.wire.codec import DamagedState
from hinged_service.wire.events import Event, Json
from hinged_service.wire.position import EntryId, Position

__all__ = ["GroupCommit"]

logger = logging.getLogger(__name__)

_FEW = 3  # callers of a batch that come back within one round of the loop
_ROUNDS = 4
_ROUNDS_S = 0.0005  # rounds that serve other models may be long
_SLOW_S = 0.001  # a round trip beyond which a pause costs less than a half-empty batch
_GATHER_S = 0.002
_SMALL_BYTES = 2**16  # a larger batch is worth its round trip as it is
_ANSWERS: Final = frozenset({"replay", "stale", "moved"})
"""Kinds of replies that end an append though its entry is not the newest."""


class GroupCommit:
    """The one task that appends to a model's log and reads it.

    No other object moves the follower's replica. `producer` is a name for this worker that no
    other has, `sequence` its counter of batches.
    """

    __slots__ = (
        *("_delayed", "_ended_by", "_follower", "_logged", "_loop", "_observer", "_producer"),
        *("_queue", "_readers", "_redis_timeout_s", "_sequence", "_snapshots", "_status", "_task"),
        *("_timeout_s",),
    )

    def __init__(
        self,
        follower: LogFollower,
        queue: WriteQueue,
        snapshots: SnapshotWriter,
        delayed: DelayedLabels,
        producer: str,
        sequence: itertools.count[int],
    ) -> None:
        settings = follower.settings
        self._follower = follower
        self._status = follower.status
        self._observer = follower.observer
        self._queue = queue
        self._snapshots = snapshots
        self._delayed = delayed
        self._producer = producer
        self._sequence = sequence
        self._readers: list[asyncio.Future[None]] = []
        self._task: asyncio.Task[None] | None = None
        self._ended_by: ServiceError | None = None
        self._logged = False  # of the batch under way: whether the log may have it
        self._loop = asyncio.get_running_loop()
        self._timeout_s = settings.append_timeout_ms / 1000
        self._redis_timeout_s = settings.redis_timeout_ms / 1000

    @property
    def busy(self) -> bool:
        """True if something is waiting or under way."""
        return self._task is not None

    def read(self) -> asyncio.Future[None]:
        """Return what is done once the replica is at the log's present end."""
        reader: asyncio.Future[None] = self._loop.create_future()
        if self._ended_by is not None:
            fail(reader, self._ended_by)
            return reader
        self._readers.append(reader)
        if self._task is None:
            self._start()
        return reader

    async def read_alone(self) -> None:
        """Read the log to its present end; only while no other caller has the model.

        Raises
        ------
        ServiceError
            As callers of `read` get it.

        """
        try:
            await self._follower.fold_through(None)
        except Exception as error:
            raise self._failed(error) from error
        self._snapshots.save_if_due(self._follower.replica)

    def append(
        self,
        events: list[Event],
        payload: Json,
        answer: Answer[Any],
        each: bool = False,
        span: Span | None = None,
    ) -> None:
        """Append events: the only way into the queue; see `WriteQueue.put`."""
        if self._ended_by is not None:
            fail(answer, self._ended_by)
            return
        self._queue.put(events, payload, answer, each, span)
        if self._task is None:
            self._start()

    def _start(self) -> None:
        # A context of its own: the work is for all callers, not for the one that began it.
        self._task = self._loop.create_task(self._work(), context=contextvars.Context())

    async def aclose(self) -> None:
        """Finish what was accepted; a model that is catching up stops where it is."""
        task = self._task
        if task is not None and not self._status.caught_up:
            while not (task.done() or self._status.caught_up):
                task.cancel()
                await asyncio.wait([task], timeout=0.1)
            if task.cancelled():
                self._task = None
                for reader in self._readers:
                    closed = "The model was closed before its log was read. Try again."
                    fail(reader, Unavailable(closed))
                self._readers.clear()
        if self._follower.replica.spoiled:
            self._snapshots.stop()
        while self._task is not None:
            await asyncio.wait([self._task])

    async def _work(self) -> None:
        queue = self._queue
        while queue.waiting or self._readers:
            taken: list[PendingWrite] = []
            readers: list[asyncio.Future[None]] = []
            began_s = perf_counter()  # the loop's clock stands still between its rounds
            try:
                if queue.waiting:  # an append reads the log too: it goes before reads
                    taken = queue.take()
                    await self._commit(taken)
                else:
                    readers, self._readers = self._readers, readers
                    await self._follower.fold_through(None)
                    _resolve(readers)
            except asyncio.CancelledError:
                self._readers += readers  # resolved when the model is closed
                raise
            except (GeneratorExit, KeyboardInterrupt, SystemExit):
                raise  # the worker ends: its callers go with it
            except BaseException as caught:  # noqa: BLE001 - a panic in the Rust of River is no Exception
                self._refuse([*readers, *[waiting.answer for waiting in taken]], caught)
            else:
                if self._status.now is Status.STALE:
                    self._status.change(Status.LIVE)
            if taken:
                await self._gather(len(taken), perf_counter() - began_s)
            self._snapshots.save_if_due(self._follower.replica)
        self._task = None

    async def _gather(self, answered: int, took_s: float) -> None:
        """Let the callers just answered come back and join the next batch.

        Otherwise the first caller to return is sent alone and the rest wait a full round trip
        (with 16 callers half of all batches held one event). A few callers come back within one
        round of the loop; more of them need several.
        """
        queue, began_s = self._queue, perf_counter()
        for _ in range(_ROUNDS if answered > _FEW else 1):
            await asyncio.sleep(0)
            if queue.events >= answered or perf_counter() - began_s > _ROUNDS_S:
                break
        # If a round trip is slow, callers split into two groups that take turns; with
        # appendfsync always each group would pay for a disk write of its own.
        if took_s > _SLOW_S and queue.waiting and queue.bytes < _SMALL_BYTES:
            await asyncio.sleep(min(took_s / 4, _GATHER_S))

    def _refuse(self, answers: list[Answer[Any]], failure: BaseException) -> None:
        """Answer the callers of a step that failed; if that ends the model, all who wait."""
        error = self._failed(failure)
        if self._status.ended:
            self._ended_by = error
            answers += [*self._readers, *[waiting.answer for waiting in self._queue.drop()]]
            self._readers = []
        for answer in answers:
            fail(answer, error)

    def _failed(self, error: BaseException) -> ServiceError:
        """Change the status by what a step failed with; return what its callers get."""
        if isinstance(error, DamagedState):
            error = set_aside_for(error)
        if isinstance(error, SetAside):
            self._end(Status.SET_ASIDE)
            self._log_set_aside(error.detail)
        elif isinstance(error, (ModelGone, GoneWithEvents)):
            self._end(Status.GONE)
        elif isinstance(error, ServiceError):
            if self._status.caught_up:
                self._status.change(Status.STALE if isinstance(error, Unavailable) else Status.LIVE)
        else:
            # The replica may have moved by halves: never use or save it again.
            self._end(Status.SET_ASIDE)
            aside = SetAside(f"The model failed: {type(error).__name__}.", retry_after_s=60)
            self._log_set_aside(aside.detail, exc_info=True)
            return aside
        return error

    def _end(self, status: Status) -> None:
        if not self._status.ended:
            self._status.change(status)
        self._snapshots.stop()

    def _log_set_aside(self, why: str, exc_info: bool = False) -> None:
        follower = self._follower
        self._observer.changes.enter(
            ("aside", follower.entry.uid),
            logger,
            "model %s is set aside: %s",
            follower.name,
            why,
            level=logging.ERROR,
            exc_info=exc_info,
            extra=follower.context,
        )

    async def _commit(self, taken: list[PendingWrite]) -> None:
        try:
            await self._append(taken)
        except ModelGone:  # a caller begins again, with the model that has the name by then
            if self._logged and _may_count_twice(taken):
                raise GoneWithEvents from None
            raise

    async def _append(self, taken: list[PendingWrite]) -> None:
        first = taken[0]
        producer = f"{self._producer}.{self._follower.entry.uid}"
        batch = batch_of(producer, next(self._sequence), taken)
        events = first.events
        if len(taken) > 1:
            events = list(itertools.chain.from_iterable([waiting.events for waiting in taken]))
        began_s = perf_counter()  # the loop's clock stands still between its rounds
        # The first caller waits the shortest; the model's own long work is no fault of Redis.
        deadline_s = max(first.deadline_s, self._follower.worked_until_s + self._timeout_s)
        self._logged = False
        reply = await self._send(batch, deadline_s)
        self._logged = self._logged or reply.kind != "moved"
        self._observer.appended(perf_counter() - began_s, len(events))
        if reply.skip and not (first.span and first.span.door):  # else the script counts them
            self._count_duplicates(batch, reply)
        if reply.kind == "moved":
            if not first.answer.done():
                first.answer.set_result(SourceAppendResult(reply.offset, None))
            return
        own = reply.position
        if own is None:
            raise Unavailable(
                "The append came too late. Send the events again with their ids.",
                retry_after_s=1,
            )
        outcomes = await self._apply(reply, own, batch, events)
        answer_all(taken, own, outcomes, reply)

    async def _apply(
        self, reply: Appended, own: Position, batch: Batch, events: list[Event]
    ) -> list[Result] | None:
        """Apply what the log has up to the batch's entry `own`; return any outcomes."""
        follower = self._follower
        outcomes: list[Result] | None = None
        # Usually no other worker appended, and the own entry follows the replica's position.
        straight = reply.kind == "ok" and not reply.more
        saved = follower.replica.mark_at(reply.stored or "", reply.entries)
        if reply.entries or follower.replica.awaited_upgrade is not None:
            straight = await follower.fold_between(reply) and straight
        if not straight:
            outcomes = await follower.fold_through(own)
            if outcomes is None and not await follower.is_past(own):
                raise Unavailable(
                    "A failover of Redis lost the append. Send the events again with their ids.",
                    retry_after_s=1,
                )
            if not reply.appended:
                outcomes = None  # the entry there is another caller's
        elif reply.appended:
            replica, size, began_s = follower.replica, len(batch.payload), perf_counter()
            entry = replica.own_entry(own, batch.payload, events, reply.skip, reply.joined)
            pace = follower.pace
            if (
                size > pace.few
                or len(events) > pace.most_events
                or replica.taken
                or reply.joined is not None
            ):
                outcomes = await follower.apply(entry, events)
            else:
                outcomes = replica.fold_entry(entry, events)
                if perf_counter() - began_s > TURN_S:
                    pace.note(size, perf_counter() - began_s)
        # Before an entry just appended the snapshot holds nothing new.
        stored = reply.stored
        if stored is not None and (stored != follower.replica.stored or not reply.appended):
            await follower.replica.at_rest(None)
            follower.replica.note_stored(stored, saved)
        if straight:
            follower.seen = reply.seen
        return outcomes

    def _count_duplicates(self, batch: Batch, reply: Appended) -> None:
        """Count the events that are in the log already: skipped, but neither early nor refused."""
        counts = batch.counts
        refused = sum(counts[caller] for caller in reply.refused)
        if count := len(reply.skip) - len(reply.early) - refused:
            self._observer.of_model(self._follower.name, "duplicates", count)

    async def _send(self, batch: Batch, deadline_s: float) -> Appended:
        """Append a batch until the log has it or has finally refused it."""
        follower, rebuilds = self._follower, 0
        while True:
            try:
                reply = await follower.log.append(
                    follower.replica.position,
                    batch,
                    follower.settings.reply_bytes,
                    self._delayed.in_use,
                    min(deadline_s - self._loop.time(), self._redis_timeout_s),
                )
            except Unavailable:
                self._logged = True  # it may be
                if self._loop.time() + RETRY_S >= deadline_s:
                    raise
                await asyncio.sleep(RETRY_S)
                continue
            if reply.kind == "ok":
                if not reply.more and follower.in_trouble:
                    follower.end_trouble()
                return reply
            if reply.kind in _ANSWERS:
                return reply
            if reply.kind == "ring":  # predictions wait on the stream: the script needs their keys
                self._delayed.in_use = True
            elif reply.kind == "lost":  # trimmed or set back: nothing was written
                rebuilds += 1
                await follower.rebuild(rebuilds)
                deadline_s = max(deadline_s, self._loop.time() + self._timeout_s)
            else:
                await self._mend(reply)

    async def _mend(self, reply: Appended) -> None:
        """Save a replica that is past a damaged entry, for others to go on from; or give up."""
        follower = self._follower
        if reply.kind == "damaged":
            damaged = EntryId.of(reply.damaged)
            if follower.replica.position.order >= damaged > EntryId.of(follower.replica.stored):
                await self._snapshots.save(follower.replica)
                if EntryId.of(follower.replica.stored) >= damaged:
                    return
        await follower.give_up(reply)


def _may_count_twice(taken: list[PendingWrite]) -> bool:
    """Return whether any of the events would be learned again if they were sent again."""
    return any(event.id is None for write in taken if write.span is None for event in write.events)


def _resolve(readers: list[asyncio.Future[None]]) -> None:
    """Resolve the readers that still wait: the log was read."""
    for reader in readers:
        if not reader.done():
            reader.set_result(None)
