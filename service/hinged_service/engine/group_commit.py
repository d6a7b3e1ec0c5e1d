"""All traffic of one model with its log, one request at a time.

Whatever waits when a request comes back goes out together with the next one
(group commit). The work runs in a task of its own: a caller that hangs up
cancels its waiting, never the append.
"""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import logging
from collections.abc import Awaitable
from time import perf_counter
from typing import Any, Self

from hinged_service.engine.catch_up import LogFollower
from hinged_service.engine.replica import Replica
from hinged_service.engine.snapshots import folded_elsewhere, load_replica
from hinged_service.engine.write_queue import (
    AppendResult,
    PendingWrite,
    SourceAppendResult,
    WriteQueue,
    concat_json,
    group_by_caller,
    refusal,
)
from hinged_service.errors import (
    Busy,
    Conflict,
    Expired,
    ModelGone,
    NotFound,
    ServiceError,
    SetAside,
    Unavailable,
)
from hinged_service.model.spec import IndexEntry
from hinged_service.model.state import Result
from hinged_service.settings import Settings
from hinged_service.store import index, log
from hinged_service.store.connection import Connection
from hinged_service.wire.codec import DamagedState, Position
from hinged_service.wire.events import Event, Json, mark

__all__ = ["RETRY_S", "GroupCommit"]

logger = logging.getLogger(__name__)

RETRY_S = 0.02
"""Pause before what Redis did not answer is sent again."""
_OPEN_S = 1.0
_GATHER_S = 0.002
_SLOW_S = 0.001
_FEW = 3
_ROUNDS = 4
_ROUNDS_S = 0.0005
_SMALL_BYTES = 2**16


class GroupCommit(LogFollower):
    """A live model: its replica, and the queue of what wants to be learned or read.

    Parameters and attributes, but for these, are those of `LogFollower`.

    Parameters
    ----------
    producer
        A name for this worker that nobody else uses.
    sequence
        The worker's counter of batches.

    Attributes
    ----------
    keeps
        Whether predictions are known to wait on the stream for their labels.
    gone
        Whether this object is of no use any more: the model was deleted or set aside.

    """

    def __init__(
        self,
        connection: Connection,
        settings: Settings,
        name: str,
        entry: IndexEntry,
        replica: Replica,
        producer: str,
        sequence: itertools.count[int],
    ) -> None:
        super().__init__(connection, settings, name, entry, replica)
        self.gone = False
        self._producer = f"{producer}.{entry.uid}"
        self._sequence = sequence
        self._queue = WriteQueue(settings)
        self._readers: list[asyncio.Future[None]] = []
        self._task: asyncio.Task[None] | None = None
        self._reading: asyncio.Future[None] | None = None
        self._failing = False
        self.keeps = False
        self._timeout_s = settings.append_timeout_ms / 1000
        self._redis_timeout_s = settings.redis_timeout_ms / 1000

    @classmethod
    async def open(
        cls,
        connection: Connection,
        settings: Settings,
        name: str,
        entry: IndexEntry,
        producer: str,
        sequence: itertools.count[int],
    ) -> Self:
        """Load a model's snapshot and catch up with its log, or begin to if that takes long.

        Raises
        ------
        ModelGone, SetAside, Unavailable
            If there is nothing to load, it cannot be used here, or Redis does
            not answer.

        """
        replica = await load_replica(connection, settings, entry)
        model = cls(connection, settings, name, entry, replica, producer, sequence)
        try:
            model._saver.keep(await index.kept(connection, model.keys.on))
        except DamagedState as error:
            raise SetAside(f"The stream is damaged: {error}.", retry_after_s=60) from error
        reader = asyncio.ensure_future(model.read())
        await asyncio.wait([reader], timeout=_OPEN_S)
        if reader.done():
            reader.result()
        else:
            reader.add_done_callback(_ignore)
        return model

    @property
    def idle(self) -> bool:
        """Whether nothing is waiting or under way."""
        return self._task is None and not self._saver.busy

    @property
    def queued(self) -> int:
        """How many events wait to be appended."""
        return self._queue.events

    @property
    def failing(self) -> bool:
        """Whether the log could not be read or written the last time."""
        return self._failing

    async def ensure_caught_up(self) -> None:
        """Return once the replica has seen the whole log, or raise.

        Raises
        ------
        Unavailable
            It is far behind; the text tells how far.

        """
        if not self.caught_up:
            raise Unavailable(
                "The model is catching up with its stream; "
                f"{await self.progress():.0%} of the log is done.",
                retry_after_s=1,
            )

    def resume_catch_up(self) -> None:
        """Catch up further if Redis was away in between."""
        if not self.caught_up and self._task is None:
            self._read_soon(self.replica)

    async def progress(self) -> float:
        """Return the share of the stream's log that was learned, 1 once its end was seen."""
        if self.caught_up:
            return 1.0
        self.resume_catch_up()
        total = int(await self._connection.hget(self.keys.on.meta, "bytes") or 0)
        return self.replica.log_bytes / total if total else 0.0

    def learn(self, events: list[Event], payload: Json) -> Awaitable[AppendResult]:
        """Append the events to the log; to be awaited for what they did, `Busy` is told at once.

        Parameters
        ----------
        events
            At least one validated event.
        payload
            Their JSON as accepted, joined by commas.

        Raises
        ------
        Busy
            The queue is full; nothing was taken.
        Conflict
            An event id came before with other content; nothing was taken.
        ModelGone
            The model was deleted; nothing was taken.
        Unavailable
            Redis did not answer in time. The events may have been taken; the
            same ones with ids may be sent again.

        """
        if self.caught_up and self.observer.tracing is None:
            return self._put(events, payload, each=False)
        return self._queued(events, payload, each=False)

    async def learn_each(self, events: list[Event], payload: Json) -> SourceAppendResult:
        """Append the events, each by itself: one that is refused does not keep out the others.

        Parameters, and errors but for `Conflict`, as for `learn`.

        Returns
        -------
        What became of them; the offset is empty.

        """
        try:  # as one caller, for the script's sake: refusals are rare
            return SourceAppendResult("", await self._queued(events, payload, each=False))
        except (Conflict, NotFound, Expired):
            fed: SourceAppendResult = await self._queued(events, payload, each=True)
            return fed

    async def _queued(self, events: list[Event], payload: Json, each: bool) -> Any:
        if not self.caught_up:
            await self.ensure_caught_up()
        return await self._traced("append", self._put(events, payload, each), events=len(events))

    def _put(self, events: list[Event], payload: Json, each: bool) -> asyncio.Future[Any]:
        """Let events wait for the next batch; return what becomes their answer."""
        if self._queue.events and self._queue.is_full(len(events), len(payload)):
            self.observer.queue_refused()
            raise Busy("The model's queue is full; nothing was taken.", retry_after_s=1)
        loop = self._loop
        deadline_s = loop.time() + self._timeout_s
        answer: asyncio.Future[Any] = loop.create_future()
        marks = self._marks(events)
        self._queue.put(PendingWrite(events, payload, marks, deadline_s, answer, each=each))
        if self._task is None:
            self._wake()
        return answer

    def _marks(self, events: list[Event]) -> list[tuple[int, int, str, str]]:
        marks = []
        for i, event in enumerate(events):
            if event.id is not None:
                marks.append(mark(i, event))
        if marks and not self.keeps:
            self.keeps = any(kind for _, kind, _, _ in marks)
        return marks

    async def feed(self, events: list[Event], payload: Json, span: log.Span) -> SourceAppendResult:
        """Append what a source outside brings, each event by itself, and move its offset.

        Parameters
        ----------
        events
            Validated events; may be empty, then only the offset moves.
        payload
            Their JSON, joined by commas.
        span
            What of the source they are.

        Raises
        ------
        ModelGone, SetAside, Unavailable
            As for `learn`. The same span may be fed again: it is taken once.

        """
        if not self.caught_up:
            await self.ensure_caught_up()
        marks = self._marks(events)
        deadline_s = self._loop.time() + self._timeout_s
        waiting = PendingWrite(
            events, payload, marks, deadline_s, self._loop.create_future(), span, each=True
        )
        self._queue.put(waiting)
        self._wake()
        fed: SourceAppendResult = await self._traced("append", waiting.answer, events=len(events))
        return fed

    async def offset(self, source: str) -> str:
        """Return where a source stands, empty if nothing of it was ever taken."""
        return await log.offset(self._connection, self.keys.on, source)

    async def letters(self, source: str) -> int:
        """Return how many dead letters of a source are kept."""
        return await log.letters(self._connection, self.keys.on, source)

    async def sources(self) -> int:
        """Return how many sources the stream keeps the offset of."""
        return await log.sources(self._connection, self.keys.on)

    async def read(self) -> None:
        """Bring the replica up to the log's present end.

        Raises
        ------
        ModelGone, SetAside, Unavailable
            The replica stays where it is.

        """
        reader: asyncio.Future[None] = self._loop.create_future()
        self._readers.append(reader)
        self._wake()
        await self._traced("catch up", reader)

    async def _traced(self, name: str, done: asyncio.Future[Any], events: int | None = None) -> Any:
        """Wait for something, under a span if there are any."""
        tracing = self.observer.tracing
        if tracing is None:
            return await done
        with tracing.span(name, self.name, events) as span:
            try:
                return await done
            finally:
                span.set_attribute("hinged.position", str(self.replica.position))

    async def refresh_if_stale(self) -> None:
        """Read the log if the replica is older than allowed; if Redis is slow or away, go on.

        Raises
        ------
        ModelGone
            The model was deleted.

        """
        if self.age_s() <= self._staleness_s:
            return
        if not self.caught_up:
            await self.ensure_caught_up()
        reader = self._reading
        if reader is None:
            reader = self._reading = asyncio.ensure_future(self.read())
            reader.add_done_callback(self._done_reading)
        wait_s = 0.0 if self._failing else self._settings.read_wait_ms / 1000
        await asyncio.wait([reader], timeout=wait_s)
        if self.gone:
            raise ModelGone("The model was deleted.")

    def _done_reading(self, reader: asyncio.Future[None]) -> None:
        self._reading = None
        _ignore(reader)

    async def wait_for_position(self, position: Position) -> None:
        """Wait until the replica is at `position` or later.

        Raises
        ------
        Conflict
            The log holds another history than the one that led to `position`.
        Unavailable
            The log did not get there in time.

        """
        deadline_s = self._loop.time() + self._settings.at_least_timeout_ms / 1000
        while self.replica.position.order < position.order:
            if self._loop.time() >= deadline_s:
                raise Unavailable(
                    "The log has not reached that position. After a failover it may never: "
                    "then read without at_least.",
                    retry_after_s=1,
                )
            await self.read()
            await asyncio.sleep(RETRY_S)
        if not await self._is_past(position):
            raise Conflict("The log's history contradicts that position.")

    def _wake(self) -> None:
        if self._task is None:
            nobodys = contextvars.Context()  # the work is for all callers, not for who woke it
            self._task = self._loop.create_task(self._work(), context=nobodys)

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
            self.save_if_due()
        self._task = None

    async def _gather(self, answered: int, took_s: float) -> None:
        """Let the callers just answered come back and join the next batch.

        Without it the first of them goes out alone and all others wait for that (16 callers:
        half of the batches had one event). Where batches take long two halves of the callers
        would take turns; where the disk decides (appendfsync always) each half would pay for a
        write of its own.
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
            self._failing = type(error) is Unavailable
            if isinstance(error, (ModelGone, SetAside)):
                self._retire()
            if isinstance(error, SetAside):
                self._tell_aside(error.detail)
            return error
        except (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - a panic in the Rust of River is no Exception
            self._retire()  # the replica may have moved by halves: never use or save it again
            aside = SetAside(f"The model failed: {type(error).__name__}.", retry_after_s=60)
            self._tell_aside(aside.detail, exc_info=True)
            return aside
        self._failing = False
        return None

    def _retire(self) -> None:
        self.gone = True
        self._saver.stop()

    def _tell_aside(self, why: str, exc_info: bool = False) -> None:
        self.observer.changes.enter(
            ("aside", self.entry.uid),
            logger,
            "model %s is set aside: %s",
            self.name,
            why,
            level=logging.ERROR,
            exc_info=exc_info,
            extra=self._place,
        )

    async def _commit(self, taken: list[PendingWrite]) -> None:
        batch = log.Batch(
            self._producer,
            next(self._sequence),
            concat_json([w.payload for w in taken]),
            group_by_caller(taken),
            taken[0].span,
        )
        events = [event for w in taken for event in w.events]
        began_s = perf_counter()  # the loop's clock stands still between its rounds
        reply = await self._send(batch, taken[0].deadline_s)  # who came first waits the shortest
        self.observer.appended(perf_counter() - began_s, len(events))
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
        folded = await self._fold_between(reply)
        if not folded or reply.kind == "replay" or reply.more:
            outcomes = await self._fold_through(own)
            if outcomes is None and not await self._is_past(own):
                raise Unavailable("A failover of Redis lost the append.", retry_after_s=1)
            if not reply.appended:
                outcomes = None  # the entry there is somebody else's
        elif reply.appended:
            entry = self.replica.entry_of_batch(
                own, batch.payload, reply.skip, len(events), reply.joined
            )
            outcomes = self.replica.fold_entry(entry, events)
        if reply.stored is not None:
            self.replica.note_stored(reply.stored, self._loop.time())
        self._answer(taken, own, outcomes, reply)

    def _count_duplicates(self, batch: log.Batch, reply: log.Appended) -> None:
        """Count the events that are in the log already: skipped, but neither early nor refused."""
        refused = sum(batch.callers[caller].count for caller in reply.refused)
        if count := len(reply.skip) - len(reply.early) - refused:
            self.observer.of_model(self.name, "duplicates", count)

    async def _send(self, batch: log.Batch, deadline_s: float) -> log.Appended:
        rebuilds = 0
        while True:
            sent_at_s = self._loop.time()
            try:
                reply = await log.append(
                    self._connection,
                    self.keys.on,
                    self.entry.uid,
                    self.replica.position,
                    batch,
                    self._settings.reply_bytes,
                    self.keeps,
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
                self.keeps = True
                continue
            if reply.kind == "other":
                raise folded_elsewhere(reply.fold)
            if reply.kind != "lost":
                if reply.kind == "ok" and not reply.more:
                    self._note_end(sent_at_s)
                return reply
            rebuilds += 1
            await self._rebuild(rebuilds)
            deadline_s = max(deadline_s, self._loop.time() + self._timeout_s)

    @staticmethod
    def _answer(
        taken: list[PendingWrite],
        own: Position,
        outcomes: list[Result] | None,
        reply: log.Appended,
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
        await self._fold_through(None)

    def _read_soon(self, replica: Replica) -> None:
        """Read the log again: a snapshot of `replica` was not of the log's past."""
        if replica is self.replica:
            self.fresh_at_s = -1e9
            reader: asyncio.Future[None] = self._loop.create_future()
            reader.add_done_callback(_ignore)
            self._readers.append(reader)
            self._wake()

    async def aclose(self) -> None:
        """Finish what was accepted and save; Redis being away is no obstacle.

        A model that is catching up goes on from its snapshot at the next start.
        """
        task = self._task
        if task is not None and not self.caught_up:
            while not (task.done() or self.caught_up):
                task.cancel()
                await asyncio.wait([task], timeout=0.1)
            if task.cancelled():
                self._task = None
        if self.replica.mid_entry:
            self._saver.stop()
        while self._task is not None:
            await asyncio.wait([self._task])
        await self.save()


def _fail(asked: asyncio.Future[Any], error: BaseException) -> None:
    """Answer with an error, unless there is an answer."""
    if not asked.done():
        asked.set_exception(error)
        asked.exception()  # whoever waits gets it; nobody waiting is no news


def _ignore(future: asyncio.Future[None]) -> None:
    if not future.cancelled():
        future.exception()
