"""Raw records become events that a model takes, or letters to the dead.

Pure functions. A record is JSON as `POST learn` takes one event (or the label of an earlier
prediction), or the same as a mapping.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from hinged_service.errors import ServiceError
from hinged_service.events import MAX_NAME, Event, MixedEvent, is_label, parse_events, shown
from hinged_service.fold import Fold
from hinged_service.store.logs import Letter, Span

__all__ = ["MAX_RECORD_BYTES", "Batch", "Fault", "Raw", "gather", "read"]

MAX_RECORD_BYTES = 8 * 2**20
_KEPT_BYTES = 1_000

_decode_numbers = msgspec.json.Decoder(Event).decode
_decode_mixed = msgspec.json.Decoder(MixedEvent).decode
_encode = msgspec.json.encode


class Fault(NamedTuple):
    """Why a record is no event of the model.

    Parameters
    ----------
    field
        The field at fault, empty if it is the whole.
    reason
        What must hold there.

    """

    field: str
    reason: str

    def __str__(self) -> str:
        return f"{self.field} {self.reason}".strip()


class Raw(NamedTuple):
    """One record as its source gives it.

    Parameters
    ----------
    offset
        Its place in the source, as people look it up: a number, an entry id.
    body
        JSON, a mapping, or why there is neither.
    name
        The event's id where the source carries it beside the event.

    """

    offset: str
    body: bytes | Mapping[str, Any] | Fault
    name: str | None = None


class Batch(NamedTuple):
    """Consecutive records of a source, as `Appender.feed` takes them.

    Parameters
    ----------
    events
        Those that are events.
    payload
        Their JSON, joined by commas.
    places
        Their offsets.
    letters
        Those that are none.

    """

    events: list[Event]
    payload: bytes
    places: list[str]
    letters: list[Letter]

    def span(self, source: str, start: str, end: str) -> Span:
        """Return what to feed the batch as: the part of `source` from `start` up to `end`."""
        return Span(source, start, end, self.places, self.letters)


def gather(folds: Sequence[Fold], records: Iterable[Raw]) -> Batch:
    """Read records for models on one stream.

    Parameters
    ----------
    folds
        The models; what any of them takes is an event. The faults told are those of the first.
    records
        The records, in the source's order.

    """
    events: list[Event] = []
    parts: list[bytes] = []
    places: list[str] = []
    letters: list[Letter] = []
    for offset, body, name in records:
        found: tuple[Event, bytes] | Fault | None = body if isinstance(body, Fault) else None
        if found is None:
            text = body if isinstance(body, bytes) else _text(body)  # type: ignore[arg-type]
            found = text if isinstance(text, Fault) else read(folds, text, name)
        if isinstance(found, Fault):
            letters.append(Letter(offset, str(found)[:500], _kept(body)))
        else:
            events.append(found[0])
            parts.append(found[1])
            places.append(offset)
    return Batch(events, b",".join(parts), places, letters)


def read(
    folds: Sequence[Fold], body: bytes, name: str | None = None
) -> tuple[Event, bytes] | Fault:
    """Read one record, by the rules of `POST learn`.

    Parameters
    ----------
    folds
        The models, at least one; the first that takes the event decides.
    body
        Its JSON.
    name
        The event's id where it stands beside it. The event may repeat it.

    Returns
    -------
    The event and its JSON for the log, or why no model takes it.

    """
    fault: Fault | None = None
    for fold in folds:
        event = _read_for(fold, body)
        if isinstance(event, Event):
            return (event, body) if name is None else _named(event, body, name)
        fault = fault or event
    return fault or Fault("", "is for no model")


def _read_for(fold: Fold, body: bytes) -> Event | Fault:
    if len(body) > MAX_RECORD_BYTES:
        return Fault("", f"has {len(body)} bytes; at most {MAX_RECORD_BYTES} are taken")
    mixed = fold.takes_mixed
    try:
        event: Event = _decode_mixed(body) if mixed else _decode_numbers(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        found = _read_slowly(body, mixed)
        if isinstance(found, Fault):
            return found
        event = found
    if fold.answers.target(event.y) is None:
        return Fault("y", fold.answers.expected())
    refused = None if is_label(event) else fold.check(event)
    return event if refused is None else Fault(*refused)


def _named(event: Event, body: bytes, name: str) -> tuple[Event, bytes] | Fault:
    if not 1 <= len(name) <= MAX_NAME:
        return Fault("id", f"must be text of 1 to {MAX_NAME} characters")
    if event.id is None:
        event.id = name
        # The body is a valid object that is not empty: one more field, of which the last counts.
        return event, body.rstrip()[:-1] + b',"id":' + _encode(name) + b"}"
    if event.id != name:
        return Fault("id", f"is {shown(event.id)} within the event and {shown(name)} beside it")
    return event, body


def _text(record: Mapping[str, Any]) -> bytes | Fault:
    try:
        return _encode(record)
    except (TypeError, ValueError, OverflowError, RecursionError, UnicodeError) as error:
        return Fault("", f"cannot be written as JSON: {error}")


def _read_slowly(body: bytes, mixed: bool) -> Event | Fault:
    """Return the label of an earlier prediction, which has no features, or the fault."""
    if not body.strip():
        return Fault("", "is empty")
    if body.lstrip().startswith(b"["):
        return Fault("", "is an array: a record is one event")
    try:
        events, _, _ = parse_events(body, 1, mixed)
    except ServiceError as error:
        for detail in error.errors:
            return Fault(detail.field, detail.reason)
        return Fault("", error.detail.removeprefix("The body ").rstrip("."))
    return events[0]


def _kept(body: bytes | Mapping[str, Any] | Fault) -> str:
    text = body if isinstance(body, bytes | Fault) else _text(body)
    return "" if isinstance(text, Fault) else text[:_KEPT_BYTES].decode("utf-8", "replace")
