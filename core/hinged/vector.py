"""The weight vector: sparse, never grown by reading, aware of what changed."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from river.utils import VectorDict

__all__ = ["Features", "WeightVector"]

Features = dict[Hashable, float]

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
    dot
        `dot(x)` returns `w . x` for a `dict` of real numbers. A value that is
        not finite makes the result so, whether or not its weight is known.
        Raises `TypeError` if `x` is no `dict` or holds something that is not a
        real number. (It is `VectorDict.dot` itself: a call saved per event.)

    Examples
    --------
    >>> w = WeightVector()
    >>> w.dot({"a": 3.0}), len(w)
    (0.0, 0)
    >>> w.track()
    >>> w.add({"a": 3.0}, 0.5)
    True
    >>> w.dot({"a": 2.0}), w.take_changed()
    (3.0, {'a'})

    """

    __slots__ = ("_bound", "_changed", "_values", "_vector", "dot")

    dot: Callable[[Any], float]

    def __init__(self, values: Features | None = None) -> None:
        self._values: Features = {} if values is None else values
        self._link()
        self._changed: set[Hashable] | None = None

    def _link(self) -> None:
        values = self._values
        self._vector: VectorDict[Hashable, float] = VectorDict(values)
        self.dot = self._vector.dot
        self._bound = max(max(values.values()), -min(values.values())) if values else 0.0

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

    def saturated_dot(self, x: Mapping[Any, float]) -> float:
        """Return `w . x` for finite `x`, cut at the largest float instead of overflowing."""
        get = self._values.get
        scaled = math.fsum(get(name, 0.0) * _SCALE * (value * _SCALE) for name, value in x.items())
        return max(-sys.float_info.max, min(sys.float_info.max, scaled / _SCALE / _SCALE))

    def add(self, x: Mapping[Any, Any], step: float) -> bool:
        """Add `step * x`, all of it or nothing.

        Parameters
        ----------
        x
            A `dict` of finite real numbers.
        step
            A finite factor.

        Returns
        -------
        `False`, with nothing changed, if a weight would overflow.

        """
        bound = self._bound + abs(step) * math.hypot(*x.values())
        if not bound < _SAFE_BOUND:
            after = [self.get(name) + step * float(value) for name, value in x.items()]
            if not all(map(math.isfinite, after)):
                return False
            known = map(abs, self._values.values())
            bound = max(max(known, default=0.0), max(map(abs, after), default=0.0))
        self._bound = bound
        self._vector.iadd_scaled(VectorDict(x), step)
        if self._changed is not None:
            self._changed.update(x)
        return True

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
