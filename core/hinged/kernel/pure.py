"""The inner loops in Python: the definition that the compiled version is compared with."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Any, SupportsFloat

from hinged import arithmetic
from hinged.arithmetic import length

__all__ = [
    "Storage",
    "add_adaptively",
    "add_by_betting",
    "add_by_confidence",
    "add_logistic",
    "add_proximally",
    "add_shrunk",
    "length",
    "logistic_step",
    "next_bet",
    "norm_of",
    "proximal_step",
    "put_all",
    "shrunk_dot",
    "uncertainty",
]

Event = Mapping[Any, SupportsFloat | None]
Numbers = Mapping[Any, float]
Features = dict[Hashable, float]

_SAFE_BOUND = 1e300
EPSILON = 1e-8


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


def norm_of(x: Mapping[Any, SupportsFloat]) -> float:
    """Return the Euclidean norm of an event."""
    return arithmetic.norm(x.values())


def uncertainty(variance: Storage, x: Numbers) -> float:
    """Return `x . S x`, a variance never stored being 1."""
    total, variance_of = 0.0, variance.lookup
    for name, value in x.items():
        total += variance_of(name, 1.0) * value * value
    return total


def add_by_confidence(
    weights: Storage, variance: Storage, x: Numbers, step: float, beta: float, forgetting: float
) -> None:
    """Add `step S x`, which must fit, and lower the variances (see `ConfidenceRule`)."""
    weight_of, variance_of = weights.lookup, variance.lookup
    new_weights, new_variance = weights.opened(x), variance.opened(x)
    for name, value in x.items():
        before = variance_of(name, 1.0)
        product = before * value
        new_weights[name] = weight_of(name, 0.0) + step * product
        left = before - beta * product * product
        if not left > 0.0:
            left = 0.0
        if forgetting > 0.0:
            left = left / (1.0 - forgetting + forgetting * left)
        new_variance[name] = left


def add_adaptively(
    weights: Storage, squares: Storage, x: Numbers, rate: float, target: float, w: float
) -> bool:
    """Take AdaGrad's step on every weight of `x`, or none if a number would not be finite."""
    weight_of, square_of = weights.lookup, squares.lookup
    new_weights: Features = {}
    new_squares: Features = {}
    for name, value in x.items():
        gradient = w * value
        square = square_of(name, 0.0) + gradient * gradient
        weight = weight_of(name, 0.0)
        if square > 0.0:
            weight += rate / math.sqrt(square) * target * gradient
        new_weights[name], new_squares[name] = weight, square
    return put_all(((weights, new_weights), (squares, new_squares)))


def add_logistic(
    weights: Storage, squares: Storage, x: Numbers, slope: float, rate: float, decay: float | None
) -> bool:
    """Take a step of `LogisticSGD` on every weight, or none if a number would not be finite."""
    weight_of, square_of = weights.lookup, squares.lookup
    new_weights: Features = {}
    new_squares: Features = {}
    for name, value in x.items():
        new_weights[name], new_squares[name] = logistic_step(
            rate, decay, slope * value, weight_of(name, 0.0), square_of(name, 0.0)
        )
    return put_all(((weights, new_weights), (squares, new_squares)))


def logistic_step(
    rate: float, decay: float | None, gradient: float, weight: float, square: float
) -> tuple[float, float]:
    """Return a weight and its squares after one gradient; no `decay` is AdaGrad."""
    if gradient == 0.0:
        return weight, square
    if decay is None:
        square += gradient * gradient
    else:
        square = decay * square + (1.0 - decay) * (gradient * gradient)
    return weight - rate / math.sqrt(square + EPSILON) * gradient, square


def add_proximally(
    vectors: tuple[Storage, Storage, Storage],
    x: Numbers,
    slope: float,
    start_of: Callable[[Hashable], float] | None,
    parameters: tuple[float, float, float, float],
) -> bool:
    """Take a step of `FTRLProximal` on every weight, or none if a number would not be finite."""
    new: tuple[Features, Features, Features] = ({}, {}, {})
    for name, value in x.items():
        after = proximal_step(
            slope * value,
            0.0 if start_of is None else start_of(name),
            *(vector.lookup(name, 0.0) for vector in vectors),
            parameters=parameters,
        )
        for values, number in zip(new, after, strict=True):
            values[name] = number
    return put_all(tuple(zip(vectors, new, strict=True)))


def proximal_step(
    gradient: float,
    start: float,
    weight: float,
    total: float,
    square: float,
    *,
    parameters: tuple[float, float, float, float],
) -> tuple[float, float, float]:
    """Return a weight, and the two sums that give it, after one gradient.

    The parameters are the rate, beta, l1 and l2.
    """
    if gradient == 0.0:
        return weight, total, square
    rate, beta, l1, l2 = parameters
    root = math.sqrt(square)
    square += gradient * gradient
    grown = math.sqrt(square)
    total += gradient - (grown - root) / rate * (weight - start)
    if abs(total) <= l1:
        return start, total, square
    divisor = (beta + grown) / rate + l2
    moved = (math.copysign(l1, total) - total) / divisor if divisor > 0.0 else 0.0
    return start + moved, total, square


def add_by_betting(
    vectors: tuple[Storage, Storage, Storage, Storage, Storage],
    x: Numbers,
    slope: float,
    w: float,
    start_of: Callable[[Hashable], float] | None,
) -> bool:
    """Bet on every weight of `x`, or on none if a number would not be finite."""
    new: tuple[Features, ...] = ({}, {}, {}, {}, {})
    for name, value in x.items():
        after = next_bet(
            slope * value,
            w * abs(value),
            0.0 if start_of is None else start_of(name),
            *(vector.lookup(name, 0.0) for vector in vectors),
        )
        for values, number in zip(new, after, strict=True):
            values[name] = number
    return put_all(tuple(zip(vectors, new, strict=True)))


def next_bet(
    coin: float,
    most: float,
    start: float,
    weight: float,
    total: float,
    scale: float,
    size: float,
    reward: float,
) -> tuple[float, float, float, float, float]:
    """Return the weight, and the sums that give it, after the outcome of one coin."""
    if coin == 0.0:
        return weight, total, scale, size, reward
    scale = max(scale, most)
    size += abs(coin)
    reward = max(0.0, reward + coin * (weight - start))
    total += coin
    bet = total / (size + scale) * ((1.0 + reward) / scale)
    return start + bet, total, scale, size, reward


def shrunk_dot(
    weights: Storage, marks: Storage, x: Event, log_shrink: float, found: list[float]
) -> float:
    """Return `w . x` of weights that are shrunk since their marks, and append these to a list.

    It raises `TypeError` as `hinged.arithmetic.dot` does.
    """
    weight_of, mark_of = weights.lookup, marks.lookup

    def shrunk(name: Hashable, default: float) -> float:
        weight = weight_of(name, 0.0) * math.exp(log_shrink - mark_of(name, log_shrink))
        found.append(weight)
        return weight

    return arithmetic.dot(shrunk, x)


def add_shrunk(
    vectors: tuple[Storage, Storage],
    x: Numbers,
    before: list[float],
    shrink: float,
    step: float,
    mark: float,
) -> None:
    """Set the weights to `shrink` times those before, plus `step x`, which fits; mark them."""
    weights, marks = vectors[0].opened(x), vectors[1].opened(x)
    for (name, value), weight in zip(x.items(), before, strict=True):
        weights[name] = shrink * weight + step * value
        marks[name] = mark


def put_all(moves: Collection[tuple[Storage, Features]], *scalars: float) -> bool:
    """Set values of each vector, or of none if one of them or of some scalars is not finite."""
    parts = (scalars, *(values.values() for _, values in moves))
    if not all(all(map(math.isfinite, part)) for part in parts):
        return False
    for vector, values in moves:
        vector.put(values)
    return True
