"""Penalties: weights that are shrunk and pulled only when they are read."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from math import exp

from hinged import arithmetic
from hinged.kernel.pure.storage import Event, Features, Numbers, Storage, put_all

__all__ = [
    "adaptive_dot",
    "add_penalised",
    "add_pulled",
    "add_shrunk",
    "penalised",
    "pulled",
    "pulled_dot",
    "pulled_since",
    "set_mark",
    "shrunk_dot",
]


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


def pulled_dot(
    vectors: tuple[Storage, Storage, Storage],
    x: Event,
    log_shrink: float,
    pull: float,
    shrinks: bool,
    found: list[float],
) -> float:
    """Return `w . x` of weights that are shrunk and pulled since their marks, and append these.

    The vectors are the weights, and their marks of shrinking and of pulling. It raises
    `TypeError` as `hinged.arithmetic.dot` does.
    """
    weights, shrink_marks, pull_marks = vectors

    def current(name: Hashable, default: float) -> float:
        due = log_shrink - shrink_marks.lookup(name, 0.0) if shrinks else 0.0
        paid = pull_marks.lookup(name, 0.0)
        weight = pulled_since(weights.lookup(name, 0.0), due, pull, paid)
        found.append(weight)
        return weight

    return arithmetic.dot(current, x)


def pulled_since(weight: float, due: float, pull: float, paid: float) -> float:
    """Return a weight shrunk by exp(due), and pulled by the unpaid part of `pull`."""
    if weight == 0.0:
        return weight
    if due < 0.0:
        factor = exp(due)
        weight, paid = factor * weight, factor * paid
    return pulled(weight, pull - paid)


def pulled(weight: float, pull: float) -> float:
    """Return `weight` moved towards 0 by `pull`, never beyond."""
    return weight - pull if weight > pull else weight + pull if weight < -pull else 0.0


def add_pulled(
    weights: Storage, x: Numbers, before: list[float], shrink: float, step: float, pull: float
) -> None:
    """Set the weights to `shrink` times those before, plus `step x`, which fits, then pulled."""
    values = weights.opened(x)
    for (name, value), weight in zip(x.items(), before, strict=True):
        values[name] = pulled(shrink * weight + step * value, pull)


def set_mark(marks: Storage, x: Iterable[Hashable], mark: float) -> None:
    """Set the number of each name of an event to `mark`."""
    marks.put(dict.fromkeys(x, mark))


def adaptive_dot(
    vectors: tuple[Storage, Storage, Storage],
    x: Event,
    clock: float,
    rate: float,
    l1: float,
    l2: float,
    found: list[float],
) -> float:
    """Return `w . x` of AdaGrad's weights, penalised since their marks, and append these.

    The vectors are the weights, their squares and the clocks of their last updates. It
    raises `TypeError` as `hinged.arithmetic.dot` does.
    """
    weights, squares, marks = vectors

    def current(name: Hashable, default: float) -> float:
        events = clock - marks.lookup(name, 0.0)
        weight = weights.lookup(name, 0.0)
        weight = penalised(weight, squares.lookup(name, 0.0), events, rate, l1, l2)
        found.append(weight)
        return weight

    return arithmetic.dot(current, x)


def penalised(
    weight: float, square: float, events: float, rate: float, l1: float, l2: float
) -> float:
    """Return a weight of AdaGrad after events that were not its own."""
    if weight == 0.0 or square == 0.0:
        return weight
    events = max(0.0, events)
    eta = rate / math.sqrt(square)
    shrink, pull = max(0.0, 1.0 - eta * l2), eta * l1
    factor = shrink**events
    repeats = events if shrink == 1.0 else (1.0 - factor) / (1.0 - shrink)
    return math.copysign(max(0.0, factor * abs(weight) - pull * repeats), weight)


def add_penalised(
    vectors: tuple[Storage, Storage],
    x: Numbers,
    before: list[float],
    rate: float,
    target: float,
    w: float,
    l1: float,
    l2: float,
) -> bool:
    """Take AdaGrad's penalised step on every weight, or none if a number would not be finite."""
    square_of = vectors[1].lookup
    weights: Features = {}
    squares: Features = {}
    for (name, value), weight in zip(x.items(), before, strict=True):
        gradient = w * value
        square = square_of(name, 0.0) + gradient * gradient
        if square > 0.0:
            eta = rate / math.sqrt(square)
            kept = max(0.0, 1.0 - eta * l2) * weight
            weight = pulled(kept + eta * target * gradient, eta * l1)
        weights[name], squares[name] = weight, square
    return put_all(((vectors[0], weights), (vectors[1], squares)))
