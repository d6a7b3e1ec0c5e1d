"""Checks of the events that a learner accepts, and the names of their faults."""

from __future__ import annotations

import math
from collections.abc import Mapping

from river.base.typing import ClfTarget as Label

from hinged.errors import InvalidEvent, shown
from hinged.kernel import all_finite
from hinged.vector import Event, Features, Numbers

_FLOAT = {float}
_ENCODE = ": make numbers of categories first, as in river's preprocessing.OneHotEncoder() | model"

__all__ = [
    "Label",
    "as_floats",
    "binary_target",
    "checked_features",
    "checked_numbers",
    "checked_weight",
    "finite_features",
    "plain",
    "real_target",
]


def plain(value: object) -> object:
    """Return a scalar of NumPy or Arrow as plain Python, `None` for a null, pandas' `NA` too.

    All else is returned as it is.
    """
    module = type(value).__module__
    if module.startswith("pandas") and type(value).__name__ == "NAType":
        return None
    if module == "numpy" and getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()
    elif module == "pyarrow.lib" and hasattr(value, "as_py"):
        value = value.as_py()
    return value


def binary_target(y: object) -> float:
    """Return the target t of a binary label: +1.0 for true and 1, -1.0 for false, 0 and -1.

    Parameters
    ----------
    y
        `True` or `False`, or a number equal to 1, 0 or -1, scalars of NumPy and
        Arrow included. Text is never read as a number or a truth value.

    Raises
    ------
    InvalidEvent
        For anything else: 2, 0.5, NaN, `None`, text. The message says what to do.

    """
    if y is True:
        return 1.0
    if y is False:
        return -1.0
    y = plain(y)
    if (hasattr(y, "__float__") or hasattr(y, "__index__")) and not getattr(y, "shape", ()):
        try:
            if y == 1:
                return 1.0
            if y == 0 or y == -1:
                return -1.0
        except (ArithmeticError, ValueError):  # a signalling NaN of Decimal, an array's truth value
            pass
    raise InvalidEvent(
        "y",
        f"must be true or false (or 1 or 0, or 1 or -1), not {shown(y)}: say whether it is the "
        "positive label, as in y == 'spam', or take a multiclass learner",
    )


def real_target(y: object) -> float:
    """Return a real target as a float, or raise `InvalidEvent`."""
    target = _number(y)
    if target is None or not math.isfinite(target):
        raise InvalidEvent("y", f"must be a finite number, not {shown(y)}")
    return target


def checked_weight(w: object) -> float:
    """Return a sample weight, finite and at least 0, as a float, or raise `InvalidEvent`."""
    weight = _number(w)
    if weight is None or not 0.0 <= weight < math.inf:
        raise InvalidEvent("w", f"must be a finite number of at least 0, not {shown(w)}")
    return weight


def checked_features(x: object) -> Features:
    """Return `x` as a plain dictionary of finite floats, without missing values.

    A value of NaN or `None`, or a null of Arrow or pandas, is missing: the feature
    counts as absent, as it does where a table has one. Some transformers give NaN for
    what they have not learned yet. The learners call this only when their fast path
    meets something unusual. `InvalidEvent` names the first feature at fault.
    """
    if isinstance(x, Mapping):
        x = {name: value for name, value in x.items() if not _missing(value)}
    return checked_numbers(x)


def finite_features(x: Event) -> Numbers:
    """Return `x` itself if it holds finite real numbers only, else `checked_features(x)`."""
    if all_finite(x):
        return x  # type: ignore[return-value]
    return checked_features(x)


def checked_numbers(x: object) -> Features:
    """Return `x` as a dictionary of finite floats, none missing, or raise `InvalidEvent`."""
    if not isinstance(x, Mapping):
        raise InvalidEvent("x", f"must be a mapping of names to numbers, not {shown(x)}")
    clean: Features = {}
    for name, value in x.items():
        number = _number(value)
        if number is None:
            hint = _ENCODE if isinstance(plain(value), str) else ""
            raise InvalidEvent(f"x[{name!r}]", f"must be a real number, not {shown(value)}{hint}")
        if not math.isfinite(number):
            raise InvalidEvent(f"x[{name!r}]", f"must be finite, not {shown(value)}")
        clean[name] = number
    return clean


def as_floats(x: Numbers) -> Numbers:
    """Return `x`, already known to hold finite real numbers, with floats for all of them."""
    return x if {*map(type, x.values())} <= _FLOAT else {n: float(v) for n, v in x.items()}


def _missing(value: object) -> bool:
    number = _number(value)
    return plain(value) is None or (number is not None and math.isnan(number))


def _number(value: object) -> float | None:
    value = plain(value)
    if isinstance(value, (str, bytes, bytearray)):
        return None
    try:
        return float(value)  # type: ignore[arg-type]
    except OverflowError:
        return math.inf
    except (TypeError, ValueError):
        return None
