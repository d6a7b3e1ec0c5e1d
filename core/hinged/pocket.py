"""The pocket perceptron: predict with the weights of the longest correct run."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import ClassVar

from hinged.binary import BinaryLinearClassifier
from hinged.parameters import LearningRate, Rate, rate_at
from hinged.start import InitialWeights, started
from hinged.state import COUNT, SIGNED, ScalarType
from hinged.vector import Event, Numbers, WeightVector

__all__ = ["PocketPerceptron"]


class PocketPerceptron(BinaryLinearClassifier):
    """The perceptron, predicting with those of its weights that were right longest.

    The raw weights learn exactly as `Perceptron`'s do. Each lives through a run
    of events without an update. Served are the weights with the longest run so
    far, the running one included: a pocket is needed only once an update ends a
    record, and only then the weights are copied into it.

    `accounting.mistakes` counts the served label; updates and losses are those
    of the raw weights. Time per event is linear in the features present, and in
    all weights when a record ends; memory is two floats per feature name.

    Parameters
    ----------
    learning_rate
        eta > 0, finite, or one of River's schedulers.
    fit_intercept
        Whether to learn the intercept, pocketed likewise.
    max_features
        The most feature names kept, or `None` for no limit.
    label_at_zero
        The label predicted at score 0.
    initial_weights
        Weights to start from: `None` for 0, by feature name, or `RandomWeights`.
    initial_intercept
        The intercept to start from.

    Attributes
    ----------
    record : int
        Events in the run of the pocketed weights.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from hinged import PocketPerceptron

    >>> model = preprocessing.StandardScaler() | PocketPerceptron()
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 84.64%

    References
    ----------
    Gallant, S. I., 1990. Perceptron-based learning algorithms. IEEE Transactions on Neural
    Networks, 1(2).

    """

    _SCALARS: ClassVar[dict[str, ScalarType]] = {
        "pocket_intercept": SIGNED,
        "record": COUNT,
        "last_update": COUNT,
    }
    _VECTORS: ClassVar[dict[str, float]] = {"weights": -math.inf, "pocket": -math.inf}
    _STARTED: ClassVar[tuple[str, ...]] = ("weights", "pocket")
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
        self.pocket_intercept = self.initial_intercept
        self.record = 0
        self.last_update = 0
        self._pocket = started(initial_weights, self.max_features)
        self._compile(PocketPerceptron, "pocket")

    @property
    def weights(self) -> Numbers:
        """A live, read-only view of the weights that predict."""
        return self._served().view()

    def _served(self) -> WeightVector:
        return self._weights if self._running() else self._pocket

    def _running(self) -> bool:
        return self.clock - self.last_update > self.record

    def _step(self, margin: float, norm2: float, w: float) -> float:
        return rate_at(self._learning_rate, self.clock) * w

    def _update(self, x: Numbers, target: float, margin: float, norm: float, w: float) -> bool:
        run = self.clock - 1 - self.last_update
        if run > self.record:
            self.record = run
            self._pocket.replace(self._weights)
            self.pocket_intercept = self.intercept
        self.last_update = self.clock
        return super()._update(x, target, margin, norm, w)

    def _served_score(self, x: Event) -> float:
        return self._served().dot(x) + self._bias()

    def _served_from(self, x: Numbers, raw_score: float) -> float:
        return raw_score if self._running() else self.score_one(x)

    def _weight(self, name: Hashable) -> float:
        return self._served().get(name)

    def _bias(self) -> float:
        return self.intercept if self._running() else self.pocket_intercept
