"""Events as they are posted and logged: decoded once, strictly, into typed structs.

`msgspec` decides what is accepted (it parses and validates in one pass, two
thirds of the time of the next best). Whatever it refuses is read a second time,
slowly, only to name every fault.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, NoReturn

import msgspec
from msgspec import UNSET, Meta, UnsetType

from hinged_service.errors import Detail, Malformed, TooLarge, Unprocessable

__all__ = [
    "MAX_DETAILS",
    "Event",
    "Joined",
    "Json",
    "LateEvent",
    "MixedEvent",
    "MixedQuestion",
    "Question",
    "Value",
    "completed",
    "features_digest",
    "is_label",
    "label_digest",
    "mark",
    "not_a_number",
    "parse_events",
    "parse_joined",
    "parse_log",
    "parse_questions",
]

MAX_NAME = 256
MAX_FEATURES = 10_000
MAX_VALUE = 1e100
MAX_DETAILS = 20
_EXPLAINED_BYTES = 4 * 2**20

MAX_TEXT = 100_000

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


class _Kind(NamedTuple):
    """How one kind of body is read."""

    one: msgspec.json.Decoder[Any]
    many: msgspec.json.Decoder[list[Any]]
    type: type[Event] | type[Question]
    mixed: bool


def _kind(of: type[Event] | type[Question], mixed: bool) -> _Kind:
    return _Kind(msgspec.json.Decoder(of), msgspec.json.Decoder(list[of]), of, mixed)  # type: ignore[valid-type]


_EVENTS = (_kind(Event, mixed=False), _kind(MixedEvent, mixed=True))
_LATE = _kind(LateEvent, mixed=True)
_JOINED = msgspec.json.Decoder(dict[int, Joined])
_QUESTIONS = (_kind(Question, mixed=False), _kind(MixedQuestion, mixed=True))
_RANGE = "must be a number between -1e100 and 1e100"
_RAW = msgspec.json.Decoder(list[msgspec.Raw])
_PACK = msgspec.msgpack.Encoder(order="deterministic")
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def parse_events(
    body: bytes, max_events: int, mixed: bool = False
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

    Returns
    -------
    The events; their JSON as accepted, without the array's brackets; whether
    it was an array.

    Raises
    ------
    Malformed, Unprocessable, TooLarge
        Naming every fault, up to 20.

    """
    body = body.strip(b" \t\r\n")
    many = body.startswith(b"[")
    kind = _EVENTS[mixed]
    try:
        events = kind.many.decode(body) if many else [kind.one.decode(body)]
    except _UNREADABLE as error:
        late = _decoded(body, many, _LATE)
        if isinstance(late, Exception) or not _are_late(late, mixed):
            _refuse(body, error, kind)
        events = late
    if many:
        _check_count(events, max_events)
    return events, memoryview(body)[1:-1] if many else body, many


def parse_questions(
    body: bytes, max_events: int, mixed: bool = False
) -> tuple[list[Question], bool]:
    """Read a predict body: one event without label, or an array of them.

    Same parameters and errors as `parse_events`.

    Returns
    -------
    The questions; whether it was an array.

    """
    body = body.strip(b" \t\r\n")
    many = body.startswith(b"[")
    kind = _QUESTIONS[mixed]
    try:
        questions = kind.many.decode(body) if many else [kind.one.decode(body)]
    except _UNREADABLE as error:
        _refuse(body, error, kind)
    if many:
        _check_count(questions, max_events)
    return questions, many


def _decoded(body: bytes, many: bool, kind: _Kind) -> list[Any] | Exception:
    try:
        return kind.many.decode(body) if many else [kind.one.decode(body)]
    except _UNREADABLE as error:
        return error


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
            return f"x[{shown(name)}]", _no_number(value)
    return None


def _no_number(value: Any) -> str:
    if isinstance(value, bool):
        return f"{_RANGE}, not {shown(value)}; send 1 or 0, or add OneHotEncoder to the pipeline"
    if isinstance(value, str):
        return (
            f"{_RANGE}, not {shown(value)}; text needs OneHotEncoder, FeatureHasher, BagOfWords or "
            "TFIDF in the pipeline"
        )
    if value is None:
        return f"{_RANGE}, not null; leave it out, or add StatImputer to the pipeline"
    return f"{_RANGE}, not {shown(value)}"


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


def _refuse(body: bytes, error: Exception, kind: _Kind) -> NoReturn:
    if len(body) > _EXPLAINED_BYTES:
        raise _unexplained(error) from None
    try:
        value = json.loads(body.decode(), parse_int=_lenient_int)
    except (ValueError, RecursionError) as fault:
        first = fault if isinstance(error, msgspec.ValidationError) else error
        raise _unexplained(first) from None
    details: list[Detail] = []
    count = 0
    for detail in _faults(value, kind):
        count += 1
        if len(details) < MAX_DETAILS:
            details.append(detail)
    if not details:
        raise _unexplained(error) from None
    shown = "" if count == len(details) else f" ({len(details)} of {count} shown)"
    raise Unprocessable(f"Nothing was taken: see errors{shown}.", details) from None


def _unexplained(error: Exception) -> Malformed | Unprocessable:
    """Return the one fault that a decoder stopped at."""
    if not isinstance(error, msgspec.ValidationError):
        return Malformed(f"The body is not valid JSON: {_reason(error)}.")
    reason, _, at = str(error).partition(" - at `$")
    field = at.rstrip("`").lstrip(".") or "body"
    return Unprocessable("Nothing was taken: see errors.", [Detail(field, reason[:200])])


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    return str(error)


def _lenient_int(digits: str) -> int | float:
    return int(digits) if len(digits) <= 40 else math.inf


def _faults(value: Any, kind: _Kind) -> Iterator[Detail]:
    if not isinstance(value, list):
        yield from _event_faults(value, "", kind)
        return
    for index, item in enumerate(value):
        yield from _event_faults(item, f"[{index}].", kind)


def _event_faults(value: Any, at: str, kind: _Kind) -> Iterator[Detail]:
    if not isinstance(value, dict):
        yield Detail(at.rstrip(".") or "body", "must be an object")
        return
    known = kind.type.__struct_fields__
    for name in value:
        if name not in known:
            yield Detail(at + shown(name), f"is no field of an event; there are {', '.join(known)}")
    yield from (
        _feature_faults(value.get("x"), at, kind.mixed)
        if "x" in value
        else [Detail(f"{at}x", _no_features(kind))]
    )
    if issubclass(kind.type, Question):
        yield from _id_faults(value.get("id"), at)
        return
    if "y" not in value:
        yield Detail(f"{at}y", "is missing")
    elif value["y"] is None or isinstance(value["y"], (list, dict)) or _not_finite(value["y"]):
        yield Detail(f"{at}y", "must be a label: true, false, an integer or text")
    if "w" in value and not _is_number(value["w"], low=0.0):
        yield Detail(f"{at}w", f"must be a finite number of at least 0, not {shown(value['w'])}")
    yield from _id_faults(value.get("id"), at)


def _id_faults(name: Any, at: str) -> Iterator[Detail]:
    if name is not None and not (isinstance(name, str) and 1 <= len(name) <= MAX_NAME):
        yield Detail(f"{at}id", f"must be text of 1 to {MAX_NAME} characters")


def _no_features(kind: _Kind) -> str:
    if issubclass(kind.type, Question):
        return "is missing"
    return "is missing; only the label of an earlier prediction, named by its id, goes without"


def _feature_faults(x: Any, at: str, mixed: bool) -> Iterator[Detail]:
    if not isinstance(x, dict):
        yield Detail(f"{at}x", "must be an object of feature names and numbers")
        return
    if len(x) > MAX_FEATURES:
        yield Detail(f"{at}x", f"has {len(x)} features; at most {MAX_FEATURES} are taken")
    for name, value in x.items():
        if len(name) > MAX_NAME:
            yield Detail(f"{at}x[{shown(name)}]", f"has a name over {MAX_NAME} characters")
        if mixed and (value is None or isinstance(value, (bool, str))):
            if isinstance(value, str) and len(value) > MAX_TEXT:
                yield Detail(f"{at}x[{shown(name)}]", f"is text over {MAX_TEXT} characters")
        elif not _is_number(value, low=-MAX_VALUE):
            yield Detail(f"{at}x[{shown(name)}]", _no_number(value))


def _is_number(value: Any, low: float) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return low <= value <= MAX_VALUE


def _not_finite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def shown(value: object) -> str:
    """Return a value as it may stand in an error: JSON-like, printable, at most 40 characters."""
    text = ascii(value)
    return text if len(text) <= 40 else text[:37] + "..."
