"""Soft confidence-weighted learning: right with a margin of several standard deviations."""

from __future__ import annotations

import math

from hinged.confidence import ConfidenceRule
from hinged.kernel import length
from hinged.parameters import PositiveNumber
from hinged.start import InitialWeights

__all__ = ["SCW"]


class SCW(ConfidenceRule):
    """Exact soft confidence-weighted learning (SCW-I), with a diagonal covariance.

    The weights are normal with variances S (1 for a feature never updated), so the
    margin of an event is too, with mean `m = t (w . x + b)` and variance
    `v = x . S x`. Where m falls short of phi standard deviations, it does, all products
    taken feature by feature:

        alpha = min(C sample_weight, (h - m (1 + phi^2 / 2)) / (v (1 + phi^2)))
        h = sqrt(m^2 phi^4 / 4 + v phi^2 (1 + phi^2))
        u = ((sqrt(alpha^2 v^2 phi^2 + 4 v) - alpha v phi) / 2)^2
        w += alpha t S x
        S -= alpha phi / (sqrt(u) + v alpha phi) S^2 x^2

    The intercept is the weight of a constant feature and has a variance too. An event
    whose variance v underflows to 0 teaches nothing.

    Time per event is linear in the features present; memory is two floats per
    feature name ever updated.

    Parameters
    ----------
    C
        The largest step, above 0 and finite; smaller is more careful with noisy labels.
    phi
        Standard deviations between margin and 0, above 0: 1.28 asks for a right
        label with probability 0.9, 1.64 for 0.95.
    fit_intercept
        Whether to learn the intercept b.
    max_features
        The most feature names kept, or `None` for no limit.
    label_at_zero
        The label predicted at score 0.
    initial_weights
        Weights to start from: `None` for 0, by feature name, or `RandomWeights`.
    initial_intercept
        The intercept to start from.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from hinged import SCW

    >>> model = preprocessing.StandardScaler() | SCW()
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 89.20%

    References
    ----------
    Wang, J., Zhao, P. and Hoi, S. C. H., 2012. Exact soft confidence-weighted learning. ICML 29.

    """

    C = PositiveNumber(mutable=True)
    _C: float
    phi = PositiveNumber(mutable=True)
    _phi: float
    _update_margin = math.inf

    def __init__(
        self,
        C: float = 0.1,
        phi: float = 0.35,
        fit_intercept: bool = True,
        max_features: int | None = None,
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
        self.C = C
        self.phi = phi
        self._compile(SCW, "scw")

    def _rates(self, margin: float, uncertainty: float, w: float) -> tuple[float, float]:
        phi, v = self._phi, uncertainty
        if v == 0.0 or margin >= phi * math.sqrt(v):
            return 0.0, 0.0
        if not -math.inf < margin:
            return math.nan, 0.0
        square = phi * phi
        h = length(margin * square / 2.0, phi * math.sqrt(v * (1.0 + square)))
        alpha = min(self._C * w, max(0.0, h - margin * (1.0 + square / 2.0)) / (1.0 + square) / v)
        spread = alpha * v * phi
        deviation = (length(spread, 2.0 * math.sqrt(v)) - spread) / 2.0
        total = deviation + spread
        return alpha, alpha * phi / total if total > 0.0 else math.nan
