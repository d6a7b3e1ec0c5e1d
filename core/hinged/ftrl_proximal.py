"""FTRL-proximal: logistic regression whose useless weights are exactly 0."""

from __future__ import annotations

import math
from typing import ClassVar

from hinged.binary import BinaryLinearClassifier
from hinged.kernel import add_proximally
from hinged.kernel.pure import proximal_step
from hinged.logistic import residual
from hinged.parameters import NonNegativeNumber, PositiveNumber
from hinged.start import InitialWeights, starts_of
from hinged.state import SIGNED, SUM, ScalarType
from hinged.vector import Numbers, WeightVector, all_finite

__all__ = ["FTRLProximal"]


class FTRLProximal(BinaryLinearClassifier):
    r"""Logistic regression by following the proximally regularised leader.

    On every event with target t and margin `m = t (w . x + b)`, for each feature i
    whose value is not 0:

        g = -sample_weight t x_i / (1 + exp(m))
        z_i += g - (sqrt(n_i + g^2) - sqrt(n_i)) / learning_rate w_i
        n_i += g^2
        w_i = 0 if \|z_i\| <= l1, else
              (sign(z_i) l1 - z_i) / ((beta + sqrt(n_i)) / learning_rate + l2)

    The intercept is the weight of a constant feature 1, without penalties. The absolute
    penalty counts once against the sum of all gradients, so a weight that no steady
    gradient backs is exactly 0 also where every event has every feature. Where a weight has
    an initial value, all this is about its distance to that.

    Time per event is linear in the features present; memory is three floats per
    feature name ever updated.

    Parameters
    ----------
    learning_rate
        alpha in the paper, above 0 and finite.
    beta
        The larger, the smaller the first steps; at least 0.
    l1
        Strength of the absolute penalty, at least 0.
    l2
        Strength of the squared penalty, at least 0.
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
    >>> from hinged import FTRLProximal

    >>> model = preprocessing.StandardScaler() | FTRLProximal()
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 89.44%

    References
    ----------
    McMahan, H. B. et al., 2013. Ad click prediction: a view from the trenches. KDD 19.

    """

    _SCALARS: ClassVar[dict[str, ScalarType]] = {"intercept_sum": SIGNED, "intercept_squares": SUM}
    _VECTORS: ClassVar[dict[str, float]] = {
        "weights": -math.inf,
        "sums": -math.inf,
        "squares": 0.0,
    }
    _update_margin = math.inf
    learning_rate = PositiveNumber(mutable=True)
    _learning_rate: float
    beta = NonNegativeNumber()
    _beta: float
    l1 = NonNegativeNumber()
    _l1: float
    l2 = NonNegativeNumber()
    _l2: float

    def __init__(
        self,
        learning_rate: float = 0.3,
        beta: float = 0.1,
        l1: float = 0.0,
        l2: float = 0.0,
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
        self.learning_rate = learning_rate
        self.beta = beta
        self.l1 = l1
        self.l2 = l2
        self.intercept_sum = self.intercept_squares = 0.0
        self._sums, self._squares = WeightVector(), WeightVector()
        self._compile(FTRLProximal, "proximal")

    def _update(self, x: Numbers, target: float, margin: float, norm: float, w: float) -> bool:
        slope = -target * w * residual(margin)
        if slope == 0.0:
            return False
        rate, beta = self._learning_rate, self._beta
        own = proximal_step(
            slope * self._constant,
            self.initial_intercept,
            self.intercept,
            self.intercept_sum,
            self.intercept_squares,
            parameters=(rate, beta, 0.0, 0.0),
        )
        vectors, x = (self._weights, self._sums, self._squares), self._room(x)
        start, parameters = starts_of(self.initial_weights), (rate, beta, self._l1, self._l2)
        if not (all_finite(own) and add_proximally(vectors, x, slope, start, parameters)):
            return self._overflow()
        self.intercept, self.intercept_sum, self.intercept_squares = own
        self.accounting.updates += 1
        return True
