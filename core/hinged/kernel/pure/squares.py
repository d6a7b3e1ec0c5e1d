"""Squares: features that let a linear rule learn a quadratic boundary."""

from __future__ import annotations

from hinged.kernel.pure.storage import Features, Numbers

__all__ = ["LARGEST_ROOT", "SQUARE", "with_squares"]

LARGEST_ROOT = 1e150
"""The largest value that is squared; larger ones count as it."""
SQUARE = "²"


def with_squares(x: Numbers) -> Features:
    """Return the features and behind them their squares less 1, but for values of 0 and 1.

    The square of `a` is named `a²`; it is left out if there is a feature of that name. That of
    NaN is NaN.

    >>> with_squares({"a": -3.0, "b": 0.5, "flag": 1.0})
    {'a': -3.0, 'b': 0.5, 'flag': 1.0, 'a²': 8.0, 'b²': -0.75}

    """
    found: Features = dict(x)
    for name, value in x.items():
        if value not in (0.0, 1.0):
            root = float(value)
            if root > LARGEST_ROOT:
                root = LARGEST_ROOT
            elif root < -LARGEST_ROOT:
                root = -LARGEST_ROOT
            found.setdefault(f"{name}{SQUARE}", root * root - 1.0)
    return found
