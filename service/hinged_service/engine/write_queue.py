"""The write queue of a model: events that wait to be appended, their batches and answers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from hinged_service.errors import Busy, Conflict, Detail, Expired, NotFound, ServiceError
from hinged_service.model.state import Result
from hinged_service.settings import Settings
from hinged_service.store.log_types import Caller, Refusal, Span, independent_events
from hinged_service.telemetry.observer import Observer
from hinged_service.wire.codec import Position
from hinged_service.wire.events import Event, Json

__all__ = [
    "GATHER_BYTES",
    "AppendResult",
    "PendingWrite",
    "SourceAppendResult",
    "WriteQueue",
    "concat_json",
    "group_by_caller",
    "refusal",
]

GATHER_BYTES = 2**20
"""A batch is not gathered beyond so many bytes of JSON."""


class AppendResult(msgspec.Struct, gc=False):
    """Result of an append for one caller's events.

    Parameters
    ----------
    position
        The position at which all of them are in the model.
    outcomes
        Per event its outcome, or why the model could not take it; `None` for one
        that had counted before (or whose outcome is not known any more).
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
        and it has to go on from here.
    learned
        What became of the events; `None` if nothing was taken, or if the batch had
        been taken before its answer got lost.
    refused
        Indices of events that were not taken, as their id came before with other content.
    errors
        Why, by index.

    """

    offset: str
    learned: AppendResult | None
    refused: frozenset[int] = frozenset()
    errors: Mapping[int, ServiceError] = MappingProxyType({})


class PendingWrite(msgspec.Struct):
    """Events of one caller that wait to be appended.

    Parameters
    ----------
    events, payload, marks
        The events, their JSON joined by commas, what the script has to know of ids.
    deadline_s
        When the caller gives up, on the loop's clock.
    answer
        Becomes what became of them.
    span
        What of an outside source they are.
    each
        Whether each event is taken or refused by itself.

    """

    events: list[Event]
    payload: Json
    marks: list[tuple[int, int, str, str]]
    deadline_s: float
    answer: asyncio.Future[Any]
    span: Span | None = None
    each: bool = False


class WriteQueue:
    """Writes that wait, in the order in which they came.

    Parameters
    ----------
    settings
        The worker's.
    observer
        Counts what is refused.

    Attributes
    ----------
    events, bytes
        How many events wait, and how many bytes their JSON has.

    """

    def __init__(self, settings: Settings, observer: Observer) -> None:
        self._settings = settings
        self._observer = observer
        self._waiting: deque[PendingWrite] = deque()
        self._sources = 0
        self.events = 0
        self.bytes = 0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def _is_full(self, events: int, size: int) -> bool:
        settings = self._settings
        return (
            self.events + events > settings.max_queued_events
            or self.bytes + size > settings.max_queued_bytes
        )

    def put(self, waiting: PendingWrite) -> None:
        """Add at the end.

        Raises
        ------
        Busy
            The queue is full; nothing was taken. A source's batch always fits.

        """
        if (
            self.events
            and waiting.span is None
            and self._is_full(len(waiting.events), len(waiting.payload))
        ):
            self._observer.queue_refused()
            raise Busy("The model's queue is full; nothing was taken.", retry_after_s=1)
        self._waiting.append(waiting)
        self.events += len(waiting.events)
        self.bytes += len(waiting.payload)
        self._sources += waiting.span is not None

    def take(self) -> list[PendingWrite]:
        """Remove and return what goes out together: a source's batch goes alone."""
        most = self._settings.max_batch_events
        if not self._sources and self.events <= most and self.bytes <= GATHER_BYTES:
            taken = list(self._waiting)
            self._waiting.clear()
            self.events = self.bytes = 0
            return taken
        taken = [self._waiting.popleft()]
        events, size = len(taken[0].events), len(taken[0].payload)
        while self._waiting and taken[0].span is None:
            first = self._waiting[0]
            if first.span is not None:
                break
            events += len(first.events)
            size += len(first.payload)
            if events > most or size > GATHER_BYTES:
                break
            taken.append(self._waiting.popleft())
        for waiting in taken:
            self.events -= len(waiting.events)
            self.bytes -= len(waiting.payload)
            self._sources -= waiting.span is not None
        return taken


def refusal(index: int, why: Refusal) -> ServiceError:
    """Return the error of a caller whose events were refused whole."""
    if why is Refusal.TOO_MANY_WAIT:
        return Busy("Too many predictions and early labels wait.", retry_after_s=1)
    if why is Refusal.NO_PREDICTION:
        return NotFound(
            "Nothing was taken: no prediction waits under that id.",
            [Detail(f"[{index}].id", "names no prediction that waits for its label")],
        )
    if why is Refusal.WAITED_TOO_LONG:
        return Expired(
            "Nothing was taken: the prediction was given up before its label came.",
            [Detail(f"[{index}].id", "names a prediction that waited too long")],
        )
    return Conflict(
        "Nothing was taken: an event id was used before for another event.",
        [Detail(f"[{index}].id", "names another event already")],
    )


def group_by_caller(taken: list[PendingWrite]) -> list[Caller]:
    """Return who is taken or refused whole: a caller's events, or each event by itself."""
    group_by_caller: list[Caller] = []
    alone = 0  # callers of one event without an id that follow each other
    for waiting in taken:
        count = len(waiting.events)
        if count == 1 and not waiting.marks:
            alone += 1
            continue
        if alone:
            group_by_caller += independent_events(alone, ())
            alone = 0
        if not waiting.each:
            group_by_caller.append(Caller(count, waiting.marks))
        elif count:
            group_by_caller += independent_events(count, waiting.marks)
    return group_by_caller + independent_events(alone, ()) if alone else group_by_caller


def concat_json(payloads: list[Json]) -> bytes:
    """Return one JSON array of all the callers' events, copying each once."""
    parts: list[Json] = [b"["]
    for payload in payloads:
        parts += (payload, b",")
    parts[-1] = b"]"
    return b"".join(parts)
