"""Group commit: all traffic of one model with its log, one request at a time.

Whatever waits when a request comes back goes out together with the next one. The work
runs in a task of its own: a caller that hangs up cancels its waiting, never the append.
"""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import logging
from collections.abc import Awaitable
from time import perf_counter
from typing import Any

from hinged_service.engine.catch_up import LogFollower
from hinged_service.engine.delayed_labels import DelayedLabels
from hinged_service.engine.snapshots import SnapshotWriter, folded_elsewhere
from hinged_service.engine.status import ModelStatus, Status
from hinged_service.engine.write_queue import (
    AppendResult,
    PendingWrite,
    SourceAppendResult,
    WriteQueue,
    concat_json,
    group_by_caller,
    refusal,
)
from hinged_service.errors import ModelGone, ServiceError, SetAside, Unavailable
from hinged_service.model.state import Result
from hinged_service.retry import RETRY_S
from hinged_service.settings import Settings
from hinged_service.store.log_types import Appended, Batch
from hinged_service.wire.codec import Position

__all__ = ["GroupCommit"]

logger = logging.getLogger(__name__)

_GATHER_S = 0.002
_SLOW_S = 0.001
_FEW = 3
_ROUNDS = 4
_ROUNDS_S = 0.0005
_SMALL_BYTES = 2**16


class GroupCommit:
    """The one task that appends to a model's log and reads it.

    Parameters
    ----------
    settings
        The worker's.
    follower
        The model's replica; no other object moves it.
    queue
        What waits to be appended.
    snapshots
        Saves the replica as it moves.
    delayed
        The model's delayed labels: whether the script has to look for predictions.
    status
        The model's status, changed by what the log answers.
    producer
        A name for this worker and model that no other has.
    sequence
        The worker's counter of batches.

    """

    def __init__(
        self,
        settings: Settings,
        follower: LogFollower,
        queue: WriteQueue,
        snapshots: SnapshotWriter,
        delayed: DelayedLabels,
        status: ModelStatus,
        producer: str,
        sequence: itertools.count[int],
    ) -> None:
        self._settings = settings
        self._follower = follower
        self._queue = queue
        self._snapshots = snapshots
        self._delayed = delayed
        self._status = status
        self._producer = producer
        self._sequence = sequence
        self._observer = follower.observer
        self._readers: list[asyncio.Future[None]] = []
        self._task: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._timeout_s = settings.append_timeout_ms / 1000
        self._redis_timeout_s = settings.redis_timeout_ms / 1000

    @property
    def busy(self) -> bool:
        """Whether something is waiting or under way."""
        return self._task is not None

    def read(self) -> asyncio.Future[None]:
        """Return what is done once the replica is at the log's present end."""
        reader: asyncio.Future[None] = self._loop.create_future()
        self._readers.append(reader)
        self.wake()
        return reader

    def wake(self) -> None:
        """Start the task if it does not run: something waits."""
        if self._task is None:
            nobodys = contextvars.Context()  # the work is for all callers, not for who woke it
            self._task = self._loop.create_task(self._work(), context=nobodys)

    async def aclose(self) -> None:
        """Finish what was accepted; a model that is catching up stops where it is."""
        task = self._task
        if task is not None and not self._status.caught_up:
            while not (task.done() or self._status.caught_up):
                task.cancel()
                await asyncio.wait([task], timeout=0.1)
            if task.cancelled():
                self._task = None
        if self._follower.replica.mid_entry:
            self._snapshots.stop()
        while self._task is not None:
            await asyncio.wait([self._task])

    async def _work(self) -> None:
        while self._queue or self._readers:
            if self._queue:
                taken = self._queue.take()
                began_s = perf_counter()  # the loop's clock stands still between its rounds
                error = await self._guarded(self._commit(taken))
                if error is not None:
                    for waiting in taken:
                        _fail(waiting.answer, error)
                await self._gather(len(taken), perf_counter() - began_s)
            else:
                readers, self._readers = self._readers, []
                error = await self._guarded(self._read_all())
                for reader in readers:
                    if error is not None:
                        _fail(reader, error)
                    elif not reader.done():
                        reader.set_result(None)
            self._snapshots.save_if_due(self._follower.replica)
        self._task = None

    async def _gather(self, answered: int, took_s: float) -> None:
        """Let the callers just answered come back and join the next batch.

        Otherwise the first caller to return is sent alone and the rest wait a full round trip
        (with 16 callers half of all batches held one event). If a round trip is slow, callers
        split into two groups that take turns; with appendfsync always each group would pay for
        a disk write of its own.
        """
        began_s = perf_counter()
        for _ in range(_ROUNDS if answered > _FEW else 1):
            await asyncio.sleep(0)
            if self._queue.events >= answered or perf_counter() - began_s > _ROUNDS_S:
                break
        if took_s > _SLOW_S and self._queue and self._queue.bytes < _SMALL_BYTES:
            await asyncio.sleep(min(took_s / 4, _GATHER_S))

    async def _guarded(self, step: Awaitable[None]) -> ServiceError | None:
        """Carry out a step; return what it failed with, `None` if it went well."""
        try:
            await step
        except ServiceError as error:
            if isinstance(error, SetAside):
                self._end(Status.SET_ASIDE)
                self._log_set_aside(error.detail)
            elif isinstance(error, ModelGone):
                self._end(Status.GONE)
            elif self._status.caught_up:
                self._status.change(Status.STALE if isinstance(error, Unavailable) else Status.LIVE)
            return error
        except (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - a panic in the Rust of River is no Exception
            # the replica may have moved by halves: never use or save it again
            self._end(Status.SET_ASIDE)
            aside = SetAside(f"The model failed: {type(error).__name__}.", retry_after_s=60)
            self._log_set_aside(aside.detail, exc_info=True)
            return aside
        if self._status.now is Status.STALE:
            self._status.change(Status.LIVE)
        return None

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
        batch = Batch(
            self._producer,
            next(self._sequence),
            concat_json([w.payload for w in taken]),
            group_by_caller(taken),
            taken[0].span,
        )
        events = [event for w in taken for event in w.events]
        began_s = perf_counter()  # the loop's clock stands still between its rounds
        reply = await self._send(batch, taken[0].deadline_s)  # who came first waits the shortest
        self._observer.appended(perf_counter() - began_s, len(events))
        if reply.skip:
            self._count_duplicates(batch, reply)
        if reply.kind == "moved":
            if not taken[0].answer.done():
                taken[0].answer.set_result(SourceAppendResult(reply.offset, None))
            return
        own = reply.position
        if own is None:
            raise Unavailable("The append came too late.", retry_after_s=1)
        outcomes: list[Result] | None = None
        folded = await self._follower.fold_between(reply)
        if not folded or reply.kind == "replay" or reply.more:
            outcomes = await self._follower.fold_through(own)
            if outcomes is None and not await self._follower.is_past(own):
                raise Unavailable("A failover of Redis lost the append.", retry_after_s=1)
            if not reply.appended:
                outcomes = None  # the entry there is somebody else's
        elif reply.appended:
            entry = self._follower.replica.entry_of_batch(
                own, batch.payload, reply.skip, len(events), reply.joined
            )
            outcomes = self._follower.replica.fold_entry(entry, events)
        if reply.stored is not None:
            self._follower.replica.note_stored(reply.stored, self._loop.time())
        self._answer(taken, own, outcomes, reply)

    def _count_duplicates(self, batch: Batch, reply: Appended) -> None:
        """Count the events that are in the log already: skipped, but neither early nor refused."""
        refused = sum(batch.callers[caller].count for caller in reply.refused)
        if count := len(reply.skip) - len(reply.early) - refused:
            self._observer.of_model(self._follower.name, "duplicates", count)

    async def _send(self, batch: Batch, deadline_s: float) -> Appended:
        rebuilds = 0
        while True:
            sent_at_s = self._loop.time()
            try:
                reply = await self._follower.log.append(
                    self._follower.replica.position,
                    batch,
                    self._settings.reply_bytes,
                    self._delayed.in_use,
                    min(deadline_s - sent_at_s, self._redis_timeout_s),
                )
            except Unavailable:
                if self._loop.time() + RETRY_S >= deadline_s:
                    raise
                await asyncio.sleep(RETRY_S)
                continue
            if reply.kind == "gone":
                raise ModelGone("The model was deleted.")
            if reply.kind == "ring":
                self._delayed.in_use = True
                continue
            if reply.kind == "other":
                raise folded_elsewhere(reply.fold)
            if reply.kind != "lost":
                if reply.kind == "ok" and not reply.more:
                    self._follower.note_end(sent_at_s)
                return reply
            rebuilds += 1
            await self._follower.rebuild(rebuilds)
            deadline_s = max(deadline_s, self._loop.time() + self._timeout_s)

    @staticmethod
    def _answer(
        taken: list[PendingWrite],
        own: Position,
        outcomes: list[Result] | None,
        reply: Appended,
    ) -> None:
        refused, early = reply.refused, reply.early
        first = caller = 0
        for waiting in taken:
            answer, last = waiting.answer, first + len(waiting.events)
            mine = [None] * (last - first) if outcomes is None else outcomes[first:last]
            within = early and frozenset(i - first for i in early if first <= i < last)
            learned = AppendResult(own, mine, within)
            if waiting.each:
                asked = range(last - first if refused else 0)
                errors = {i: refusal(*refused[caller + i]) for i in asked if caller + i in refused}
                offset = "" if waiting.span is None else waiting.span.end
                if not answer.done():
                    answer.set_result(
                        SourceAppendResult(offset, learned, frozenset(errors), errors)
                    )
                caller += last - first
            else:
                if refused and caller in refused:
                    _fail(answer, refusal(*refused[caller]))
                elif not answer.done():
                    answer.set_result(learned)
                caller += 1
            first = last

    async def _read_all(self) -> None:
        await self._follower.fold_through(None)


def _fail(asked: asyncio.Future[Any], error: BaseException) -> None:
    """Answer with an error, unless there is an answer."""
    if not asked.done():
        asked.set_exception(error)
        asked.exception()  # whoever waits gets it; nobody waiting is no news
