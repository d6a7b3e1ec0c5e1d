"""Multiclass AROW: a confidence for every weight of every class."""

from __future__ import annotations

import math
from collections.abc import Mapping

from hinged.events import Label, as_floats
from hinged.multiclass import DEFAULT_CLASSES
from hinged.multiclass_linear import ClassWeightsByName, MulticlassLinearClassifier, Pair
from hinged.parameters import PositiveNumber
from hinged.vector import Features, Numbers, WeightVector, all_finite

__all__ = ["MulticlassAROW"]


class MulticlassAROW(MulticlassLinearClassifier):
    """Adaptive regularisation of weight vectors for any number of classes.

    With the scores s_k = w_k . x + b_k, y the event's class, r its rival, the
    best-scoring wrong class, `m = s_y - s_r < 1`, and S_k the variances (1 for a
    feature never updated), products taken feature by feature:

        beta = 1 / (x . (S_y + S_r) x + r / sample_weight)
        w_y += (1 - m) beta S_y x,   w_r -= (1 - m) beta S_r x
        S_k -= beta S_k^2 x^2        for both classes

    Every intercept is the weight of a constant feature and has a variance too.

    Time per event is linear in the features present, times the classes; memory is
    two floats per class and feature name ever updated.

    Parameters
    ----------
    r
        Regularisation, above 0 and finite; larger is more careful.
    fit_intercept
        Whether every class learns an intercept.
    max_classes
        The most classes, or `None` for no limit; an event of one more is refused.
    max_features
        The most feature names kept, or `None` for no limit.
    initial_weights
        Weights to start from: `None` for 0; by class, then by feature name, classes
        that are known from the start; or `RandomWeights`, others for each class.
    initial_intercepts
        Intercepts to start from, by class, known from the start likewise.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from hinged import MulticlassAROW

    >>> model = preprocessing.StandardScaler() | MulticlassAROW()
    >>> evaluate.progressive_val_score(datasets.ImageSegments(), model, metrics.Accuracy())
    Accuracy: 88.44%

    References
    ----------
    Crammer, K., Kulesza, A. and Dredze, M., 2009. Adaptive regularization of weight vectors.
    NIPS 22.

    """

    _AUXILIARY = "variance"
    _AUXILIARY_START = 1.0
    _update_margin = 1.0
    r = PositiveNumber(mutable=True)
    _r: float

    def __init__(
        self,
        r: float = 1.0,
        fit_intercept: bool = True,
        max_classes: int | None = DEFAULT_CLASSES,
        max_features: int | None = None,
        initial_weights: ClassWeightsByName = None,
        initial_intercepts: Mapping[Label, float] | None = None,
    ) -> None:
        super().__init__(
            fit_intercept,
            max_classes,
            max_features,
            initial_weights=initial_weights,
            initial_intercepts=initial_intercepts,
        )
        self.r = r

    def _update(self, x: Numbers, pair: Pair, margin: float, norm: float, w: float) -> bool:
        x = as_floats(self._room(x))
        parts = ((pair[0], 1.0), (pair[1], -1.0))
        spreads = [_spread_of(part.auxiliary, x) for part, _ in parts]
        constants = [part.auxiliary_intercept * self._constant for part, _ in parts]
        uncertainty = spreads[0][1] + spreads[1][1]
        total = uncertainty + constants[0] + constants[1] + self._r / w
        beta = 1.0 / total if total > 0.0 else math.nan
        step = (1.0 - margin) * beta
        if step == 0.0:
            return False
        new = []
        for (part, sign), (spread, _), constant in zip(parts, spreads, constants, strict=True):
            weights, variance = _moved(part.weights, part.auxiliary, spread, sign * step, beta)
            intercept = part.intercept + sign * step * constant
            if not (math.isfinite(uncertainty + intercept) and all_finite(weights.values())):
                return self._overflow()
            left = max(0.0, part.auxiliary_intercept - beta * constant * constant)
            new.append((part, weights, variance, intercept, left))
        for part, weights, variance, intercept, left in new:
            part.weights.put(weights)
            part.auxiliary.put(variance)
            part.intercept, part.auxiliary_intercept = intercept, left
        return True


def _spread_of(variance: WeightVector, x: Numbers) -> tuple[Features, float]:
    """Return S x by name, and x . S x; a variance never stored is 1."""
    stored = variance.lookup
    spread: Features = {}
    uncertainty = 0.0
    for name, value in x.items():
        spread[name] = product = stored(name, 1.0) * value
        uncertainty += product * value
    return spread, uncertainty


def _moved(
    weights: WeightVector, variance: WeightVector, spread: Features, step: float, beta: float
) -> tuple[Features, Features]:
    """Return the weights w + step S x and the variances S - beta S^2 x^2, by name."""
    weight, stored = weights.lookup, variance.lookup
    new_weights: Features = {}
    new_variance: Features = {}
    for name, product in spread.items():
        new_weights[name] = weight(name, 0.0) + step * product
        left = stored(name, 1.0) - beta * product * product
        new_variance[name] = left if left > 0.0 else 0.0
    return new_weights, new_variance
