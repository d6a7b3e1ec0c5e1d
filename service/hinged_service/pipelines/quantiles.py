"""River's running quantiles, which are Rust objects, as plain checked numbers and back.

Their own serialised form is 21 floats (q, five increments, five desired and five
actual marker positions, five heights), a byte for how many heights are in use and
one for whether they are sorted yet. Any bytes at all go in there, and wrong ones
may make it panic later, so they are made here, from numbers in range.
"""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import Any

import hinged
from hinged_service.pipelines.state_checks import count, items, number
from hinged_service.pipelines.values import MAX_VALUE
from hinged_service.river_support.lazy import stats

__all__ = ["dump_iqr", "dump_quantile", "load_iqr", "load_quantile"]

_FORM = struct.Struct("<21d2B")
_MARKERS = 5


def dump_quantile(quantile: stats.Quantile) -> list[Any]:
    """Return a quantile's state: desired and actual positions, heights, how many, sorted."""
    return _dump(quantile._quantile.__getstate__())


def load_quantile(q: float, data: Any) -> stats.Quantile:
    """Return the quantile of `q` that `dump_quantile` described, checked."""
    quantile = stats.Quantile(q)
    form, learned = _load(quantile._quantile.__getstate__(), data)
    quantile._quantile.__setstate__(form)
    quantile._is_updated = learned
    return quantile


def dump_iqr(iqr: stats.IQR) -> list[Any]:
    """Return an interquartile range's state: that of its two quantiles."""
    state = iqr._iqr.__getstate__()
    return [_dump(state[: _FORM.size]), _dump(state[_FORM.size : 2 * _FORM.size])]


def load_iqr(q_inf: float, q_sup: float, data: Any) -> stats.IQR:
    """Return the interquartile range that `dump_iqr` described, checked."""
    lower, upper = items(data, "an interquartile range", 2)
    iqr = stats.IQR(q_inf, q_sup)
    fresh = iqr._iqr.__getstate__()
    low, learned = _load(fresh[: _FORM.size], lower)
    high, both = _load(fresh[_FORM.size : 2 * _FORM.size], upper)
    if learned != both:
        raise hinged.InvalidState("the quantiles of a range have not learned the same")
    iqr._iqr.__setstate__(low + high + fresh[2 * _FORM.size :])
    iqr._is_updated = learned
    return iqr


def _dump(state: bytes) -> list[Any]:
    values = _FORM.unpack(state)
    return [list(values[6:11]), list(values[11:16]), list(values[16:21]), *values[21:]]


def _load(fresh: bytes, data: Any) -> tuple[bytes, bool]:
    desired, positions, heights, used, in_order = items(data, "a quantile", 5)
    for value in items(heights, "the heights of a quantile", _MARKERS):
        number(value, "a height of a quantile", -MAX_VALUE, MAX_VALUE)
    for markers in (desired, positions):
        for value in items(markers, "the markers of a quantile", _MARKERS):
            number(value, "a marker of a quantile", 1.0, 2.0**53)
    count(used, "the heights in use", 0, _MARKERS)
    count(in_order, "whether heights are sorted", 0, int(used == _MARKERS))
    start = _FORM.unpack(fresh)
    if not in_order and (desired, positions) != (list(start[6:11]), list(start[11:16])):
        raise hinged.InvalidState("a quantile has moved markers before its sixth value")
    if not all(a < b for a, b in pairwise(positions)):
        raise hinged.InvalidState("the markers of a quantile are not in order")
    if not (positions[0] == 1.0 and all(p.is_integer() for p in positions)):
        raise hinged.InvalidState("the markers of a quantile are not at whole numbers from 1")
    form = _FORM.pack(*start[:6], *desired, *positions, *heights, used, in_order)
    return form, used > 0
