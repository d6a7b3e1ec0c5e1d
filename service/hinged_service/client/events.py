"""Encoding of events: accepted types, their JSON, refusals.

Feature names are text. An integer becomes its digits, a tuple of names (as n-grams
have) a JSON array; two names of one event that become the same text are refused, as is
any other type. Values are numbers (NumPy's included), text, booleans or `None` for a
missing one; the service decides which of these a model takes. Labels are booleans,
integers or text, of Python or NumPy. Nothing that JSON has not (NaN, infinity) is sent.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping
from numbers import Real
from typing import Any, Final, NamedTuple

import msgspec

from hinged_service.client.errors import Fault, Invalid
from hinged_service.wire.responses import Label

__all__ = [
    "Encoded",
    "Event",
    "EventLike",
    "abbreviated",
    "encode_event",
    "encode_label",
    "encode_question",
    "plain_label",
    "present",
]

_encode = msgspec.json.encode
_INT64: Final = range(-(2**63), 2**63)


class Event(NamedTuple):
    """A labelled event.

    Attributes
    ----------
    x
        Feature names and values.
    y
        The label.
    w
        Sample weight, finite, at least 0.
    id
        The event's own name, under which it counts once; the client makes one if `None`.

    """

    x: Mapping[Any, Any]
    y: Any
    w: float = 1.0
    id: str | None = None


class Encoded(NamedTuple):
    """The JSON text of an event and its id, `None` for a question without one."""

    json: bytes
    id: str | None


EventLike = tuple[Any, ...] | Mapping[str, Any]
"""An `Event`, a tuple of its parts, `(x, y)` at least, or a mapping of them."""


def encode_event(event: Any, *, flags_are_numbers: bool = False) -> Encoded:
    """Return a labelled event (an `EventLike`) as JSON, with an id in any case.

    If `flags_are_numbers`, the features true and false are sent as 1 and 0. Raises
    `Invalid`, which names the field.
    """
    x, y, w, name = _as_event(event)
    fields: dict[str, Any] = {"x": _features(x, flags_are_numbers), **_label_fields(y, w)}
    fields["id"] = uuid.uuid4().hex if name is None else _checked_id(name)
    return _encoded(fields)


def encode_label(name: str, y: Any, w: float) -> Encoded:
    """Return the label of an earlier prediction as JSON; same errors as `encode_event`."""
    return _encoded({**_label_fields(y, w), "id": _checked_id(name)})


def encode_question(
    x: Mapping[Any, Any], name: str | None = None, *, flags_are_numbers: bool = False
) -> Encoded:
    """Return an event without its label as JSON; same conversions and errors as `encode_event`."""
    fields: dict[str, Any] = {"x": _features(x, flags_are_numbers)}
    if name is not None:
        fields["id"] = _checked_id(name)
    return _encoded(fields)


def present(x: Any, plain_numbers: bool) -> Any:
    """Return the features without those that are missing."""
    if not isinstance(x, Mapping):
        return x
    return {
        name: value
        for name, value in x.items()
        if not (isinstance(value, Real) and value != value)
        and not (plain_numbers and value is None)
    }


def plain_label(y: Any, field: str = "y") -> Label:
    """Return a label as plain Python, its type kept.

    Raises `Invalid`, which names the `field`, unless it is a boolean, an integer of 64 bits or
    text, of Python or NumPy.
    """
    y = _plain(y)
    if isinstance(y, bool):
        return y
    if isinstance(y, int) and y in _INT64:
        return int(y)
    if isinstance(y, str):
        return str(y)
    raise _invalid(field, f"must be a boolean, an integer of 64 bits or text, not {abbreviated(y)}")


def _label_fields(y: Any, w: Any) -> dict[str, Any]:
    weight = _number(w)
    if weight is None or not math.isfinite(weight):
        raise _invalid("w", f"must be a finite number of at least 0, not {abbreviated(w)}")
    return {"y": plain_label(y)} if weight == 1.0 else {"y": plain_label(y), "w": weight}


def _as_event(event: Any) -> Event:
    try:
        if isinstance(event, tuple):
            return Event(*event)
        if isinstance(event, Mapping):
            return Event(**event)
    except TypeError:
        pass
    raise _invalid("event", "must be (x, y), (x, y, w), (x, y, w, id) or a mapping of these names")


def _encoded(fields: dict[str, Any]) -> Encoded:
    try:
        return Encoded(_encode(fields), fields.get("id"))
    except UnicodeEncodeError:
        raise _invalid("event", "has text that is not valid Unicode") from None


def _features(x: Any, flags_are_numbers: bool) -> dict[str, Any]:
    if not isinstance(x, Mapping):
        raise _invalid("x", f"must be a mapping of feature names and values, not {abbreviated(x)}")
    clean: dict[str, Any] = {}
    for name, value in x.items():
        text = name if type(name) is str else _name(name)
        if text in clean:
            raise _invalid(
                f"x[{abbreviated(name)}]", f"has the same text as another name: {text!r}"
            )
        if type(value) is not float or not math.isfinite(value):
            value = _value(value, name)
            if flags_are_numbers and isinstance(value, bool):
                value = float(value)
        clean[text] = value
    return clean


def _name(name: Any) -> str:
    part = _name_part(name)
    try:
        return part if isinstance(part, str) else _encode(part).decode()
    except UnicodeEncodeError:
        raise _invalid(f"x[{abbreviated(name)}]", "has a name that is not valid Unicode") from None


def _name_part(name: Any) -> Any:
    plain = _plain(name)
    if isinstance(plain, str):
        return str(plain)
    if isinstance(plain, int) and not isinstance(plain, bool) and plain in _INT64:
        return int(plain)
    if isinstance(plain, tuple):
        return [_name_part(part) for part in plain]
    raise _invalid(
        f"x[{abbreviated(name)}]",
        "has a name that is not text, an integer of 64 bits or a tuple of these; rename it",
    )


def _value(value: Any, name: Any) -> float | str | bool | None:
    plain = _plain(value)
    if plain is None or isinstance(plain, bool):
        return plain
    if isinstance(plain, str):
        return str(plain)
    number = _number(plain)
    if number is None:
        raise _invalid(
            f"x[{abbreviated(name)}]", f"must be a number or text, not {abbreviated(value)}"
        )
    if not math.isfinite(number):
        raise _invalid(f"x[{abbreviated(name)}]", f"must be finite, not {abbreviated(value)}")
    return number


def _plain(value: Any) -> Any:
    """Return the Python value of a NumPy scalar, anything else as it is."""
    return value.item() if getattr(value, "shape", None) == () else value


def _number(value: Any) -> float | None:
    if isinstance(value, (str, bytes, bytearray)):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf
    except (TypeError, ValueError):
        return None


def _checked_id(name: Any) -> str:
    if not isinstance(name, str):
        raise _invalid("id", f"must be text, not {abbreviated(name)}")
    return str(name)


def abbreviated(value: Any) -> str:
    """Return a value in short and in ASCII, for messages."""
    try:
        text = ascii(value)
    except ValueError:  # an integer too long to print
        text = f"a very long {type(value).__name__}"
    return text if len(text) <= 40 else text[:37] + "..."


def _invalid(field: str, reason: str) -> Invalid:
    return Invalid("Nothing was sent.", errors=[Fault(field, reason)])
