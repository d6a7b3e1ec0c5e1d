"""Convert raw records to events of a model; the others become dead letters.

Pure functions. A record is JSON as `POST learn` takes one event (or the label of an earlier
prediction), or the same as a mapping.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from hinged.kernel import read_events
from hinged_service.engine.long_work import portions
from hinged_service.errors import ServiceError
from hinged_service.model.state import ModelState
from hinged_service.store.log_types import Door, Letter, Span
from hinged_service.wire.decoding import parse_events
from hinged_service.wire.encodings import without_marks
from hinged_service.wire.events import Event, MixedEvent
from hinged_service.wire.faults import DECODE_ERRORS, MAX_NAME, abbreviated

__all__ = ["MAX_RECORD_BYTES", "Batch", "Fault", "Lot", "Raw", "gather", "labels_alone", "read"]

MAX_RECORD_BYTES = 8 * 2**20
_KEPT_BYTES = 8_192
_LABEL = ("id", "y", "w")
_NUMBERS = frozenset({float})
_MIXED = frozenset({float, str, bool, type(None)})

_decode_numbers = msgspec.json.Decoder(Event).decode
_decode_mixed = msgspec.json.Decoder(MixedEvent).decode
_encode = msgspec.json.encode


class _Parts(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """An event whose label alone counts."""

    x: msgspec.Raw = msgspec.Raw()
    y: bool | int | float | str | None = None
    w: float | None = None
    id: str | None = None


_decode_parts = msgspec.json.Decoder(_Parts).decode


class Fault(NamedTuple):
    """The reason why a record is no event of the model; `field` is empty if it is the whole."""

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
    line
        Its line or row, to stand before what is wrong with it, where the offset does not tell it.
    """

    offset: str
    body: bytes | Mapping[str, Any] | Fault
    name: str | None = None
    line: str = ""


class Lot(NamedTuple):
    """Consecutive records as columns, which are read several times as fast if all are events.

    Parameters
    ----------
    places
        Their offsets, as text or as numbers.
    texts
        Their JSON, without white space around it; `None` where there is only the event.
    events
        The events: decoded from that JSON, or a mapping that is checked but for what depends
        on the model. `None` altogether: the JSON was not looked at yet.
    each
        Returns them one by one: called if one of them is no event of the model.
    names
        Ids that the source carries beside the events; none at all if it never does.
    """

    places: Sequence[str | int]
    texts: Sequence[bytes | None]
    events: Sequence[dict[str, Any] | Event] | None
    each: Callable[[], Sequence[Raw]]
    names: Sequence[str | None] = ()

    def part(self, some: Sequence[int]) -> Lot:
        """Return some of them."""
        part = slice(some[0], some[-1] + 1)
        return Lot(
            self.places[part],
            self.texts[part],
            None if self.events is None else self.events[part],
            lambda: self.each()[part],
            self.names[part],
        )


class Batch(NamedTuple):
    """Consecutive records of a source, as `LiveModel.learn_each` takes them.

    Parameters
    ----------
    events, payload
        Those that are events, and their JSON, joined by commas.
    places
        Their offsets, as text or as numbers.
    letters
        Dead letters of the others.
    texts
        The JSON of each event.
    """

    events: list[Event]
    payload: bytes
    places: Sequence[str | int]
    letters: list[Letter]
    texts: Sequence[bytes]

    def offsets(self) -> list[str]:
        """Return the offset of each event as text."""
        return list(map(str, self.places))

    def span(self, door: Door, source: str, start: str, end: str, note: str = "") -> Span:
        """Return the span of the batch: the part of `source` from `start` up to `end`."""
        places: Sequence[str] = ()
        sizes: Sequence[int] = ()
        if any(event.id is not None for event in self.events):  # others are never refused
            places, sizes = self.offsets(), list(map(len, self.texts))
        return Span(source, start, end, places, self.letters, sizes, door, note)


def labels_alone(records: Sequence[Raw] | Lot) -> list[Raw]:
    """Return records as labels of predictions that wait: id, label and weight of each."""
    return [_label(raw) for raw in (records.each() if isinstance(records, Lot) else records)]


def _label(raw: Raw) -> Raw:
    body, name = raw.body, raw.name
    if isinstance(body, Fault):
        return raw
    if isinstance(body, bytes):
        try:
            body = msgspec.structs.asdict(_decode_parts(without_marks(body)))
        except DECODE_ERRORS:
            return raw  # reading it raises what is wrong
    label = {part: body[part] for part in _LABEL if body.get(part) is not None}
    if label.setdefault("id", name) is None:
        return raw._replace(body=Fault("id", "is missing: it names the prediction of the label"))
    return raw._replace(body=_encode(label))


def gather(
    states: Sequence[ModelState], records: Sequence[Raw] | Lot
) -> Generator[None, None, Batch]:
    """Read records, in the source's order, for models on one stream; pause after some of them.

    An event is what any of the models takes. The faults reported are those of the first.
    """
    found = []
    if isinstance(records, Lot):
        lot = records._replace(each=functools.cache(records.each))
        for _, some in portions(range(len(lot.places))):
            found.append(_gathered(states, lot.part(some)))
            yield
    else:
        for _, raws in portions(records):
            found.append(_gathered(states, raws))
            yield
    if len(found) == 1:
        return found[0]
    joined = chain.from_iterable
    return Batch(
        list(joined(batch.events for batch in found)),
        b",".join([batch.payload for batch in found if batch.events]),
        list(joined(batch.places for batch in found)),
        list(joined(batch.letters for batch in found)),
        list(joined(batch.texts for batch in found)),
    )


def _gathered(states: Sequence[ModelState], records: Sequence[Raw] | Lot) -> Batch:
    lot = records if isinstance(records, Lot) else _lot(records)
    if lot is not None and (batch := _at_once(states[0], lot)) is not None:
        return batch
    events: list[Event] = []
    parts: list[bytes] = []
    places: list[str | int] = []
    letters: list[Letter] = []
    for offset, body, name, line in records.each() if isinstance(records, Lot) else records:
        found: tuple[Event, bytes] | Fault | None = body if isinstance(body, Fault) else None
        if found is None:
            text = body if isinstance(body, bytes) else _text(body)  # type: ignore[arg-type]
            found = text if isinstance(text, Fault) else read(states, text, name)
        if isinstance(found, Fault):
            letters.append(Letter(offset, f"{line} {found}".strip()[:500], _kept(body)))
        else:
            events.append(found[0])
            parts.append(found[1])
            places.append(offset)
    return Batch(events, b",".join(parts), places, letters, parts)


def _lot(records: Sequence[Raw]) -> Lot | None:
    """Return records that are all JSON as columns."""
    if not records:
        return None
    places, texts, names, _ = zip(*records, strict=True)
    if set(map(type, texts)) != {bytes}:
        return None
    return Lot(places, texts, None, lambda: records, names)


def _at_once(state: ModelState, lot: Lot) -> Batch | None:
    """Return the batch if all are events of the model, alike in kind."""
    try:
        found = _decoded(state, lot) if lot.events is None else _made(state, lot.events, lot.texts)
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError):
        return None  # one of them at least: each by itself
    if found is None:
        return None
    events, parts, payload = found
    if state.faults(events):
        return None
    return Batch(events, payload, lot.places, [], parts)


def _decoded(state: ModelState, lot: Lot) -> tuple[list[Event], Sequence[bytes], bytes] | None:
    texts: Any = lot.texts
    if not texts or max(map(len, texts)) > MAX_RECORD_BYTES:
        return None
    payload = b",".join(texts)
    # Each by itself: joined, two halves of an event would be one.
    events = read_events(list(texts), Event, True) if state.takes_gathered else None
    if events is None:
        events = list(map(_decode_mixed if state.accepts_non_numeric else _decode_numbers, texts))
    if any(name is not None for name in lot.names):
        parts = []
        for event, text, name in zip(events, texts, lot.names, strict=True):
            named = (event, text) if name is None else _named(event, text, name)
            if isinstance(named, Fault):
                return None
            parts.append(named[1])
        texts, payload = parts, b",".join(parts)
    return events, texts, payload


def _made(
    state: ModelState, records: Sequence[dict[str, Any] | Event], texts: Sequence[bytes | None]
) -> tuple[list[Event], Sequence[bytes], bytes] | None:
    """Return checked records as events, and their JSON, which need not be read again."""
    kind, values = (MixedEvent, _MIXED) if state.accepts_non_numeric else (Event, _NUMBERS)
    events: list[Any] = list(records)
    parts: list[Any] = list(texts)
    for at, record in enumerate(records):
        if isinstance(record, Event):
            if not state.takes_gathered:
                record.x = dict(record.x)
            continue
        x, weight = record.get("x"), record.get("w", 1.0)
        if x is None or type(weight) is not float or not values.issuperset(map(type, x.values())):
            return None
        events[at] = kind(x, record["y"], weight, record.get("id"))
        parts[at] = parts[at] or _encode(record)
    payload = b",".join(parts)
    return None if len(payload) > MAX_RECORD_BYTES else (events, parts, payload)


def read(
    states: Sequence[ModelState], body: bytes, name: str | None = None
) -> tuple[Event, bytes] | Fault:
    """Read one record, by the rules of `POST learn`.

    The first model that takes the event decides. `name` is the event's id where it stands beside
    it; the event may repeat it. Returned are the event and its JSON for the log, or why no model
    takes it.
    """
    fault: Fault | None = None
    for state in states:
        found = _read_for(state, body)
        if not isinstance(found, Fault):
            return found if name is None else _named(*found, name)
        fault = fault or found
    return fault or Fault("", "is for no model")


def _read_for(state: ModelState, body: bytes) -> tuple[Event, bytes] | Fault:
    if len(body) > MAX_RECORD_BYTES:
        return Fault("", f"has {len(body)} bytes; at most {MAX_RECORD_BYTES} are taken")
    mixed = state.accepts_non_numeric
    try:
        event: Event = _decode_mixed(body) if mixed else _decode_numbers(body)
    except DECODE_ERRORS:
        found = _read_slowly(body, mixed)
        if isinstance(found, Fault):
            return found
        event, body = found
    faults = state.faults([event])
    return Fault(*faults[0][1]) if faults else (event, body)


def _named(event: Event, body: bytes, name: str) -> tuple[Event, bytes] | Fault:
    if not 1 <= len(name) <= MAX_NAME:
        return Fault("id", f"must be text of 1 to {MAX_NAME} characters")
    if event.id is None:
        event.id = name
        # The body is a valid object that is not empty: one more field; the last one counts.
        return event, body.rstrip()[:-1] + b',"id":' + _encode(name) + b"}"
    if event.id != name:
        return Fault(
            "id", f"is {abbreviated(event.id)} within the event and {abbreviated(name)} beside it"
        )
    return event, body


def _text(record: Mapping[str, Any]) -> bytes | Fault:
    try:
        return _encode(record)
    except (TypeError, ValueError, OverflowError, RecursionError, UnicodeError) as error:
        return Fault("", f"cannot be written as JSON: {error}")


def _read_slowly(body: bytes, mixed: bool) -> tuple[Event, bytes] | Fault:
    """Return an event that takes more than decoding, and its JSON, or the fault."""
    body = without_marks(body)
    if not body.strip():
        return Fault("", "is empty")
    if body.lstrip().startswith(b"["):
        return Fault("", "is an array: a record is one event")
    try:
        events, text, _ = parse_events(body, 1, mixed)
    except ServiceError as error:
        for detail in error.errors:
            return Fault(detail.field, detail.reason)
        return Fault("", error.detail.removeprefix("The body ").rstrip("."))
    return events[0], bytes(text)


def _kept(body: bytes | Mapping[str, Any] | Fault) -> str:
    text = body if isinstance(body, bytes | Fault) else _text(body)
    return "" if isinstance(text, Fault) else text[:_KEPT_BYTES].decode("utf-8", "replace")
