"""AROW: a confidence for every weight, and bolder steps where it is low."""

from __future__ import annotations

import math

from hinged.confidence import ConfidenceRule
from hinged.parameters import Fraction, PositiveNumber
from hinged.start import InitialWeights

__all__ = ["AROW"]


class AROW(ConfidenceRule):
    """Adaptive regularisation of weight vectors, with a diagonal covariance.

    On an event with margin `m = t (w . x + b) < 1`, S being the variances (1 for
    a feature never updated) and all products taken feature by feature:

        beta = 1 / (x . S x + r / sample_weight)
        w += (1 - m) beta t S x
        S -= beta S^2 x^2
        S = S / (1 - forgetting + forgetting S)

    The last line takes every updated variance back towards 1: the confidence counts
    about the last `1 / forgetting` updates of a feature, so that the steps do not die
    out and the weights follow drift. In terms of the confidence 1 / S it is the
    mean, weighted by `1 - forgetting` and `forgetting`, of what was learned and of what
    was known at first. With 0 it changes nothing.

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
    forgetting
        The part of the confidence that an update forgets, in [0, 1).
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
    Kulhavy, R. and Zarrop, M. B., 1993. On a general concept of forgetting. International Journal
    of Control, 58(4).

    """

    _update_margin = 1.0
    r = PositiveNumber(mutable=True)
    _r: float
    forgetting = Fraction(mutable=True)

    def __init__(
        self,
        r: float = 1.0,
        fit_intercept: bool = True,
        max_features: int | None = None,
        forgetting: float = 0.0,
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
        self.forgetting = forgetting
        self._compile(AROW, "arow")

    def _rates(self, margin: float, uncertainty: float, w: float) -> tuple[float, float]:
        total = uncertainty + self._r / w
        beta = 1.0 / total if total > 0.0 else math.nan
        return (1.0 - margin) * beta, beta
