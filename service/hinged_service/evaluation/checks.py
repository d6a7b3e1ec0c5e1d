"""Checks of labels, of probabilities and of the numbers of a stored state."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = [
    "Label",
    "checked_count",
    "checked_index",
    "checked_label",
    "checked_number",
    "probability",
    "refuse_mixed",
]

Label = bool | int | str
"""A label as metrics count it."""


def checked_label(label: Any, multiclass: bool) -> Label:
    """Return a label; raise `TypeError` if it is of no type that can be counted."""
    if type(label) is bool or (multiclass and type(label) in (int, str)):
        return label  # type: ignore[no-any-return]
    raise TypeError(f"cannot take a label of type {type(label).__name__}")


def refuse_mixed(labels: Iterable[Label]) -> None:
    """Raise `TypeError` for labels of several types: Python takes `1` and `True` for one key."""
    if len(set(map(type, labels))) > 1:
        raise TypeError("cannot take labels of several types")


def probability(proba: Mapping[Any, float], label: Label) -> float:
    """Return the probability of a label, 0 if absent; raise `ValueError` if it is not finite."""
    p = float(proba.get(label, 0.0))
    if not math.isfinite(p):
        raise ValueError("a probability is not finite")
    return p


def checked_index(value: Any, of: Any) -> int:
    """Return an index of a stored state; raise `ValueError` if `of` has no such item."""
    if type(value) is not int or not 0 <= value < len(of):
        raise ValueError("an index is damaged")
    return value


def checked_count(value: Any) -> int:
    """Return a count of a stored state; raise `ValueError` if it is none."""
    if type(value) is not int or not 0 <= value < 2**63:
        raise ValueError("a count is damaged")
    return value


def checked_number(value: Any) -> float:
    """Return a number of a stored state; raise `ValueError` if it is not a finite one."""
    if type(value) not in (int, float) or not abs(value) <= sys.float_info.max:
        raise ValueError("a number is damaged")
    return float(value)
