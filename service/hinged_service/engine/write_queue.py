"""The write queue of a model: events that wait to be appended, their batches and answers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from hinged_service.engine.delayed_labels import DelayedLabels
from hinged_service.engine.refusals import refused_by_log
from hinged_service.errors import Busy, ServiceError
from hinged_service.model.results import Result
from hinged_service.settings import Settings
from hinged_service.store.log_types import Appended, Batch, Caller, Span
from hinged_service.tasks import Answer
from hinged_service.telemetry.observer import Observer
from hinged_service.wire.dedup import mark
from hinged_service.wire.events import Event, Json
from hinged_service.wire.position import Position

__all__ = [
    "GATHER_BYTES",
    "AppendResult",
    "PendingWrite",
    "SourceAppendResult",
    "WriteQueue",
    "answer_all",
    "batch_of",
    "fail",
]

GATHER_BYTES = 2**20
"""Bytes of JSON beyond which a batch takes no further callers."""


class AppendResult(msgspec.Struct, gc=False):
    """Result of an append for one caller's events.

    Parameters
    ----------
    position
        The position at which all of them are in the model.
    outcomes
        Per event its outcome, or why the model could not take it; `None` for one
        that had counted before (or whose outcome is not held any more).
    early
        Indices of labels that came before their prediction and wait for it.

    """

    position: Position
    outcomes: Sequence[Result]
    early: frozenset[int] = frozenset()


class SourceAppendResult(NamedTuple):
    """Result of an append for a source's batch.

    Parameters
    ----------
    offset
        Where the source stands now; if not at the batch's end, nothing was taken
        and it has to continue from here.
    learned
        Result of the events; `None` if nothing was taken, or if the batch had
        been taken before its answer got lost.
    errors
        By index why an event was not taken, as its id came before with other content.

    """

    offset: str
    learned: AppendResult | None
    errors: Mapping[int, ServiceError] = MappingProxyType({})


class PendingWrite(msgspec.Struct):
    """Events of one caller that wait to be appended.

    Attributes
    ----------
    payload
        Their JSON, joined by commas.
    marks
        What the script has to know of ids, as in `Caller`.
    deadline_s
        End of the caller's patience, on the loop's clock.
    each
        True if each event is taken or refused by itself.
    span
        Part of an outside source that they are.

    """

    events: list[Event]
    payload: Json
    marks: list[int | str]
    deadline_s: float
    answer: Answer[Any]
    each: bool = False
    span: Span | None = None


class WriteQueue:
    """Writes that wait, in the order in which they came.

    Attributes
    ----------
    waiting
        The writes.
    events, bytes
        How many events wait, and how many bytes their JSON has.

    """

    __slots__ = (
        *("_delayed", "_loop", "_observer", "_settings", "_timeout_s"),
        *("bytes", "events", "waiting"),
    )

    def __init__(self, settings: Settings, observer: Observer, delayed: DelayedLabels) -> None:
        self._settings = settings
        self._observer = observer
        self._delayed = delayed
        self._timeout_s = settings.append_timeout_ms / 1000
        self._loop = asyncio.get_running_loop()
        self.waiting: list[PendingWrite] = []
        self.events = 0
        self.bytes = 0

    def put(
        self, events: list[Event], payload: Json, answer: Answer[Any], each: bool, span: Span | None
    ) -> None:
        """Add a write at the end; parameters as its fields.

        Raises
        ------
        Busy
            The queue is full; nothing was taken. A source's batch always fits.

        """
        settings, count, size = self._settings, len(events), len(payload)
        if (
            self.events
            and span is None
            and (
                self.events + count > settings.max_queued_events
                or self.bytes + size > settings.max_queued_bytes
            )
        ):
            self._observer.queue_refused()
            raise Busy("The model's queue is full; nothing was taken. Try again.", retry_after_s=1)
        marks: list[int | str] = []
        for i, event in enumerate(events):
            if event.id is not None:
                marks += mark(i, event)
                if event.is_label:
                    self._delayed.in_use = True
        deadline_s = self._loop.time() + self._timeout_s
        self.waiting.append(PendingWrite(events, payload, marks, deadline_s, answer, each, span))
        self.events += count
        self.bytes += size

    def take(self) -> list[PendingWrite]:
        """Remove and return what goes out together, the first at least; a source's goes alone."""
        most, waiting = self._settings.max_batch_events, self.waiting
        count = events = size = 0
        for one in waiting:
            more, larger = events + len(one.events), size + len(one.payload)
            if count and (
                (one.span or waiting[0].span) is not None or more > most or larger > GATHER_BYTES
            ):
                break
            count, events, size = count + 1, more, larger
        self.events -= events
        self.bytes -= size
        taken, self.waiting = waiting[:count], waiting[count:]
        return taken

    def drop(self) -> list[PendingWrite]:
        """Remove and return all."""
        dropped, self.waiting = self.waiting, []
        self.events = self.bytes = 0
        return dropped


def batch_of(producer: str, sequence: int, taken: Sequence[PendingWrite]) -> Batch:
    """Return the batch of what goes out together: one JSON array, each text copied once.

    Its callers are the units that are taken or refused whole. Events without an id that come
    alone are passed to the script as one number, however many follow each other.
    """
    callers: list[Caller] = []
    parts: list[Json] = [b"["]
    alone = 0
    for waiting in taken:
        parts += (waiting.payload, b",")
        count, marks = len(waiting.events), waiting.marks
        if count == 1 and not marks:
            alone += 1
            continue
        if alone:
            callers.append(Caller(alone, by_event=True))
            alone = 0
        if count or not waiting.each:
            callers.append(Caller(count, marks or None, waiting.each))
    if alone:
        callers.append(Caller(alone, by_event=True))
    parts[-1] = b"]"
    return Batch(producer, sequence, b"".join(parts), callers, taken[0].span)


def answer_all(
    taken: Sequence[PendingWrite],
    own: Position,
    outcomes: list[Result] | None,
    reply: Appended,
) -> None:
    """Resolve the writes of a batch; without outcomes all of them are in the log.

    The script numbers its callers: a write, or each event of one that is taken by events.
    """
    refused, early = reply.refused, reply.early
    first = caller = 0
    for waiting in taken:
        answer, count = waiting.answer, len(waiting.events)
        mine = [None] * count if outcomes is None else outcomes[first : first + count]
        within = early and frozenset(i - first for i in early if first <= i < first + count)
        result = AppendResult(own, mine, within)
        if waiting.each:
            errors = {}
            if refused:
                for i in range(count):
                    if caller + i in refused:
                        errors[i] = refused_by_log(*refused[caller + i])
            offset = "" if waiting.span is None else waiting.span.end
            if not answer.done():
                answer.set_result(SourceAppendResult(offset, result, errors))
            caller += count
        else:
            if refused and caller in refused:
                fail(answer, refused_by_log(*refused[caller]))
            elif not answer.done():
                answer.set_result(result)
            caller += 1
        first += count


def fail(asked: Answer[Any], error: BaseException) -> None:
    """Answer with an error, unless there is an answer."""
    if not asked.done():
        asked.set_exception(error)
        asked.exception()  # taken note of: a caller that has hung up is no news
