"""Events as they are posted and logged: decoded once, strictly, into typed structs.

`msgspec` decides what is accepted (it parses and validates in one pass, two
thirds of the time of the next best). Whatever it refuses is read a second time,
slowly, only to name every fault.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from typing import Annotated, Any, NoReturn

import msgspec
from msgspec import Meta

from hinged_service.errors import Detail, Malformed, TooLarge, Unprocessable

__all__ = [
    "MAX_DETAILS",
    "Event",
    "Json",
    "Question",
    "digest",
    "parse_events",
    "parse_log",
    "parse_questions",
]

MAX_NAME = 256
MAX_FEATURES = 10_000
MAX_VALUE = 1e100
MAX_DETAILS = 20
_EXPLAINED_BYTES = 4 * 2**20

Name = Annotated[str, Meta(max_length=MAX_NAME, description="A feature's name.")]
Value = Annotated[float, Meta(ge=-MAX_VALUE, le=MAX_VALUE)]
Features = Annotated[
    dict[Name, Value],
    Meta(
        max_length=MAX_FEATURES,
        description="Feature names to finite numbers; what is absent counts as 0.",
        examples=[{"age": 0.4, "clicks": 3}],
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

    """

    x: Features


_EVENT = msgspec.json.Decoder(Event)
_EVENTS = msgspec.json.Decoder(list[Event])
_QUESTION = msgspec.json.Decoder(Question)
_QUESTIONS = msgspec.json.Decoder(list[Question])
_RAW = msgspec.json.Decoder(list[msgspec.Raw])
_PACK = msgspec.msgpack.Encoder(order="deterministic")


def parse_events(body: bytes, max_events: int) -> tuple[list[Event], Json, bool]:
    """Read a learn body: one event or an array of them.

    Parameters
    ----------
    body
        The request body, UTF-8 JSON.
    max_events
        The longest array taken.

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
    if not body.startswith(b"["):
        try:
            return [_EVENT.decode(body)], body, False
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            _refuse(body, error, Event)
    try:
        events = _EVENTS.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        _refuse(body, error, Event)
    _check_count(events, max_events)
    return events, memoryview(body)[1:-1], True


def parse_questions(body: bytes, max_events: int) -> tuple[list[Question], bool]:
    """Read a predict body: one event without label, or an array of them.

    Same parameters and errors as `parse_events`.

    Returns
    -------
    The questions; whether it was an array.

    """
    body = body.strip(b" \t\r\n")
    if not body.startswith(b"["):
        try:
            return [_QUESTION.decode(body)], False
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            _refuse(body, error, Question)
    try:
        questions = _QUESTIONS.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        _refuse(body, error, Question)
    _check_count(questions, max_events)
    return questions, True


def parse_log(payload: bytes) -> list[Event | None]:
    """Read the payload of a log entry; what is no event becomes `None`, for all alike."""
    try:
        return list(_EVENTS.decode(payload))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    try:
        parts = _RAW.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return []
    return [_event_or_none(part) for part in parts]


def _event_or_none(part: msgspec.Raw) -> Event | None:
    try:
        return _EVENT.decode(part)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def digest(event: Event) -> str:
    """Return 20 hex digits that tell two contents of one event id apart.

    They cover the parsed values: neither white space nor the order of the
    features matters.

    """
    packed = _PACK.encode((event.x, event.y, event.w))
    return hashlib.sha1(packed, usedforsecurity=False).hexdigest()[:20]


def _check_count(events: list[Any], max_events: int) -> None:
    if len(events) > max_events:
        raise TooLarge(
            f"The array has {len(events)} events; send at most {max_events} in one call."
        )


def _refuse(body: bytes, error: Exception, kind: type[Event] | type[Question]) -> NoReturn:
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


def _faults(value: Any, kind: type[Event] | type[Question]) -> Iterator[Detail]:
    if not isinstance(value, list):
        yield from _event_faults(value, "", kind)
        return
    for index, item in enumerate(value):
        yield from _event_faults(item, f"[{index}].", kind)


def _event_faults(value: Any, at: str, kind: type[Event] | type[Question]) -> Iterator[Detail]:
    if not isinstance(value, dict):
        yield Detail(at.rstrip(".") or "body", "must be an object")
        return
    known = kind.__struct_fields__
    for name in value:
        if name not in known:
            yield Detail(at + shown(name), f"is no field of an event; there are {', '.join(known)}")
    yield from (
        _feature_faults(value.get("x"), at) if "x" in value else [Detail(f"{at}x", "is missing")]
    )
    if kind is Question:
        return
    if "y" not in value:
        yield Detail(f"{at}y", "is missing")
    elif value["y"] is None or isinstance(value["y"], (list, dict)) or _not_finite(value["y"]):
        yield Detail(f"{at}y", "must be a label: true, false, an integer or text")
    if "w" in value and not _is_number(value["w"], low=0.0):
        yield Detail(f"{at}w", f"must be a finite number of at least 0, not {shown(value['w'])}")
    name = value.get("id")
    if name is not None and not (isinstance(name, str) and 1 <= len(name) <= MAX_NAME):
        yield Detail(f"{at}id", f"must be text of 1 to {MAX_NAME} characters")


def _feature_faults(x: Any, at: str) -> Iterator[Detail]:
    if not isinstance(x, dict):
        yield Detail(f"{at}x", "must be an object of feature names and numbers")
        return
    if len(x) > MAX_FEATURES:
        yield Detail(f"{at}x", f"has {len(x)} features; at most {MAX_FEATURES} are taken")
    for name, value in x.items():
        if len(name) > MAX_NAME:
            yield Detail(f"{at}x[{shown(name)}]", f"has a name over {MAX_NAME} characters")
        if not _is_number(value, low=-MAX_VALUE):
            yield Detail(
                f"{at}x[{shown(name)}]",
                f"must be a number between -1e100 and 1e100, not {shown(value)}",
            )


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
