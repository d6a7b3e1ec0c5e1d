"""Events as they are posted and logged: decoded once, strictly, into typed structs.

`msgspec` decides what is accepted (it parses and validates in one pass, two
thirds of the time of the next best). Whatever it refuses is read a second time,
slowly, to pass over what may be passed over and to name every fault.

Of a name that stands twice in an object the last value counts, and the others need only be JSON.
Marks of UTF-8 in front of the text are passed over.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import UNSET, Meta, UnsetType

from hinged_service.errors import TooLarge
from hinged_service.wire.encodings import without_marks
from hinged_service.wire.faults import (
    MAX_FEATURES,
    MAX_NAME,
    MAX_TEXT,
    MAX_VALUE,
    name_faults,
    no_number,
    shown,
    unexplained,
)

__all__ = [
    "FEW_NAMES",
    "PLAIN",
    "Event",
    "Joined",
    "Json",
    "LateEvent",
    "MeasuredEvent",
    "MixedEvent",
    "MixedQuestion",
    "Question",
    "Value",
    "completed",
    "features_digest",
    "is_label",
    "label_digest",
    "mark",
    "names_fit",
    "not_a_number",
    "parse_events",
    "parse_joined",
    "parse_log",
    "parse_questions",
    "sent_features",
]

FEW_NAMES = 100
"""A decoder remembers names that it need not bound, but no more than a few hundred, of which some
get into each other's way. Events of 30 names, decoded and learned: 1 µs less for each if there
are 30 names in all, nothing for 150, 0.3 µs more for 1,000."""

Value = float | str | bool | None
"""A feature's value as a pipeline takes it; `None` is a missing one."""

Name = Annotated[str, Meta(max_length=MAX_NAME, description="A feature's name.")]
Number = Annotated[float, Meta(ge=-MAX_VALUE, le=MAX_VALUE)]
Text = Annotated[str, Meta(max_length=MAX_TEXT)]
Features = Annotated[
    dict[Name, Number],
    Meta(
        max_length=MAX_FEATURES,
        description="Feature names to finite numbers; what is absent counts as 0.",
        examples=[{"age": 0.4, "clicks": 3}],
    ),
]
MixedFeatures = Annotated[
    dict[Name, Number | Text | bool | None],
    Meta(
        max_length=MAX_FEATURES,
        description="Feature names to numbers, text, true or false, or null for a missing one: "
        "for models whose pipeline takes them.",
        examples=[{"text": "free entry", "hour": 3}],
    ),
]
EventId = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=MAX_NAME,
        description="Names the event: it counts once, however often it is sent.",
    ),
]


Json = bytes | memoryview
"""JSON text, or a part of it that was not copied."""


class Event(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A labelled event.

    Parameters
    ----------
    x
        Feature names (at most 256 characters) to finite numbers of at most 1e100.
    y
        The label, of the model's label type.
    w
        Sample weight, finite, at least 0.
    id
        The event's own name; with it the event counts once.

    """

    x: Features
    y: Annotated[bool | int | float | str, Meta(description="The label.", examples=[True])]
    w: Annotated[float, Meta(ge=0.0, le=MAX_VALUE, description="Sample weight.")] = 1.0
    id: EventId | None = None


class MeasuredEvent(Event, gc=False):
    """An event of whose names it is known that none is too long, before it is decoded.

    Parameters
    ----------
    x
        As in `Event`.
    y, w, id
        As in `Event`.

    """

    x: Annotated[dict[str, Number], Meta(max_length=MAX_FEATURES)]


PLAIN = frozenset({Event, MeasuredEvent})
"""The types of events of which every feature is a number."""


class Question(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """An event without its label.

    Parameters
    ----------
    x
        Feature names to finite numbers, as in `Event`.
    id
        Names the event whose label comes later, under the same id.

    """

    x: Features
    id: EventId | None = None


class MixedEvent(Event, gc=False):
    """A labelled event with features that are not all numbers.

    Parameters
    ----------
    x
        Feature names to numbers, text, booleans, or `None` for a missing value.
    y, w, id
        As in `Event`.

    """

    x: MixedFeatures  # type: ignore[assignment]


class LateEvent(Event, kw_only=True, gc=False):
    """A labelled event that may leave its features out: those of the prediction under its id.

    Parameters
    ----------
    x
        As in `MixedEvent`; left out for the label of an earlier prediction.
    y, w, id
        As in `Event`.

    """

    x: MixedFeatures | UnsetType = UNSET  # type: ignore[assignment]


class Joined(msgspec.Struct, gc=False):
    """A prediction that got its label, as the log tells of it.

    Parameters
    ----------
    at
        When it was first made, in ms since 1970, by the clock of Redis.
    served
        By model uid the label that was served first.
    x
        The features, where the label came without them.
    default
        Whether the label is the stream's default because none came.

    """

    at: float
    served: dict[str, bool | int | str | None]
    x: MixedFeatures | None = None
    default: bool = False


class MixedQuestion(Question, gc=False):
    """An event without its label, with features that are not all numbers.

    Parameters
    ----------
    x
        As in `MixedEvent`.

    """

    x: MixedFeatures  # type: ignore[assignment]


class _Sent(msgspec.Struct, gc=False):
    """A question whose features are not looked into."""

    x: msgspec.Raw


class _Kind(NamedTuple):
    """How one kind of body is read."""

    one: msgspec.json.Decoder[Any]
    many: msgspec.json.Decoder[list[Any]]


def _kind(of: type[Event] | type[Question] | type[_Sent]) -> _Kind:
    return _Kind(msgspec.json.Decoder(of), msgspec.json.Decoder(list[of]))  # type: ignore[valid-type]


_EVENTS = (_kind(Event), _kind(MixedEvent))
_MEASURED = _kind(MeasuredEvent)
_LATE = _kind(LateEvent)
_JOINED = msgspec.json.Decoder(dict[int, Joined])
_QUESTIONS = (_kind(Question), _kind(MixedQuestion))
_SENT = _kind(_Sent)
_FIELDS = _Kind(
    msgspec.json.Decoder(dict[str, msgspec.Raw]),
    msgspec.json.Decoder(list[dict[str, msgspec.Raw]]),
)
_RAW = msgspec.json.Decoder(list[msgspec.Raw])
_PACK = msgspec.msgpack.Encoder(order="deterministic")
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def names_fit(text: bytes) -> bool:
    """Tell whether no name in JSON can be too long, whatever else is wrong with it.

    Without a backslash every quotation mark begins or ends a name or a text, and the next one
    ends or begins it: if they stand close together all the way, nothing between them is long. In
    steps of about 250 bytes this takes 0.2 µs for an event of 30 features. `False` says nothing.
    """
    if b"\\" in text:
        return False
    following, last = 0, text.rindex
    try:
        while True:
            following = last(b'"', following, following + MAX_NAME + 1) + 1
    except ValueError:
        return len(text) - following <= MAX_NAME


def parse_events(
    body: bytes, max_events: int, mixed: bool = False, small_vocabulary: bool = False
) -> tuple[list[Event], Json, bool]:
    """Read a learn body: one event or an array of them.

    Parameters
    ----------
    body
        The request body, UTF-8 JSON.
    max_events
        The longest array taken.
    mixed
        Whether features may be text, booleans and missing too.
    few_names
        Whether `FEW_NAMES` or less are to be expected: that is quicker then.

    Returns
    -------
    The events; their JSON as accepted, without the array's brackets: as sent, but
    for marks in front, and for names that stand twice if it is not valid with
    all of their values; whether it was an array.

    Raises
    ------
    Malformed, Unprocessable, TooLarge
        Naming every fault, up to 20.

    """
    body = body.strip(b" \t\r\n")
    many = body.startswith(b"[")
    # Of a lone event the look takes longer than what it saves.
    quick = small_vocabulary and many and not mixed and names_fit(body)
    kind = _MEASURED if quick else _EVENTS[mixed]
    try:
        events = kind.many.decode(body) if many else [kind.one.decode(body)]
    except _UNREADABLE as error:
        late = _decoded(body, many, _LATE)
        if isinstance(late, Exception) or not _are_late(late, mixed):
            plainer = _plainer(body, many, error, Event.__struct_fields__, mixed)
            return parse_events(plainer, max_events, mixed, small_vocabulary)
        events = late
    if many:
        _check_count(events, max_events)
    return events, memoryview(body)[1:-1] if many else body, many


def parse_questions(
    body: bytes, max_events: int, mixed: bool = False
) -> tuple[list[Question], bytes, bool]:
    """Read a predict body: one event without label, or an array of them.

    Parameters, as far as there are such, and errors are those of `parse_events`.

    Returns
    -------
    The questions; their JSON as accepted, an array with its brackets; whether it
    was an array.

    """
    body = body.strip(b" \t\r\n")
    many = body.startswith(b"[")
    kind = _QUESTIONS[mixed]
    try:
        questions = kind.many.decode(body) if many else [kind.one.decode(body)]
    except _UNREADABLE as error:
        plainer = _plainer(body, many, error, Question.__struct_fields__, mixed)
        return parse_questions(plainer, max_events, mixed)
    if many:
        _check_count(questions, max_events)
    return questions, body, many


def sent_features(body: bytes, many: bool) -> list[str]:
    """Return the JSON of the features of each question as it was sent, a third of writing it anew.

    Parameters
    ----------
    body
        What `parse_questions` returned.
    many
        Whether it was an array.

    """
    sent: list[_Sent] = _SENT.many.decode(body) if many else [_SENT.one.decode(body)]
    return [bytes(one.x).decode() for one in sent]


def _decoded(body: bytes, many: bool, kind: _Kind) -> list[Any] | Exception:
    try:
        return kind.many.decode(body) if many else [kind.one.decode(body)]
    except _UNREADABLE as error:
        return error


def _plainer(
    body: bytes, many: bool, error: Exception, fields: tuple[str, ...], mixed: bool
) -> bytes:
    """Return a body without marks in front, or with the last value only of each name, as sent.

    Raises
    ------
    Malformed, Unprocessable
        That is not what was wrong with it.

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
    except _UNREADABLE as error:
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


def is_label(event: Event) -> bool:
    """Tell whether an event is nothing but the label of an earlier prediction."""
    x: Any = event.x
    return x is UNSET


def _are_late(events: list[LateEvent], mixed: bool) -> bool:
    """Tell whether all events are whole, or labels of what was predicted, of which there is one."""
    labels = [event for event in events if is_label(event)]
    if not labels or any(event.id is None for event in labels):
        return False
    whole: list[Any] = [event.x for event in events if not is_label(event)]
    return mixed or all(not_a_number(x) is None for x in whole)


def _check_count(events: list[Any], max_events: int) -> None:
    if len(events) > max_events:
        raise TooLarge(
            f"The array has {len(events)} events; send at most {max_events} in one call."
        )


def parse_log(payload: bytes) -> list[Event | None]:
    """Read the payload of a log entry; what is no event becomes `None`, for all alike.

    An event of numbers only is an `Event` or, beside others, of a kind that takes
    more; the values are the same. The label of a prediction has no features yet.
    """
    for kind in (_EVENTS[False], _LATE):
        events = _decoded(payload, True, kind)
        if not isinstance(events, Exception):
            return list(events)
    try:
        parts = _RAW.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return []
    return [_event_or_none(part) for part in parts]


def _event_or_none(part: msgspec.Raw) -> Event | None:
    try:
        event: Event = _LATE.one.decode(part)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return event


def not_a_number(x: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return field and fault of the first feature that is no number, `None` if all are."""
    for name, value in x.items():
        if type(value) is not float:
            return f"x[{shown(name)}]", no_number(value)
    return None


def parse_joined(text: bytes) -> dict[int, Joined]:
    """Read what a log entry tells of predictions, by the index of the event that is their label.

    What cannot be read is nothing, for all alike.
    """
    try:
        return _JOINED.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}


def completed(events: Sequence[Event | None], joined: Mapping[int, Joined]) -> list[Event | None]:
    """Return the events of an entry, labels with the features of their predictions.

    A label without one is no event.
    """
    whole: list[Event | None] = []
    for index, event in enumerate(events):
        if event is not None and is_label(event):
            found = joined.get(index)
            x: Any = None if found is None else found.x
            whole.append(None if x is None else MixedEvent(x, event.y, event.w, event.id))
        else:
            whole.append(event)
    return whole


def mark(index: int, event: Event) -> tuple[int, int, str, str]:
    """Return what the append script has to know of an event with an id.

    Parameters
    ----------
    index
        The event's index among its caller's.
    event
        The event; it has an id.

    Returns
    -------
    The index; 1 for the label of a prediction, else 0; the id; digests of features
    and label, or the digest of the label and its JSON. Digests cover the parsed
    values: neither white space nor the order of the features matters.

    """
    name = event.id or ""
    label = _digest((event.y, event.w))
    if is_label(event):
        parts = {"id": name, "y": event.y} | ({} if event.w == 1.0 else {"w": event.w})
        return index, 1, name, label + msgspec.json.encode(parts).decode()
    return index, 0, name, features_digest(event.x) + label


def features_digest(x: Mapping[str, Any]) -> str:
    """Return 14 hex digits that tell the features of two events apart."""
    return _digest(x)


def label_digest(y: Any) -> str:
    """Return 14 hex digits that tell the labels of two events of weight 1 apart."""
    return _digest((y, 1.0))


def _digest(value: Any) -> str:
    return hashlib.sha1(_PACK.encode(value), usedforsecurity=False).hexdigest()[:14]
