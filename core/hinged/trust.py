"""Trust in experts: multiplicative weights with a fixed share."""

from __future__ import annotations

import math

__all__ = ["judged"]


def judged(trust: list[float], wrong: list[bool], loss: float, share: float) -> list[float]:
    """Return the trust after one event: exp(-loss) of it left to the wrong, a share spread evenly.

    Where nothing would be left, the trust stays as it is.

    Examples
    --------
    >>> import math
    >>> [round(v, 2) for v in judged([0.5, 0.5], [False, True], math.log(2.0), 0.1)]
    [0.65, 0.35]

    """
    factor = math.exp(-loss)
    left = [v * factor if bad else v for v, bad in zip(trust, wrong, strict=True)]
    total = math.fsum(left)
    if total <= 0.0:
        return trust
    even = share / len(left)
    return [(1.0 - share) * v / total + even for v in left]
