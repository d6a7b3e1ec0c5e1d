"""The averaged perceptron: predict with the mean of all weight vectors so far."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import ClassVar

from hinged.binary import BinaryLinearClassifier
from hinged.parameters import LearningRate, Rate, rate_at
from hinged.start import InitialWeights
from hinged.state import SIGNED, ScalarType
from hinged.vector import Event, Numbers, WeightVector, saturated

__all__ = ["AveragedPerceptron"]


class AveragedPerceptron(BinaryLinearClassifier):
    r"""The perceptron, predicting with the mean of its weights after each event.

    The raw weights w learn exactly as `Perceptron`'s do. Served is

        w_mean = (w_1 + ... + w_T) / T,

    w_t being the raw weights after event t of the T events of weight above 0.
    It is kept lazily: an update of the event t adds (t - 1) times its step to a
    second vector u, and `w_mean = w - u / T`.

    `accounting.mistakes` counts the served label; updates and losses are those
    of the raw weights. Time per event is linear in the features present; memory
    is two floats per feature name ever updated.

    Parameters
    ----------
    learning_rate
        eta > 0, finite, or one of River's schedulers.
    fit_intercept
        Whether to learn the intercept, averaged likewise.
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
    >>> from hinged import AveragedPerceptron

    >>> model = preprocessing.StandardScaler() | AveragedPerceptron()
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 88.96%

    References
    ----------
    Freund, Y. and Schapire, R. E., 1999. Large margin classification using the perceptron
    algorithm. Machine Learning, 37(3).

    """

    _SCALARS: ClassVar[dict[str, ScalarType]] = {"intercept_sum": SIGNED}
    _VECTORS: ClassVar[dict[str, float]] = {"weights": -math.inf, "sums": -math.inf}
    _serves_raw = False
    learning_rate = LearningRate()
    _learning_rate: Rate

    def __init__(
        self,
        learning_rate: Rate = 1.0,
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
        self.intercept_sum = 0.0
        self._sums = WeightVector()
        self._compile(AveragedPerceptron, "averaged")

    @property
    def weights(self) -> Numbers:
        """The averaged weights, computed on reading in time linear in their number."""
        return {name: self._weight(name) for name in self._weights.view()}

    def _step(self, margin: float, norm2: float, w: float) -> float:
        return rate_at(self._learning_rate, self.clock) * w

    def _move(self, x: Numbers, step: float, norm: float) -> bool:
        if step == 0.0:
            return False
        x, lag = self._room(x), (self.clock - 1) * step
        if not self._sums.fits(x, lag, norm):
            return self._overflow()
        if not super()._move(x, step, norm):
            return False
        self._sums.add(x, lag)
        if self.fit_intercept:
            self.intercept_sum = saturated(self.intercept_sum + saturated(lag))
        return True

    def _served_score(self, x: Event) -> float:
        mean = (self._sums.dot(x) + self.intercept_sum) / (self.clock or 1)
        return self._raw_score(x) - mean

    def _served_from(self, x: Numbers, raw_score: float) -> float:
        score = raw_score - (self._sums.dot(x) + self.intercept_sum) / (self.clock or 1)
        return score if -math.inf < score < math.inf else self.score_one(x)

    def _weight(self, name: Hashable) -> float:
        return saturated(self._weights.get(name) - self._sums.get(name) / max(self.clock, 1))

    def _bias(self) -> float:
        return saturated(self.intercept - self.intercept_sum / max(self.clock, 1))
