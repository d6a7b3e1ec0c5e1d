"""Rules with a variance for every weight: bolder steps where little is known."""

from __future__ import annotations

import abc
import math
from typing import ClassVar

from hinged.binary import BinaryLinearClassifier
from hinged.kernel import add_by_confidence, uncertainty
from hinged.start import InitialWeights
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
    label_at_zero
        The label predicted at score 0.
    initial_weights
        Weights to start from: `None` for 0, by feature name, or `RandomWeights`.
    initial_intercept
        The intercept to start from.

    """

    _SCALARS: ClassVar[dict[str, ScalarType]] = {"intercept_variance": SUM}
    _VECTORS: ClassVar[dict[str, float]] = {"weights": -math.inf, "variance": 0.0}
    _forgetting = 0.0

    def __init__(
        self,
        fit_intercept: bool = True,
        max_features: int | None = None,
        *,
        label_at_zero: bool = False,
        initial_weights: InitialWeights = None,
        initial_intercept: float = 0.0,
    ) -> None:
        super().__init__(
            fit_intercept,
            max_features,
            label_at_zero=label_at_zero,
            initial_weights=initial_weights,
            initial_intercept=initial_intercept,
        )
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
        kept = self._part_kept(x)
        spread = uncertainty(self._variance, kept)
        constant = self.intercept_variance * self._constant
        alpha, beta = self._rates(margin, spread + constant, w)
        step = alpha * target
        if step == 0.0:
            return False
        self.accounting.ignored += len(x) - len(kept)
        intercept = self.intercept + step * constant
        if not (math.isfinite(spread + intercept) and self._weights.fits(kept, step, norm)):
            return self._overflow()
        add_by_confidence(self._weights, self._variance, kept, step, beta, self._forgetting)
        self.intercept = intercept
        self.intercept_variance = max(0.0, self.intercept_variance - beta * constant * constant)
        if self._forgetting > 0.0:
            self.intercept_variance = self._faded(self.intercept_variance)
        self.accounting.updates += 1
        return True

    def _faded(self, variance: float) -> float:
        return variance / (1.0 - self._forgetting + self._forgetting * variance)
