"""Storage: numbers by name, in Python."""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Hashable, Iterable, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Any, SupportsFloat

from hinged import arithmetic

__all__ = [
    "Event",
    "Features",
    "Numbers",
    "Storage",
    "put_all",
]

Event = Mapping[Any, SupportsFloat | None]

Numbers = Mapping[Any, float]

Features = dict[Hashable, float]

_SAFE_BOUND = 1e300
_FLOAT_BYTES = 24


class Storage:
    """The numbers of a weight vector by name, with the documentation in `hinged.WeightVector`.

    Parameters
    ----------
    values
        The first numbers. Taken over, not copied.

    Attributes
    ----------
    bound : float
        A number that no stored number's size exceeds; infinite if it is not known.
    plain : bool
        Whether a name not stored counts as 0. A subclass for which it does not says so.

    """

    __slots__ = ("_changed", "_values", "bound", "plain")

    def __init__(self, values: Features | None = None) -> None:
        self._values: Features = {} if values is None else values
        self.bound = max(map(abs, self._values.values()), default=0.0)
        self.plain = True
        self._changed: set[Hashable] | None = None

    def parts(self) -> tuple[Features, set[Hashable] | None]:
        """Return the stored weights, and the changed names if they are tracked."""
        return self._values, self._changed

    def set_changed(self, changed: set[Hashable] | None) -> None:
        """Go on tracking with these names as changed, or not at all."""
        self._changed = changed

    def __len__(self) -> int:
        return len(self._values)

    def __sizeof__(self) -> int:
        """Return its size in bytes without the names."""
        parts = sum(sys.getsizeof(part) for part in (self._values, self._changed) if part)
        return object.__sizeof__(self) + parts + _FLOAT_BYTES * len(self)

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def get(self, name: Hashable) -> float:
        """Return one weight, 0.0 for a name never learned."""
        return self._values.get(name, 0.0)

    def lookup(self, name: Hashable, default: float) -> float:
        """Return one stored weight."""
        return self._values.get(name, default)

    def dot(self, x: Event) -> float:
        """Return `w . x`, or raise `TypeError`, as `hinged.arithmetic.dot` says."""
        return arithmetic.dot(self._values.get, x)

    def view(self) -> Mapping[Hashable, float]:
        """Return a live read-only view of the stored weights."""
        return MappingProxyType(self._values)

    def unknown(self, names: Iterable[Hashable]) -> list[Hashable]:
        """Return those of the names that are not stored, in order."""
        values = self._values
        return [name for name in names if name not in values]

    def newest(self, count: int) -> Iterable[Hashable]:
        """Return the names stored last."""
        return islice(reversed(self._values), count)

    def fits(self, x: Numbers, step: float, norm: float) -> bool:
        """Return whether `step * x` can be added with every weight staying finite.

        The Euclidean norm of `x` makes the usual answer quick. A step that is not finite
        never fits.
        """
        bound = self.bound + abs(step) * norm
        if not bound < _SAFE_BOUND:
            after = [self.get(name) + step * float(value) for name, value in x.items()]
            if not all(map(math.isfinite, after)):
                return False
            known = map(abs, self._values.values())
            bound = max(max(known, default=0.0), max(map(abs, after), default=0.0))
        self.bound = bound
        return True

    def move(self, x: Numbers, step: float, norm: float) -> bool:
        """Add `step * x` if it fits (see `fits`); else change nothing and return `False`."""
        if not self.fits(x, step, norm):
            return False
        self.add(x, step)
        return True

    def add(self, x: Numbers, step: float) -> None:
        """Add `step * x`, which must fit (see `fits`)."""
        values = self.opened(x)
        before = values.get
        for name, value in x.items():
            values[name] = before(name, 0.0) + step * value

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
        self.bound = math.inf  # not known: the next `fits` looks at all weights
        if self._changed is not None:
            self._changed.update(values)

    def replace(self, other: Storage) -> None:
        """Become a copy of `other`; only names whose weight differs count as changed."""
        old, new = self._values, other._values
        if self._changed is not None:
            self._changed.update(name for name in old if name not in new)
            self._changed.update(name for name in new if old.get(name) != new[name])
        old.clear()
        old.update(new)
        self.bound = other.bound

    def clear(self) -> None:
        """Drop every weight."""
        if self._changed is not None:
            self._changed.update(self._values)
        self._values.clear()
        self.bound = 0.0

    def track(self) -> None:
        """Start to note the names that change; earlier changes are unknown."""
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


def put_all(moves: Collection[tuple[Storage, Features]], *scalars: float) -> bool:
    """Set values of each vector, or of none if one of them or of some scalars is not finite."""
    parts = (scalars, *(values.values() for _, values in moves))
    if not all(all(map(math.isfinite, part)) for part in parts):
        return False
    for vector, values in moves:
        vector.put(values)
    return True
