"""Stochastic gradient descent on the logistic loss."""

from __future__ import annotations

import math
from typing import ClassVar

from hinged.binary import BinaryLinearClassifier
from hinged.kernel import add_logistic
from hinged.kernel.pure import logistic_step
from hinged.logistic import residual
from hinged.parameters import Fraction, LearningRate, Rate, checked_choice, rate_at
from hinged.start import InitialWeights
from hinged.state import SUM, ScalarType
from hinged.vector import Numbers, WeightVector, all_finite

__all__ = ["STEPS", "LogisticSGD"]

STEPS = ("rms", "adagrad", "constant")


class LogisticSGD(BinaryLinearClassifier):
    """Logistic regression, trained online.

    On every event with target t and margin `m = t (w . x + b)`, for each feature i
    whose value is not 0, and for the intercept as that of a constant feature 1:

        g = -sample_weight t x_i / (1 + exp(m))
        w_i -= step g

        rms:       v_i = decay v_i + (1 - decay) g^2,  step = learning_rate / sqrt(v_i + 1e-8)
        adagrad:   v_i = v_i + g^2,                    step = learning_rate / sqrt(v_i + 1e-8)
        constant:  step = learning_rate, or a schedule's value

    Steps by the root of the mean square (rms) never die out: the weights follow drift,
    at any scale of the features. AdaGrad's fall with every event.

    Time per event is linear in the features present; memory is two floats per
    feature name ever updated, with constant steps one.

    Parameters
    ----------
    learning_rate
        eta > 0, finite, or one of River's schedulers.
    steps
        `"rms"`, `"adagrad"` or `"constant"`.
    decay
        The part of the mean square that an update keeps, in [0, 1); without effect
        but on rms.
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
    >>> from hinged import LogisticSGD

    >>> model = preprocessing.StandardScaler() | LogisticSGD()
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 89.28%

    References
    ----------
    Tieleman, T. and Hinton, G., 2012. Lecture 6.5: rmsprop: divide the gradient by a running
    average of its recent magnitude. Neural Networks for Machine Learning, Coursera.
    Duchi, J., Hazan, E. and Singer, Y., 2011. Adaptive subgradient methods for online learning and
    stochastic optimization. Journal of Machine Learning Research, 12.

    """

    _SCALARS: ClassVar[dict[str, ScalarType]] = {"intercept_squares": SUM}
    _VECTORS: ClassVar[dict[str, float]] = {"weights": -math.inf, "squares": 0.0}
    _update_margin = math.inf
    learning_rate = LearningRate()
    _learning_rate: Rate
    decay = Fraction()
    _decay: float

    def __init__(
        self,
        learning_rate: Rate = 0.01,
        steps: str = "rms",
        decay: float = 0.999,
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
        self.steps = checked_choice("steps", steps, STEPS)
        self.decay = decay
        self.intercept_squares = 0.0
        self._squares = WeightVector()
        self._rms = self.steps == "rms"
        if self.steps != "constant":
            self._compile(LogisticSGD, "rms" if self._rms else "logistic adagrad")

    @property
    def numbers_per_name(self) -> int:
        """The numbers stored for a name: its weight, and unless steps are constant its squares."""
        return 1 if self.steps == "constant" else 2

    def _step(self, margin: float, norm2: float, w: float) -> float:
        return rate_at(self._learning_rate, self.clock) * w * residual(margin)

    def _update(self, x: Numbers, target: float, margin: float, norm: float, w: float) -> bool:
        if self.steps == "constant":
            return super()._update(x, target, margin, norm, w)
        slope = -target * w * residual(margin)
        if slope == 0.0:
            return False
        rate = rate_at(self._learning_rate, self.clock)
        decay = self._decay if self._rms else None
        own = logistic_step(
            rate, decay, slope * self._constant, self.intercept, self.intercept_squares
        )
        vectors, x = (self._weights, self._squares), self._room(x)
        if not (all_finite(own) and add_logistic(*vectors, x, slope, rate, decay)):
            return self._overflow()
        self.intercept, self.intercept_squares = own
        self.accounting.updates += 1
        return True
