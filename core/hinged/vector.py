"""The weight vector: sparse, never grown by reading, aware of what changed."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Container, Hashable, Iterable, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Any, SupportsFloat

from river._river_rust.vectordict import VectorDict  # river.utils takes SciPy along

__all__ = [
    "VALUE_BYTES",
    "Event",
    "Features",
    "Numbers",
    "WeightVector",
    "add_all",
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

VALUE_BYTES = 128
"""Bytes that a stored number counts for, beside its name: about as many as it takes in memory."""

_SAFE_BOUND = 1e300
_SCALE = 2.0**-520


class WeightVector:
    """A sparse vector of finite floats, 0 wherever nothing was ever added.

    The arithmetic is `river.utils.VectorDict`'s, which works on the dictionary
    in place and sums in the order of the *event's* features: equal events give
    equal sums whatever order the weights were stored or loaded in.

    Parameters
    ----------
    values
        Initial weights by feature name. Taken over, not copied.

    Attributes
    ----------
    dot : callable
        `dot(x)` returns `w . x` for a `dict` of real numbers; a value that is
        not finite makes the result so, whether or not its weight is known. It
        raises `TypeError` if `x` is no `dict` or holds what is no real number.
    lookup : callable
        `lookup(name, default)` returns one stored weight: `get` for inner loops.

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

    __slots__ = (
        "_bound",
        "_changed",
        "_measured",
        "_name_bytes",
        "_values",
        "_vector",
        "dot",
        "lookup",
    )

    def __init__(self, values: Features | None = None) -> None:
        self._values: Features = {} if values is None else values
        self._link()
        self._changed: set[Hashable] | None = None

    def _link(self) -> None:
        values = self._values
        self._vector: VectorDict[Hashable, float] = VectorDict(values)
        self.dot: Callable[[Event], float] = self._vector.dot  # type: ignore[assignment]
        self.lookup: Callable[[Hashable, float], float] = values.get
        self._bound = max(max(values.values()), -min(values.values())) if values else 0.0
        self._measured = self._name_bytes = 0

    def __getstate__(self) -> tuple[Features, set[Hashable] | None]:
        return self._values, self._changed

    def __setstate__(self, state: tuple[Features, set[Hashable] | None]) -> None:
        self._values, self._changed = state
        self._link()

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def get(self, name: Hashable) -> float:
        """Return one weight, 0.0 for a name never learned."""
        return self._values.get(name, 0.0)

    def view(self) -> Mapping[Hashable, float]:
        """Return a live read-only view of the stored weights."""
        return MappingProxyType(self._values)

    def stored_bytes(self) -> int:
        """Return what the weights take: `VALUE_BYTES` and the name for each.

        Only the names that are new since the last call are looked at: they stand last.
        """
        values = self._values
        if new := len(values) - self._measured:
            self._name_bytes += name_bytes(islice(reversed(values), new))
            self._measured += new
        return len(values) * VALUE_BYTES + self._name_bytes

    def fits(self, x: Numbers, step: float, norm: float) -> bool:
        """Return whether `step * x` can be added with every weight staying finite.

        The Euclidean norm of `x` makes the usual answer quick. A step that is not finite
        never fits.
        """
        bound = self._bound + abs(step) * norm
        if not bound < _SAFE_BOUND:
            after = [self.get(name) + step * float(value) for name, value in x.items()]
            if not all(map(math.isfinite, after)):
                return False
            known = map(abs, self._values.values())
            bound = max(max(known, default=0.0), max(map(abs, after), default=0.0))
        self._bound = bound
        return True

    def move(self, x: Numbers, step: float, norm: float) -> bool:
        """Add `step * x` if it fits (see `fits`); else change nothing and return `False`."""
        bound = self._bound + abs(step) * norm
        if bound < _SAFE_BOUND:
            self._bound = bound
        elif not self.fits(x, step, norm):
            return False
        self._vector.iadd_scaled(VectorDict(x), step)
        if self._changed is not None:
            self._changed.update(x)
        return True

    def add(self, x: Numbers, step: float) -> None:
        """Add `step * x`, which must fit (see `fits`)."""
        self._vector.iadd_scaled(VectorDict(x), step)
        if self._changed is not None:
            self._changed.update(x)

    def opened(self, names: Iterable[Hashable]) -> Features:
        """Return the stored weights for a rule to set those of `names` in place.

        What it sets must be finite floats within the bound of the last `fits`.
        """
        if self._changed is not None:
            self._changed.update(names)
        return self._values

    def put(self, values: Numbers) -> None:
        """Set the weights of some names, all of them finite floats."""
        self._values.update(values)
        self._bound = math.inf  # not known: the next `fits` looks at all weights
        if self._changed is not None:
            self._changed.update(values)

    def replace(self, other: WeightVector) -> None:
        """Become a copy of `other`; only names whose weight differs count as changed."""
        old, new = self._values, other._values
        if self._changed is not None:
            self._changed.update(name for name in old if name not in new)
            self._changed.update(name for name in new if old.get(name) != new[name])
        old.clear()
        old.update(new)
        self._measured = self._name_bytes = 0
        self._bound = other._bound

    def clear(self) -> None:
        """Drop every weight."""
        if self._changed is not None:
            self._changed.update(self._values)
        self._values.clear()
        self._bound = 0.0
        self._measured = self._name_bytes = 0

    def track(self) -> None:
        """Start noting which names change; what changed before is not known."""
        if self._changed is None:
            self._changed = set()

    def changed_count(self) -> int:
        """Return how many names changed since the last `take_changed`."""
        return 0 if self._changed is None else len(self._changed)

    def take_changed(self) -> set[Hashable]:
        """Return the names changed since the last call, and start a new set."""
        changed = self._changed
        self._changed = set()
        return set() if changed is None else changed

    def put_back_changed(self, names: Iterable[Hashable]) -> None:
        """Count `names` as changed again, after a save that did not happen."""
        if self._changed is not None:
            self._changed.update(names)


def add_all(moves: Iterable[tuple[WeightVector, float]], x: Numbers, norm: float) -> bool:
    """Add `step * x` to each vector with its own step, to all of them or to none."""
    moves = tuple(moves)
    if not all(vector.fits(x, step, norm) for vector, step in moves):
        return False
    for vector, step in moves:
        vector.add(x, step)
    return True


def put_all(moves: Collection[tuple[WeightVector, Features]], *scalars: float) -> bool:
    """Set values of each vector, or of none if one of them or of some scalars is not finite."""
    if not (all_finite(scalars) and all(all_finite(values.values()) for _, values in moves)):
        return False
    for vector, values in moves:
        vector.put(values)
    return True


def saturated(value: float) -> float:
    """Return `value` cut to the range of the finite floats."""
    return max(-sys.float_info.max, min(sys.float_info.max, value))


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
    """Return whether all values are finite; usually by one norm, which is quick."""
    return math.isfinite(math.hypot(*values)) or all(map(math.isfinite, values))
