"""Probabilities of the classes, of scores and of logarithms."""

from __future__ import annotations

import math
import sys
from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

__all__ = [
    "BELOW_1",
    "LEAST_NORMAL",
    "both_probabilities",
    "inside",
    "log_probabilities",
    "softmax",
]

Label = TypeVar("Label", bound=Hashable)

LEAST_NORMAL = sys.float_info.min

BELOW_1 = math.nextafter(1.0, 0.0)


def log_probabilities(shares: Mapping[Label, float]) -> dict[Label, float]:
    """Return logarithms of shares, normalised to those of probabilities."""
    if not shares:
        return {}
    total = math.log(math.fsum(map(math.exp, shares.values())))
    return {label: value - total for label, value in shares.items()}


def softmax(
    scores: Mapping[Label, float], keys: Iterable[Label] | None = None
) -> dict[Label, float]:
    """Return exp(score) by key, divided by their sum, without overflow.

    Of two keys or more none gets 0 or 1 (see `inside`); the only key gets 1. Some `keys` of the
    scores give the values of those, in that order.

    Examples
    --------
    >>> softmax({"a": 0.0, "b": 1e308})
    {'a': 2.2250738585072014e-308, 'b': 0.9999999999999999}

    """
    top = max(scores.values(), default=0.0)
    odds = {y: math.exp(score - top) for y, score in scores.items()}
    total = math.fsum(odds.values())
    if len(odds) == 1:
        return dict.fromkeys(odds, 1.0)
    if keys is None:
        return {y: inside(value / total) for y, value in odds.items()}
    return {y: inside(odds[y] / total) for y in keys}


def both_probabilities(score: float) -> tuple[float, float]:
    """Return 1 - p and p, with p = 1 / (1 + exp(-score)), without overflow.

    Both come from -|score|, so that `p(s)` and `1 - p(-s)` are the same float; neither is 0 or 1
    (see `inside`). They sum to 1.0, or to the float below where the lower one is less than 2^-54.
    """
    odds = math.exp(-abs(score))
    low = inside(odds / (1.0 + odds))
    high = inside(1.0 - low)
    return (low, high) if score > 0.0 else (high, low)


def inside(p: float) -> float:
    """Return a probability moved off 0 and 1, to the least normal float and that below 1."""
    return LEAST_NORMAL if p < LEAST_NORMAL else p if p < BELOW_1 else BELOW_1
