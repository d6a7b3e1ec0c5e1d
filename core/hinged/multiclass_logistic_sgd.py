"""Softmax regression: the logistic loss of all classes at once."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping

from hinged.events import Label
from hinged.kernel import add_to_classes
from hinged.multiclass import DEFAULT_CLASSES, softmax
from hinged.multiclass_linear import (
    ClassWeights,
    ClassWeightsByName,
    MulticlassLinearClassifier,
    Pair,
)
from hinged.parameters import Fraction, LearningRate, Rate, rate_at
from hinged.vector import Numbers

__all__ = ["MulticlassLogisticSGD"]


class MulticlassLogisticSGD(MulticlassLinearClassifier):
    """Multinomial logistic regression, trained online with AdaGrad's steps.

    With the scores s_k = w_k . x + b_k, p = softmax(s) and y the event's class, for y and
    each other class k of `p_k >= least`, each feature i whose value is not 0, and the
    intercept as that of a constant feature 1:

        g = sample_weight (p_k - [k = y]) x_i
        v_ki = v_ki + g^2,   w_ki -= learning_rate / sqrt(v_ki + 1e-8) g

    With `least=0` that is the gradient of the log loss, over all classes. The classes
    left out add less than `least` each; that halves the time of ten classes, costs no
    accuracy, and no more than 1 / least of a thousand classes move.

    Time per event is linear in the features present, times the classes; memory is
    two floats per class and feature name ever updated.

    Parameters
    ----------
    learning_rate
        eta > 0, finite, or one of River's schedulers.
    least
        The least probability of a wrong class that moves, in [0, 1).
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
    >>> from hinged import MulticlassLogisticSGD

    >>> model = preprocessing.StandardScaler() | MulticlassLogisticSGD()
    >>> evaluate.progressive_val_score(datasets.ImageSegments(), model, metrics.Accuracy())
    Accuracy: 89.35%

    References
    ----------
    Duchi, J., Hazan, E. and Singer, Y., 2011. Adaptive subgradient methods for online learning and
    stochastic optimization. Journal of Machine Learning Research, 12.
    Bishop, C. M., 2006. Pattern Recognition and Machine Learning. Springer. Section 4.3.4.

    """

    _CLASS_RULE = "logistic"
    _AUXILIARY = "squares"
    _update_margin = math.inf
    learning_rate = LearningRate()
    _learning_rate: Rate
    least = Fraction()
    _least: float

    def __init__(
        self,
        learning_rate: Rate = 0.3,
        least: float = 0.01,
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
        self.learning_rate = learning_rate
        self.least = least

    def _moving(self, y: Hashable, scores: Mapping[Label, float]) -> Collection[Hashable]:
        if scores.keys() <= {y}:
            return ()
        if y not in scores:
            return (*scores, y)  # its first score is not known here
        return [k for k, p in softmax(scores).items() if k == y or p >= self._least]

    def _update(self, x: Numbers, pair: Pair, margin: float, norm: float, w: float) -> bool:
        if not math.isfinite(margin):
            return self._overflow()
        shares = softmax(self._raw_scores(x)[1])
        moving: list[ClassWeights] = []
        slopes: list[float] = []
        for part, share in zip(self._parts.values(), shares.values(), strict=True):
            right = part is pair[0]
            if right or not share < self._least:
                moving.append(part)
                slopes.append(w * (share - right))
        rate, x = rate_at(self._learning_rate, self.clock), self._room(x)
        return add_to_classes(moving, slopes, x, rate, self._constant) or self._overflow()

    @property
    def numbers_per_name(self) -> int:
        """The most numbers that an event stores for a name: those of every class, and one more."""
        return (len(self._parts) + 1) * self._numbers
