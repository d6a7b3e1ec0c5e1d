"""The start of a model: end or beginning of the log, or a checkpoint; and the events it skips."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, AwareDatetime, Field, StrictStr

from hinged_service.errors import Detail, Unprocessable
from hinged_service.wire.faults import MAX_DETAILS
from hinged_service.wire.names import NAME_PATTERN
from hinged_service.wire.position import EntryId, Position
from hinged_service.wire.strict_model import StrictModel

__all__ = ["NAME_PATTERN", "Exclude", "Exclusion", "Name", "Start", "StartFrom"]


Name = Annotated[str, Field(pattern=NAME_PATTERN)]


def _entry(text: str) -> str:
    """Return the entry id of a position or entry id."""
    try:
        entry = Position.parse(text).id if "." in text else text
        return str(EntryId.parse(entry))
    except ValueError:
        raise ValueError(
            "must be a position from an answer, or an entry id such as 1700-0"
        ) from None


Entry = Annotated[StrictStr, AfterValidator(_entry)]


class EntryRange(StrictModel):
    """Entries of the log from one to another, both included."""

    first: Entry
    last: Entry


class TimeRange(StrictModel):
    """Entries that arrived in a span of time: from its start until before its end."""

    start: AwareDatetime
    end: AwareDatetime


class Exclude(StrictModel):
    """Events that a model leaves out of its fold, permanently."""

    ids: tuple[Annotated[StrictStr, Field(min_length=1, max_length=256)], ...] = Field(
        (), max_length=10_000, description="Events of these ids."
    )
    entries: tuple[Entry | EntryRange, ...] = Field(
        (),
        max_length=1_000,
        description="All events of these log entries; a position names the entry.",
    )
    times: tuple[TimeRange, ...] = Field(
        (), max_length=1_000, description="Events by the time of their arrival at Redis."
    )

    def check_spans(self) -> None:
        """Raise `Unprocessable` if a span ends before it begins: it would leave out nothing."""
        faults = []
        for i, part in enumerate(self.entries):
            first, last = _span(part)
            if last < first:
                faults.append(Detail(f"exclude.entries.{i}.last", "must not be before first"))
        for i, span in enumerate(self.times):
            if span.end <= span.start:
                faults.append(Detail(f"exclude.times.{i}.end", "must be after start"))
        if faults:
            raise Unprocessable("Nothing was made: see errors.", faults[:MAX_DETAILS])


class StartFrom(StrictModel):
    """The state of another model on the same stream."""

    model: Name = Field(description="The model to start from, as it is now or was.")
    checkpoint: str | None = Field(
        None,
        max_length=128,
        description="Name or uid of one of its stream's checkpoints; the state of this moment if "
        "left out. The model goes on from the checkpoint's place in the log.",
    )


Start = Literal["now", "log"] | StartFrom
"""`now`: from the next event on; `log`: from the oldest entry that the stream still has.

Of a log that was trimmed the oldest entry only marks the place: its events are not learned.
"""


class Exclusion:
    """The events that a model leaves out, as of `exclude` in its spec."""

    def __init__(self, exclude: Exclude) -> None:
        self._ids = frozenset(exclude.ids)
        self._spans = [_span(part) for part in exclude.entries]
        self._spans += [((_ms(t.start), 0), (_ms(t.end) - 1, 2**64)) for t in exclude.times]

    def has_entry(self, entry_id: str) -> bool:
        """Return whether all events of a log entry are left out."""
        order = EntryId.of(entry_id)
        return any(first <= order <= last for first, last in self._spans)

    def has_id(self, event_id: str | None) -> bool:
        """Return whether the event of this id is left out."""
        return event_id in self._ids


def _span(part: str | EntryRange) -> tuple[tuple[int, int], tuple[int, int]]:
    first, last = (part, part) if isinstance(part, str) else (part.first, part.last)
    return EntryId.of(first), EntryId.of(last)


def _ms(moment: datetime) -> int:
    return -int(-moment.timestamp() * 1000 // 1)
