"""The bounds of events, and every fault of a body that breaks them, by its field."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import msgspec

from hinged_service.errors import Detail, Malformed, Unprocessable
from hinged_service.wire.encodings import other_encoding

__all__ = [
    "DECODE_ERRORS",
    "MAX_DETAILS",
    "MAX_FEATURES",
    "MAX_NAME",
    "MAX_TEXT",
    "MAX_VALUE",
    "abbreviated",
    "name_faults",
    "no_number",
    "unexplained",
]

DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""Exceptions of the decoders of msgspec: no JSON, none of the type, no UTF-8, nested too deeply."""

MAX_NAME = 256
MAX_FEATURES = 10_000
MAX_VALUE = 1e100
MAX_TEXT = 100_000
MAX_DETAILS = 20
_EXPLAINED_BYTES = 4 * 2**20
_RANGE = "must be a number between -1e100 and 1e100"


def name_faults(body: bytes, error: Exception, fields: tuple[str, ...], mixed: bool) -> None:
    """Refuse a body by its faults; return if none can be named.

    None can if a name stands twice and its last value is right, nor in a body over 4 MiB.

    Parameters
    ----------
    body, error
        The body, and the error of its decoder.
    fields
        The fields that an event of this body has; it is labelled if `y` is one of them.
    mixed
        Whether features may be text, booleans and missing too.

    Raises
    ------
    Malformed, Unprocessable
        It is not JSON, or has faults; up to 20 of them are named.

    """
    if (encoding := other_encoding(body)) is not None:
        raise Malformed(f"The body is not valid JSON: it is {encoding}, send UTF-8.") from None
    if len(body) > _EXPLAINED_BYTES:
        return
    try:
        value = json.loads(body.decode(), parse_int=_lenient_int)
    except (ValueError, RecursionError) as fault:
        first = fault if isinstance(error, msgspec.ValidationError) else error
        raise unexplained(first) from None
    details: list[Detail] = []
    count = 0
    for detail in _faults(value, fields, mixed):
        count += 1
        if len(details) < MAX_DETAILS:
            details.append(detail)
    if not details:
        return
    some = "" if count == len(details) else f" ({len(details)} of {count} shown)"
    raise Unprocessable(f"Nothing was taken: see errors{some}.", details) from None


def unexplained(error: Exception) -> Malformed | Unprocessable:
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
    if isinstance(
        error, json.JSONDecodeError
    ):  # its text names line 1, whatever line of a body it is
        return f"{error.msg} (character {error.pos})"
    return str(error)


def _lenient_int(digits: str) -> int | float:
    return int(digits) if len(digits) <= 40 else math.inf


def _faults(value: Any, fields: tuple[str, ...], mixed: bool) -> Iterator[Detail]:
    if not isinstance(value, list):
        yield from _event_faults(value, "", fields, mixed)
        return
    for index, item in enumerate(value):
        yield from _event_faults(item, f"[{index}].", fields, mixed)


def _event_faults(value: Any, at: str, fields: tuple[str, ...], mixed: bool) -> Iterator[Detail]:
    if not isinstance(value, dict):
        yield Detail(at.rstrip(".") or "body", "must be an object")
        return
    labelled = "y" in fields
    for name in value:
        if name not in fields:
            there = ", ".join(fields)
            yield Detail(
                at + abbreviated(name), f"is not a field of an event; the fields are {there}"
            )
    if "x" in value:
        yield from _feature_faults(value["x"], at, mixed)
    elif not labelled or value.get("id") is None:
        yield Detail(f"{at}x", _no_features(labelled))
    if not labelled:
        yield from _id_faults(value.get("id"), at)
        return
    if "y" not in value:
        yield Detail(f"{at}y", "is missing")
    elif value["y"] is None or isinstance(value["y"], (list, dict)) or _not_finite(value["y"]):
        yield Detail(f"{at}y", "must be a label: true, false, an integer or text")
    if "w" in value and not _is_number(value["w"], low=0.0):
        yield Detail(
            f"{at}w", f"must be a finite number of at least 0, not {abbreviated(value['w'])}"
        )
    yield from _id_faults(value.get("id"), at)


def _id_faults(name: Any, at: str) -> Iterator[Detail]:
    if name is not None and not (isinstance(name, str) and 1 <= len(name) <= MAX_NAME):
        yield Detail(f"{at}id", f"must be text of 1 to {MAX_NAME} characters")


def _no_features(labelled: bool) -> str:
    if not labelled:
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
            yield Detail(f"{at}x[{abbreviated(name)}]", f"has a name over {MAX_NAME} characters")
        if mixed and (value is None or isinstance(value, (bool, str))):
            if isinstance(value, str) and len(value) > MAX_TEXT:
                yield Detail(f"{at}x[{abbreviated(name)}]", f"is text over {MAX_TEXT} characters")
        elif not _is_number(value, low=-MAX_VALUE):
            yield Detail(f"{at}x[{abbreviated(name)}]", no_number(value))


def no_number(value: Any) -> str:
    """Return the reason against a value that is no number of the range taken."""
    if isinstance(value, bool):
        return (
            f"{_RANGE}, not {abbreviated(value)}; send 1 or 0, or add OneHotEncoder to the pipeline"
        )
    if isinstance(value, str):
        return (
            f"{_RANGE}, not {abbreviated(value)}; text needs OneHotEncoder, FeatureHasher, "
            "BagOfWords or TFIDF in the pipeline"
        )
    if value is None:
        return f"{_RANGE}, not null; leave it out, or add StatImputer to the pipeline"
    return f"{_RANGE}, not {abbreviated(value)}"


def _is_number(value: Any, low: float) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return low <= value <= MAX_VALUE


def _not_finite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def abbreviated(value: object) -> str:
    """Return a value as it may stand in an error: JSON-like, printable, at most 40 characters."""
    text = ascii(value)
    return text if len(text) <= 40 else text[:37] + "..."
