"""AROW: a confidence for every weight, and bolder steps where it is low."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from hinged.base import BinaryLinearClassifier
from hinged.parameters import PositiveNumber
from hinged.state import SUM, Kind
from hinged.vector import WeightVector

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
    _update_margin = math.nextafter(1.0, 0.0)
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
        x = self._room(x)
        spread, uncertainty = spread_of(self._variance, x)
        constant = self.intercept_variance * self._constant
        total = uncertainty + constant + self.r / w
        beta = 1.0 / total if total > 0.0 else math.nan
        step = (1.0 - margin) * beta * target
        weight = self._weights.get
        weights = {name: weight(name) + step * value for name, value in spread.items()}
        intercept = self.intercept + step * constant
        if not (math.isfinite(uncertainty) and all_finite(weights, intercept)):
            return self._overflow()
        if step == 0.0:
            return False
        self._weights.put(weights)
        self._variance.put(shrunk(self._variance, spread, beta))
        self.intercept = intercept
        self.intercept_variance = max(0.0, self.intercept_variance - beta * constant * constant)
        self.accounting.updates += 1
        return True


def spread_of(variance: WeightVector, x: Mapping[Any, Any]) -> tuple[dict[Any, float], float]:
    """Return S x by name, and x . S x; a variance never stored is 1."""
    stored = variance.view().get
    spread = {name: stored(name, 1.0) * value for name, value in x.items()}
    uncertainty = 0.0
    for name, value in x.items():
        uncertainty += spread[name] * value
    return spread, uncertainty


def shrunk(variance: WeightVector, spread: Mapping[Any, float], beta: float) -> dict[Any, float]:
    """Return the variances S - beta S^2 x^2, kept at 0 or above, by name."""
    stored = variance.view().get
    return {n: max(0.0, stored(n, 1.0) - beta * sx * sx) for n, sx in spread.items()}


def all_finite(weights: Mapping[Any, float], intercept: float) -> bool:
    """Return whether every weight and the intercept are finite."""
    return math.isfinite(intercept) and all(map(math.isfinite, weights.values()))
