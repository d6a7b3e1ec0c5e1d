"""Strict conversion of cells to values: a cell that does not fit is a `BadRecord`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any, TypeVar

from hinged_service.ingest.files.options import LabelValue
from hinged_service.ingest.files.record import BadRecord
from hinged_service.wire.faults import MAX_FEATURES, MAX_NAME, MAX_TEXT, MAX_VALUE, abbreviated

__all__ = [
    "all_numbers",
    "as_bool",
    "as_flag",
    "as_number",
    "as_text",
    "as_weight",
    "as_whole",
    "check_names",
    "event_id",
    "label_like",
    "map_label",
    "named",
    "number_id",
]

T = TypeVar("T")
U = TypeVar("U")

_BOOLS = {"true": True, "false": False}
_INT64 = 2**63


def as_number(value: Any) -> float:
    """Return a finite number of at most 1e100; text must be a decimal number in ASCII.

    The whole number `-0` has no sign, as in JSON; `-0.0` has one.
    """
    try:
        number = float(value)
    except (ValueError, TypeError, OverflowError):
        raise BadRecord(f"must be a number, not {abbreviated(value)}") from None
    if not -MAX_VALUE <= number <= MAX_VALUE:
        raise BadRecord(f"must be a number between -1e100 and 1e100, not {abbreviated(value)}")
    plain = value.isascii() and "_" not in value if type(value) is str else type(value) is not bool
    if not plain:
        raise BadRecord(f"must be a number, not {abbreviated(value)}")
    return 0.0 if number == 0.0 and _is_whole_zero(value) else number


def all_numbers(texts: Sequence[str]) -> list[float] | None:
    """Return the `as_number` of each text, several times as fast; `None`: call it instead."""
    try:
        numbers = list(map(float, texts))
    except ValueError:
        return None
    if not sum(map(abs, numbers)) <= MAX_VALUE:
        return None
    if 0.0 in numbers and any(map(_is_whole_zero, texts)):
        return None
    joined = "".join(texts)
    return numbers if joined.isascii() and "_" not in joined else None


def _is_whole_zero(value: Any) -> bool:
    return isinstance(value, str) and value.strip() == "-0"


def as_weight(value: Any) -> float:
    """Return a finite number of at least 0."""
    number = as_number(value)
    if not number >= 0.0:
        raise BadRecord(f"must be a weight of at least 0, not {abbreviated(value)}")
    return number


def as_whole(value: Any) -> int:
    """Return a whole number of 64 bits; `"+1"` and `"1.0"` are 1."""
    try:
        whole = int(value) if isinstance(value, int) or _is_digits(value) else None
    except ValueError:
        whole = None
    if whole is None:
        number = as_number(value)
        if not (number.is_integer() and abs(number) <= 2**53):
            raise BadRecord(f"must be a whole number, not {abbreviated(value)}")
        whole = int(number)
    if not -_INT64 <= whole < _INT64:
        raise BadRecord(f"must be a whole number of 64 bits, not {abbreviated(value)}")
    return whole


def _is_digits(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    digits = value.strip().lstrip("+-")
    return digits.isascii() and digits.isdigit()


def as_bool(value: Any) -> bool:
    """Return true or false, spelled in any case."""
    found = value if isinstance(value, bool) else _BOOLS.get(str(value).strip().lower())
    if found is None:
        raise BadRecord(f"must be true or false, not {abbreviated(value)}")
    return found


def as_flag(value: Any) -> float:
    """Return true as 1 and false as 0."""
    return 1.0 if as_bool(value) else 0.0


def as_text(value: Any) -> str:
    """Return text as it is, and anything else as JSON would write it."""
    if not isinstance(value, str):
        value = json.dumps(value) if isinstance(value, (bool, int, float)) else str(value)
    if len(value) > MAX_TEXT:
        raise BadRecord(f"has {len(value)} characters; at most {MAX_TEXT} are taken")
    return str(value)


def event_id(value: str) -> str:
    """Return the name of an event: text of 1 to 256 characters."""
    if not 1 <= len(value) <= MAX_NAME:
        raise BadRecord(f"must be text of 1 to {MAX_NAME} characters")
    return value


def number_id(value: Any, limit: int = 2**53) -> str:
    """Return the name of an event that is a number: 123, 123.0 and 123.00 are `"123"`.

    `value` is an integer or a decimal number of any size, a float, or the text of a number. A float
    must be below `limit`: from there on it may stand for several whole numbers.
    """
    whole = None
    if isinstance(value, Decimal):
        whole = int(value) if value.is_finite() and value == int(value) else None
    elif type(value) is int or (_is_digits(value) and len(value) <= MAX_NAME):
        whole = int(value)
    else:
        number = as_number(value)
        whole = int(number) if number.is_integer() and abs(number) < limit else None
    if whole is None:
        raise BadRecord(
            f"must be text or a whole number (a float one below {limit}), not {abbreviated(value)}"
        )
    return event_id(str(whole))


def label_like(text: str, takes: Callable[[LabelValue], bool]) -> LabelValue | None:
    """Return the label of a model that is written like this; `None` if it has none.

    The text is itself a label, or true or false, or a whole number.
    """
    if takes(text):
        return text
    for read in (as_bool, as_whole):
        with suppress(BadRecord):
            label = read(text)
            if takes(label):
                return label
    return None


def map_label(labels: Mapping[str, LabelValue], text: str) -> LabelValue:
    """Return the label in `labels` for a label of the file."""
    if text not in labels:
        raise BadRecord(f"must be {' or '.join(map(abbreviated, labels))}, not {abbreviated(text)}")
    return labels[text]


def named(what: str, read: Callable[[T], U], value: T) -> U:
    """Return `read(value)`; a refusal begins with its subject."""
    try:
        return read(value)
    except BadRecord as fault:
        raise BadRecord(f"{what} {fault}") from None


def check_names(x: Mapping[str, Any]) -> None:
    """Refuse more features, or longer names, than an event may have."""
    if len(x) > MAX_FEATURES:
        raise BadRecord(f"has {len(x)} features; at most {MAX_FEATURES} are taken")
    if x and max(map(len, x)) > MAX_NAME:
        longest = max(x, key=len)
        raise BadRecord(f"feature {abbreviated(longest)} has a name over {MAX_NAME} characters")
