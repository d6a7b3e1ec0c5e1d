"""Multiclass AROW: a confidence for every weight of every class."""

from __future__ import annotations

import math
from collections.abc import Mapping

from hinged.events import Label, as_floats
from hinged.kernel import add_both_by_confidence, uncertainty
from hinged.multiclass import DEFAULT_CLASSES
from hinged.multiclass_linear import ClassWeightsByName, MulticlassLinearClassifier, Pair
from hinged.parameters import PositiveNumber
from hinged.vector import Numbers

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

    _CLASS_RULE = "arow"
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
        own, rival = pair
        spreads = uncertainty(own.auxiliary, x) + uncertainty(rival.auxiliary, x)
        constants = [part.auxiliary_intercept * self._constant for part in pair]
        total = spreads + constants[0] + constants[1] + self._r / w
        beta = 1.0 / total if total > 0.0 else math.nan
        step = (1.0 - margin) * beta
        if step == 0.0:
            return False
        steps = step, -step
        intercepts = [p.intercept + s * c for p, s, c in zip(pair, steps, constants, strict=True)]
        vectors = (own.weights, own.auxiliary), (rival.weights, rival.auxiliary)
        finite = math.isfinite(spreads + intercepts[0]) and math.isfinite(intercepts[1])
        if not (finite and add_both_by_confidence(vectors, x, steps, beta)):
            return self._overflow()
        for part, intercept, constant in zip(pair, intercepts, constants, strict=True):
            part.intercept = intercept
            left = part.auxiliary_intercept - beta * constant * constant
            part.auxiliary_intercept = max(0.0, left)
        return True
