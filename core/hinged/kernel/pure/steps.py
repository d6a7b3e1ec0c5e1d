"""Steps: the change that a rule makes to the vectors of an event."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, SupportsFloat

from hinged import arithmetic
from hinged.kernel.pure.storage import Features, Numbers, Storage, put_all

__all__ = [
    "EPSILON",
    "add_adaptively",
    "add_all",
    "add_both_by_confidence",
    "add_by_betting",
    "add_by_confidence",
    "add_logistic",
    "add_proximally",
    "all_finite",
    "logistic_step",
    "next_bet",
    "norm_of",
    "proximal_step",
    "uncertainty",
]

EPSILON = 1e-8


def all_finite(x: object) -> bool:
    """Return whether a dictionary holds finite floats, integers and truth values only."""
    if not isinstance(x, dict) or not {*map(type, x.values())} <= {float, int, bool}:
        return False
    try:
        return all(map(math.isfinite, x.values()))
    except OverflowError:
        return False


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


def add_both_by_confidence(
    pairs: Sequence[tuple[Storage, Storage]], x: Numbers, steps: Sequence[float], beta: float
) -> bool:
    """Add `step S x` to weights and lower their variances, for each pair; all of them or none."""
    moves: list[tuple[Storage, Features]] = []
    for (weights, variance), step in zip(pairs, steps, strict=True):
        new_weights: Features = {}
        new_variance: Features = {}
        for name, value in x.items():
            before = variance.lookup(name, 1.0)
            product = before * value
            new_weights[name] = weights.lookup(name, 0.0) + step * product
            left = before - beta * product * product
            new_variance[name] = left if left > 0.0 else 0.0
        moves += [(weights, new_weights), (variance, new_variance)]
    return put_all(moves)


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


def add_all(moves: Sequence[tuple[Storage, float]], x: Numbers, norm: float) -> bool:
    """Add `step * x` to each vector with its own step, to all of them or to none."""
    if not all(vector.fits(x, step, norm) for vector, step in moves):
        return False
    for vector, step in moves:
        vector.add(x, step)
    return True
