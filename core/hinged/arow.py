"""AROW: a confidence for every weight, and bolder steps where it is low."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from hinged.base import BinaryLinearClassifier
from hinged.events import as_floats
from hinged.parameters import PositiveNumber
from hinged.state import SUM, Kind
from hinged.vector import WeightVector, all_finite

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

    _SCALARS: ClassVar[dict[str, Kind]] = {"intercept_variance": SUM}
    _VECTORS: ClassVar[dict[str, float]] = {"weights": -math.inf, "variance": 0.0}
    _update_margin = 1.0
    r = PositiveNumber()

    def __init__(
        self, r: float = 1.0, fit_intercept: bool = True, max_features: int | None = None
    ) -> None:
        super().__init__(fit_intercept, max_features)
        self.r = r
        self.intercept_variance = 1.0
        self._variance = WeightVector()

    @property
    def _mutable_attributes(self) -> set[str]:
        return {"r"}

    def _update(
        self, x: Mapping[Any, Any], target: float, margin: float, norm: float, w: float
    ) -> bool:
        x = as_floats(self._room(x))
        spread, uncertainty = spread_of(self._variance, x)
        constant = self.intercept_variance * self._constant
        total = uncertainty + constant + self.r / w
        beta = 1.0 / total if total > 0.0 else math.nan
        step = (1.0 - margin) * beta * target
        if step == 0.0:
            return False
        intercept = self.intercept + step * constant
        weights, variance = moved(self._weights, self._variance, spread, step, beta)
        if not (math.isfinite(uncertainty + intercept) and all_finite(weights.values())):
            return self._overflow()
        self._weights.put(weights)
        self._variance.put(variance)
        self.intercept = intercept
        self.intercept_variance = max(0.0, self.intercept_variance - beta * constant * constant)
        self.accounting.updates += 1
        return True


def spread_of(variance: WeightVector, x: Mapping[Any, Any]) -> tuple[dict[Any, float], float]:
    """Return S x by name, and x . S x; a variance never stored is 1."""
    stored = variance.view().get
    spread = {}
    uncertainty = 0.0
    for name, value in x.items():
        spread[name] = product = stored(name, 1.0) * value
        uncertainty += product * value
    return spread, uncertainty


def moved(
    weights: WeightVector,
    variance: WeightVector,
    spread: Mapping[Any, float],
    step: float,
    beta: float,
) -> tuple[dict[Any, float], dict[Any, float]]:
    """Return the weights w + step S x and the variances S - beta S^2 x^2, by name."""
    weight, stored = weights.view().get, variance.view().get
    new_weights, new_variance = {}, {}
    for name, product in spread.items():
        new_weights[name] = weight(name, 0.0) + step * product
        left = stored(name, 1.0) - beta * product * product
        new_variance[name] = left if left > 0.0 else 0.0
    return new_weights, new_variance
