"""The weight vector: sparse, never grown by reading, with its changed names."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Container, Hashable, Iterable, Mapping
from typing import Any, SupportsFloat

from hinged.kernel import Storage
from hinged.kernel.pure import put_all

__all__ = [
    "NAME_BYTES",
    "VALUE_BYTES",
    "Event",
    "Features",
    "Numbers",
    "WeightVector",
    "all_finite",
    "name_bytes",
    "put_all",
    "room",
    "saturated",
    "wide_dot",
]

Event = Mapping[Any, SupportsFloat | None]
"""Feature names to numbers, as a caller has them. `Mapping` is invariant in keys, hence `Any`."""
Numbers = Mapping[Any, float]
"""An event in which nothing is missing."""
Features = dict[Hashable, float]
"""A checked event, or weights: names to finite floats."""

NAME_BYTES = 56
"""Bytes that a name takes in memory beside its text."""
VALUE_BYTES = 128
"""Bytes that a stored number counts for, beside its name: about as many as it takes in memory."""

_SCALE = 2.0**-520
_MAX = sys.float_info.max


class WeightVector(Storage):
    """A sparse vector of finite floats, 0 for names that were never added.

    Sums are taken in the order of the *event's* features: equal events give equal sums
    in any order of storing and loading the weights (see `hinged.arithmetic`). Storage
    and inner loops are those of `hinged.kernel`, compiled or not.

    Parameters
    ----------
    values
        Initial weights by feature name. Taken over, not copied.

    Examples
    --------
    >>> w = WeightVector()
    >>> w.dot({"a": 3.0}), len(w)
    (0.0, 0)
    >>> w.track()
    >>> w.add({"a": 3.0}, 0.5)
    >>> w.dot({"a": 2.0}), w.take_changed()
    (3.0, {'a'})

    """

    __slots__ = ("_measured", "_name_bytes")

    def __init__(self, values: Features | None = None) -> None:
        super().__init__(values)
        self._measured = self._name_bytes = 0

    def __reduce__(self) -> tuple[object, ...]:
        return _revived, self.parts()

    def stored_bytes(self) -> int:
        """Return the bytes of the weights: `VALUE_BYTES` and the name for each.

        Only the names that are new since the last call are looked at: they stand last.
        """
        if new := len(self) - self._measured:
            self._name_bytes += name_bytes(self.newest(new))
            self._measured += new
        return len(self) * VALUE_BYTES + self._name_bytes

    def taken_bytes(self) -> int:
        """Return the memory that it takes, each name as if nothing else held it."""
        return sys.getsizeof(self) + self.stored_bytes() - (VALUE_BYTES - NAME_BYTES) * len(self)

    def replace(self, other: Storage) -> None:
        """Become a copy of `other`; only names whose weight differs count as changed."""
        super().replace(other)
        self._measured = self._name_bytes = 0

    def clear(self) -> None:
        """Drop every weight."""
        super().clear()
        self._measured = self._name_bytes = 0


def _revived(values: Features, changed: set[Hashable] | None) -> WeightVector:
    vector = WeightVector(values)
    vector.set_changed(changed)
    return vector


def saturated(value: float) -> float:
    """Return `value` cut to the range of the finite floats."""
    return value if -_MAX <= value <= _MAX else -_MAX if value < 0.0 else _MAX


def wide_dot(weight: Callable[[Hashable], float], x: Numbers) -> float:
    """Return `w . x`, infinite only if the sum itself is beyond the floats, never NaN."""
    scaled = math.fsum(weight(name) * _SCALE * (value * _SCALE) for name, value in x.items())
    return scaled / _SCALE / _SCALE


def room(x: Numbers, known: Container[Hashable], stored: int, cap: int | None) -> Numbers:
    """Return the part of `x` that a learner may store, in the event's order.

    `known` are the names stored so far, `stored` in number, of `cap` at most.

    Examples
    --------
    >>> room({"b": 1.0, "c": 2.0, "a": 3.0}, {"a"}, 1, 2)
    {'b': 1.0, 'a': 3.0}

    """
    if cap is None or stored + len(x) <= cap:
        return x
    free = cap - stored
    kept = {}
    for name, value in x.items():
        if name in known:
            kept[name] = value
        elif free > 0:
            free -= 1
            kept[name] = value
    return kept


def name_bytes(names: Iterable[Hashable]) -> int:
    """Return the bytes of names as UTF-8.

    Examples
    --------
    >>> name_bytes(["age", "größe", 12])
    12

    """
    text = "".join(map(str, names))
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def all_finite(values: Collection[float]) -> bool:
    """Return whether all values are finite."""
    return all(map(math.isfinite, values))
