"""Decoders of events as they are posted and logged: each event is read once, strictly.

`msgspec` parses and validates in one pass, two thirds of the time of the next best; before it the
kernel may read what is plain, to features that only it can take quickly. A text that
it refuses is read a second time, slowly, to pass over marks and repeated names and to name every
fault.

Of a name that stands twice in an object the last value counts, and the others need only be JSON.
Marks of UTF-8 in front of the text are passed over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from hinged.kernel import read_events, sent_text
from hinged_service.errors import TooLarge
from hinged_service.wire.encodings import without_marks
from hinged_service.wire.events import (
    Event,
    Joined,
    Json,
    LateEvent,
    MixedEvent,
    MixedQuestion,
    Question,
    not_a_number,
)
from hinged_service.wire.faults import DECODE_ERRORS, name_faults, unexplained

__all__ = [
    "completed",
    "parse_events",
    "parse_joined",
    "parse_log",
    "parse_questions",
    "sent_features",
]


class _Sent(msgspec.Struct, gc=False):
    """A question with its features as sent."""

    x: msgspec.Raw


class _Kind(NamedTuple):
    """The decoders of one kind of body: one event, or an array of them."""

    one: msgspec.json.Decoder[Any]
    many: msgspec.json.Decoder[list[Any]]


def _kind(of: type[Event] | type[Question] | type[_Sent]) -> _Kind:
    return _Kind(msgspec.json.Decoder(of), msgspec.json.Decoder(list[of]))  # type: ignore[valid-type]


_EVENTS = (_kind(Event), _kind(MixedEvent))
_LATE = _kind(LateEvent)
_JOINED = msgspec.json.Decoder(dict[int, Joined])
_QUESTIONS = (_kind(Question), _kind(MixedQuestion))
_SENT = _kind(_Sent)
_FIELDS = _Kind(
    msgspec.json.Decoder(dict[str, msgspec.Raw]),
    msgspec.json.Decoder(list[dict[str, msgspec.Raw]]),
)
_RAW = msgspec.json.Decoder(list[msgspec.Raw])


def parse_events(
    body: bytes, max_events: int, mixed: bool = False, gathered: bool = False
) -> tuple[list[Event], Json, bool]:
    """Read a learn body: one event or an array of at most `max_events`.

    Parameters
    ----------
    mixed
        Whether features may be text, booleans and missing too.
    gathered
        Whether features may be mappings that the kernel has read (`hinged.kernel.read_events`)
        instead of dictionaries.

    Returns
    -------
    The events; their JSON without the array's brackets: as sent, but for marks in
    front, and for names that stand twice if it is not valid with all of their
    values; whether it was an array.

    Raises
    ------
    Malformed, Unprocessable, TooLarge
        Naming every fault, up to 20.

    """
    body = body.strip(b" \t\r\n")
    many = body.startswith(b"[")
    kind = _EVENTS[mixed]
    read = read_events(body if many else [body], Event, True) if gathered else None
    try:
        events = read or (kind.many.decode(body) if many else [kind.one.decode(body)])
    except DECODE_ERRORS as error:
        late = _decoded(body, many, _LATE)
        if isinstance(late, Exception) or not _are_late(late, mixed):
            plainer = _plainer(body, many, error, Event.__struct_fields__, mixed)
            return parse_events(plainer, max_events, mixed)
        events = late
    if many:
        _check_count(events, max_events)
    return events, memoryview(body)[1:-1] if many else body, many


def parse_questions(
    body: bytes, max_events: int, mixed: bool = False, gathered: bool = False
) -> tuple[list[Question], bytes, bool]:
    """Read a predict body, with parameters and errors as those of `parse_events`.

    Returns
    -------
    The questions; their JSON, an array with its brackets; whether it was an array.

    """
    body = body.strip(b" \t\r\n")
    many = body.startswith(b"[")
    kind = _QUESTIONS[mixed]
    read = read_events(body if many else [body], Question, False) if gathered else None
    try:
        questions = read or (kind.many.decode(body) if many else [kind.one.decode(body)])
    except DECODE_ERRORS as error:
        plainer = _plainer(body, many, error, Question.__struct_fields__, mixed)
        return parse_questions(plainer, max_events, mixed)
    if many:
        _check_count(questions, max_events)
    return questions, body, many


def sent_features(questions: Sequence[Question], body: bytes, many: bool) -> list[str]:
    """Return the JSON of each question's features, as `parse_questions` returned them.

    It costs a third of encoding it again, or less if the kernel has read them.
    """
    texts = [sent_text(question.x, body) for question in questions]
    if None in texts:
        sent: list[_Sent] = _SENT.many.decode(body) if many else [_SENT.one.decode(body)]
        texts = [bytes(one.x) for one in sent]
    return [text.decode() for text in texts if text is not None]


def _decoded(body: bytes, many: bool, kind: _Kind) -> list[Any] | Exception:
    try:
        return kind.many.decode(body) if many else [kind.one.decode(body)]
    except DECODE_ERRORS as error:
        return error


def _plainer(
    body: bytes, many: bool, error: Exception, fields: tuple[str, ...], mixed: bool
) -> bytes:
    """Return a body without marks in front, or with the last value only of each name, as sent.

    Raise `Malformed` or `Unprocessable` if something else was wrong with it.
    """
    bare = without_marks(body)
    if len(bare) < len(body):
        return bare
    name_faults(body, error, fields, mixed)
    plainer = _last_values(body, many)
    if plainer == body:
        raise unexplained(error) from None
    return plainer


def _last_values(body: bytes, many: bool) -> bytes:
    """Return a body with the last value only of each name."""
    try:
        body.decode()
        found = _FIELDS.many.decode(body) if many else [_FIELDS.one.decode(body)]
    except DECODE_ERRORS as error:
        raise unexplained(error) from None
    parts = []
    for fields in found:
        x = _decoded(fields["x"], False, _FIELDS) if "x" in fields else None
        if isinstance(x, list):
            fields["x"] = _object(x[0])
        parts.append(_object(fields))
    return b"[" + b",".join(parts) + b"]" if many else parts[0]


def _object(fields: Mapping[str, Any]) -> bytes:
    """Write an object of values that are JSON already."""
    parts = [msgspec.json.encode(name) + b":" + bytes(value) for name, value in fields.items()]
    return b"{" + b",".join(parts) + b"}"


def _are_late(events: list[LateEvent], mixed: bool) -> bool:
    """Return whether all events are whole, or labels of predictions, at least one of these."""
    labels = [event for event in events if event.is_label]
    if not labels or any(event.id is None for event in labels):
        return False
    whole: list[Any] = [event.x for event in events if not event.is_label]
    return mixed or all(not_a_number(x) is None for x in whole)


def _check_count(events: list[Any], max_events: int) -> None:
    if len(events) > max_events:
        raise TooLarge(
            f"The array has {len(events)} events; send at most {max_events} in one call."
        )


def parse_log(payload: bytes, gathered: bool = False) -> list[Event | None]:
    """Read the payload of a log entry; an element that is no event becomes `None`, for all alike.

    `gathered` is as for `parse_events`.

    An event of numbers only is an `Event` or, beside others, of a kind that takes more; the
    values are the same. The label of a prediction has no features yet.
    """
    if gathered and (read := read_events(payload, Event, True)):
        return list(read)
    for kind in (_EVENTS[False], _LATE):
        events = _decoded(payload, True, kind)
        if not isinstance(events, Exception):
            return list(events)
    try:
        parts = _RAW.decode(payload)
    except DECODE_ERRORS:
        return []
    return [_event_or_none(part) for part in parts]


def _event_or_none(part: msgspec.Raw) -> Event | None:
    try:
        event: Event = _LATE.one.decode(part)
    except DECODE_ERRORS:
        return None
    return event


def parse_joined(text: bytes) -> dict[int, Joined]:
    """Read the predictions of a log entry, by the index of the event that is their label.

    A text that cannot be read holds none, for all alike.
    """
    try:
        return _JOINED.decode(text)
    except DECODE_ERRORS:
        return {}


def completed(events: Sequence[Event | None], joined: Mapping[int, Joined]) -> list[Event | None]:
    """Return the events of an entry, labels with the features of their predictions or `None`."""
    whole: list[Event | None] = []
    for index, event in enumerate(events):
        if event is not None and event.is_label:
            found = joined.get(index)
            x: Any = None if found is None else found.x
            whole.append(None if x is None else MixedEvent(x, event.y, event.w, event.id))
        else:
            whole.append(event)
    return whole
