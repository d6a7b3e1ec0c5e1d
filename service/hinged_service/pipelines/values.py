"""Feature values between the stages of a pipeline, and the errors that refuse them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import hinged
from hinged.errors import shown

__all__ = [
    "LEARNER",
    "MAX_VALUE",
    "MAX_WIDTH",
    "Features",
    "Numbers",
    "Value",
    "clipped",
    "field",
    "floats",
    "only_numbers",
    "refuse_missing",
    "refused",
]

Value = float | int | bool | str | None
"""A feature's value: a number, true or false, text, or `None` for one that is missing."""

Features = Mapping[str, Value]
Numbers = Mapping[str, float]

MAX_VALUE = 1e100
"""The largest number between stages; a stage cuts larger ones to it."""

MAX_WIDTH = 10_000
"""The most features that a stage which multiplies them may give."""

LEARNER = "the learner"
_FLOAT = {float}
_NUMBER = {float, int}


def field(name: str) -> str:
    """Return the name of a feature in an error."""
    return f"x[{name!r}]"


def refused(name: str, value: object, taker: str) -> hinged.InvalidEvent:
    """Return the error for a value that is no number where `taker` needs one."""
    if value is None:
        return _missing(name, taker)
    if isinstance(value, str):
        return hinged.InvalidEvent(
            field(name),
            f"is text, but {taker} takes numbers: put OneHotEncoder, FeatureHasher, BagOfWords "
            "or TFIDF before it, or Discard the feature",
        )
    if isinstance(value, bool):
        return hinged.InvalidEvent(
            field(name),
            f"is true or false, but {taker} takes numbers: put OneHotEncoder before it, or send "
            "1 or 0",
        )
    return hinged.InvalidEvent(
        field(name), f"must be a number between -1e100 and 1e100, not {shown(value)}"
    )


def _missing(name: str, taker: str) -> hinged.InvalidEvent:
    return hinged.InvalidEvent(
        field(name), f"is missing: put StatImputer before {taker}, or leave the feature out"
    )


def refuse_missing(x: Features, taker: str) -> None:
    """Raise `InvalidEvent` if a value is `None`; anything else `taker` takes."""
    if None in x.values():
        raise _missing(next(name for name, value in x.items() if value is None), taker)


def only_numbers(x: Features) -> bool:
    """Return whether all values are numbers; true and false are none."""
    return {*map(type, x.values())} <= _NUMBER


def floats(x: Features, taker: str) -> Numbers:
    """Return `x` as floats; raise `InvalidEvent` for the first that is no number up to 1e100."""
    found = {*map(type, x.values())}
    plain: Any = x
    if not found <= _FLOAT:
        if not found <= _NUMBER:
            raise next(refused(n, v, taker) for n, v in x.items() if type(v) not in _NUMBER)
        plain = {name: _as_float(value) for name, value in x.items()}
    if not math.hypot(*plain.values()) <= MAX_VALUE:
        for name, value in plain.items():
            if not abs(value) <= MAX_VALUE:
                raise refused(name, x[name], taker)
    return plain  # type: ignore[no-any-return]


def _as_float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:  # an integer beyond every float
        return math.inf


def clipped(made: dict[str, float]) -> dict[str, float]:
    """Return the numbers, those beyond `MAX_VALUE` cut to it."""
    if math.hypot(*made.values()) <= MAX_VALUE:
        return made
    return {name: max(-MAX_VALUE, min(MAX_VALUE, value)) for name, value in made.items()}
