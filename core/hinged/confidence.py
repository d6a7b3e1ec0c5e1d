"""Rules with a variance for every weight: bolder steps where little is known."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Hashable
from typing import ClassVar

from hinged.binary import BinaryLinearClassifier
from hinged.events import as_floats
from hinged.state import SUM, ScalarType
from hinged.vector import Numbers, WeightVector

__all__ = ["ConfidenceRule"]


class ConfidenceRule(BinaryLinearClassifier):
    """A rule that moves weights and variances by two numbers per event.

    S being the variances (1 for a feature never updated), all products feature by
    feature, an event with target t does:

        w += alpha t S x
        S -= beta S^2 x^2
        S = S / (1 - forgetting + forgetting S)

    The intercept is the weight of a constant feature and has a variance too. A rule
    defines `_rates`, which returns alpha and beta.

    Parameters
    ----------
    fit_intercept
        Whether an intercept is learned.
    max_features
        The most feature names kept, or `None` for no limit.

    """

    _SCALARS: ClassVar[dict[str, ScalarType]] = {"intercept_variance": SUM}
    _VECTORS: ClassVar[dict[str, float]] = {"weights": -math.inf, "variance": 0.0}
    _forgetting = 0.0

    def __init__(self, fit_intercept: bool = True, max_features: int | None = None) -> None:
        super().__init__(fit_intercept, max_features)
        self.intercept_variance = 1.0
        self._variance = WeightVector()

    @abc.abstractmethod
    def _rates(self, margin: float, uncertainty: float, w: float) -> tuple[float, float]:
        """Return alpha and beta; an alpha of 0 for no update, not finite for an overflow.

        Parameters
        ----------
        margin
            `t * score`, at most `_update_margin`; infinite if the score overflowed.
        uncertainty
            `x . S x`, the intercept's variance included; infinite if it overflows.
        w
            The sample weight, above 0.

        """

    def _update(self, x: Numbers, target: float, margin: float, norm: float, w: float) -> bool:
        variance_of, weight_of = self._variance.lookup, self._weights.lookup
        kept, uncertainty = _measured(self._part_kept(x), variance_of)
        constant = self.intercept_variance * self._constant
        alpha, beta = self._rates(margin, uncertainty + constant, w)
        step = alpha * target
        if step == 0.0:
            return False
        self.accounting.ignored += len(x) - len(kept)
        intercept = self.intercept + step * constant
        if not (math.isfinite(uncertainty + intercept) and self._weights.fits(kept, step, norm)):
            return self._overflow()
        weights, variance = self._weights.opened(kept), self._variance.opened(kept)
        for name, value in kept.items():
            before = variance_of(name, 1.0)
            product = before * value
            weights[name] = weight_of(name, 0.0) + step * product
            variance[name] = self._left(before, beta * product * product)
        self.intercept = intercept
        left = beta * constant * constant
        self.intercept_variance = self._left(self.intercept_variance, left)
        self.accounting.updates += 1
        return True

    def _left(self, variance: float, taken: float) -> float:
        left = variance - taken
        if not left > 0.0:
            return 0.0
        forgetting = self._forgetting
        return left / (1.0 - forgetting + forgetting * left) if forgetting else left


def _measured(x: Numbers, variance_of: Callable[[Hashable, float], float]) -> tuple[Numbers, float]:
    """Return `x` with floats for its numbers, and x . S x."""
    uncertainty = 0.0
    try:
        for name, value in x.items():
            uncertainty += variance_of(name, 1.0) * value * value
    except TypeError:
        return _measured(as_floats(x), variance_of)
    if type(uncertainty) is float:  # so x holds nothing of NumPy's
        return x, uncertainty
    return _measured(as_floats(x), variance_of)
