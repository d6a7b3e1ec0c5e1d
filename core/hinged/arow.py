"""AROW: a confidence for every weight, and bolder steps where it is low."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import ClassVar

from hinged.binary import BinaryLinearClassifier
from hinged.events import as_floats
from hinged.parameters import PositiveNumber
from hinged.start import InitialWeights
from hinged.state import SUM, ScalarType
from hinged.vector import Numbers, WeightVector

__all__ = ["AROW"]


class AROW(BinaryLinearClassifier):
    """Adaptive regularisation of weight vectors, with a diagonal covariance.

    On an event with margin `m = t (w . x + b) < 1`, S being the variances (1 for
    a feature never updated) and all products taken feature by feature:

        beta = 1 / (x . S x + r / sample_weight)
        w += (1 - m) beta t S x
        S -= beta S^2 x^2

    The intercept is the weight of a constant feature and has a variance too.

    Time per event is linear in the features present; memory is two floats per
    feature name ever updated.

    Parameters
    ----------
    r
        Regularisation, above 0 and finite; larger is more careful.
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
    >>> from hinged import AROW

    >>> model = preprocessing.StandardScaler() | AROW()
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 88.48%

    References
    ----------
    Crammer, K., Kulesza, A. and Dredze, M., 2009. Adaptive regularization of weight vectors.
    NIPS 22.

    """

    _SCALARS: ClassVar[dict[str, ScalarType]] = {"intercept_variance": SUM}
    _VECTORS: ClassVar[dict[str, float]] = {"weights": -math.inf, "variance": 0.0}
    _update_margin = 1.0
    r = PositiveNumber(mutable=True)
    _r: float

    def __init__(
        self,
        r: float = 1.0,
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
        self.r = r
        self.intercept_variance = 1.0
        self._variance = WeightVector()

    def _update(self, x: Numbers, target: float, margin: float, norm: float, w: float) -> bool:
        variance_of, weight_of = self._variance.lookup, self._weights.lookup
        x, uncertainty = _measured(self._room(x), variance_of)
        constant = self.intercept_variance * self._constant
        total = uncertainty + constant + self._r / w
        beta = 1.0 / total if total > 0.0 else math.nan
        step = (1.0 - margin) * beta * target
        if step == 0.0:
            return False
        intercept = self.intercept + step * constant
        if not (math.isfinite(uncertainty + intercept) and self._weights.fits(x, step, norm)):
            return self._overflow()
        weights, variance = self._weights.opened(x), self._variance.opened(x)
        for name, value in x.items():
            before = variance_of(name, 1.0)
            product = before * value
            weights[name] = weight_of(name, 0.0) + step * product
            left = before - beta * product * product
            variance[name] = left if left > 0.0 else 0.0
        self.intercept = intercept
        self.intercept_variance = max(0.0, self.intercept_variance - beta * constant * constant)
        self.accounting.updates += 1
        return True


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
