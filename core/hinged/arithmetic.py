"""The arithmetic of all learners: sums of IEEE doubles, one after the other, in a given order.

Every result here follows from IEEE 754 alone: the same bits on every Python, platform and
compiler. That leaves out `sum`, which compensates from Python 3.12 on, and `math.hypot`, which
differs between versions. `hinged.kernel` computes the same in C.

dot product
    0.0, plus weight times value of each feature, in the order of the event.
squared norm
    0.0, plus the square of each value, in order.
norm
    The square root of the squared norm s if 2^-900 <= s < inf. Else squares were lost: all
    values are multiplied by 2^600, or by 2^-600 where s is infinite, before they are
    squared, and the root is multiplied by the reciprocal.

A rule that needs the square of a norm multiplies the norm by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Any, SupportsFloat

__all__ = ["dot", "length", "norm", "squares"]

LEAST = 2.0**-900
UP = 2.0**600
DOWN = 2.0**-600
_PLAIN = {float, int, bool}


def dot(weight_of: Callable[[Hashable, float], float], x: Mapping[Any, Any]) -> float:
    """Return the dot product of an event and weights, 0 for a name without one.

    A value that is not finite makes the result so, whether or not its weight is known.

    Raises
    ------
    TypeError
        If `x` is no dictionary of `float`, `int` and `bool` within the range of floats.

    Examples
    --------
    >>> dot({"a": 2.0}.get, {"a": 0.5, "b": 3})
    1.0

    """
    if not isinstance(x, dict) or not {*map(type, x.values())} <= _PLAIN:
        raise TypeError("not a dictionary of floats")
    total = 0.0
    try:
        for name, value in x.items():
            total += weight_of(name, 0.0) * value
    except OverflowError:  # a whole number beyond the floats
        raise TypeError("not a dictionary of floats") from None
    return total


def squares(values: Collection[SupportsFloat], scale: float = 1.0) -> float:
    """Return the sum of the squares of the scaled values."""
    total = 0.0
    for value in map(float, values):
        scaled = scale * value
        total += scaled * scaled
    return total


def norm(values: Collection[SupportsFloat]) -> float:
    """Return the Euclidean norm; infinite only if it is beyond the floats.

    Examples
    --------
    >>> norm([3.0, -4.0]), norm([]), norm([5e-324]), norm([1e308, 1e308])
    (5.0, 0.0, 5e-324, 1.4142135623730951e+308)

    """
    total = squares(values)
    if LEAST <= total < math.inf:
        return math.sqrt(total)
    if total == math.inf:
        return math.sqrt(squares(values, DOWN)) * UP
    return math.sqrt(squares(values, UP)) * DOWN  # 0 and NaN stay as they are


def length(a: float, b: float) -> float:
    """Return the norm of two numbers."""
    total = a * a + b * b
    return math.sqrt(total) if LEAST <= total < math.inf else norm((a, b))
