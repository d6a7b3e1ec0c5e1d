"""The logistic loss log(1 + exp(-margin)), whose gradient several rules follow."""

from __future__ import annotations

import math

__all__ = ["residual"]


def residual(margin: float) -> float:
    """Return 1 / (1 + exp(margin)): the fall of the logistic loss per unit of margin.

    Examples
    --------
    >>> residual(0.0), residual(-math.inf), residual(1e308)
    (0.5, 1.0, 0.0)

    """
    if margin < 0.0:
        return 1.0 / (1.0 + math.exp(margin))
    odds = math.exp(-margin)
    return odds / (1.0 + odds)
