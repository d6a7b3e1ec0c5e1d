"""The multiclass perceptron: the right class learns the example, its rival unlearns it."""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping
from typing import ClassVar

from hinged.events import Label
from hinged.kernel import add_all, norm_of
from hinged.kernel.pure import ClassRule
from hinged.multiclass import DEFAULT_CLASSES
from hinged.multiclass_linear import (
    ClassWeights,
    ClassWeightsByName,
    MulticlassLinearClassifier,
    Pair,
)
from hinged.parameters import LearningRate, Rate, rate_at
from hinged.vector import Numbers, WeightVector

__all__ = ["MulticlassPerceptron", "TwoClassStep"]


class TwoClassStep(MulticlassLinearClassifier):
    """A rule that moves the right class by a step along x, and its rival by as much back."""

    @abc.abstractmethod
    def _step(self, margin: float, norm2: float, w: float) -> float:
        """Return the step tau; `norm2` is the squared norm of all that moves, both classes."""

    def _update(self, x: Numbers, pair: Pair, margin: float, norm: float, w: float) -> bool:
        own, rival = pair
        if self.max_features is not None:
            kept = self._part_kept(x)
            norm = norm if len(kept) == len(x) else norm_of(kept)
        step = self._step(margin, 2.0 * (norm * norm + self._constant), w)
        if step == 0.0:
            return False
        up = own.intercept + step * self._constant
        down = rival.intercept - step * self._constant
        moves = (*self._moves(own, step), *self._moves(rival, -step))
        if not (math.isfinite(up) and math.isfinite(down) and add_all(moves, self._room(x), norm)):
            return self._overflow()
        own.intercept, rival.intercept = up, down
        return True

    def _moves(self, part: ClassWeights, step: float) -> tuple[tuple[WeightVector, float], ...]:
        return ((part.weights, step),)


class MulticlassPerceptron(TwoClassStep):
    """The perceptron for any number of classes.

    With the scores s_k = w_k . x + b_k, y the event's class and r its rival, the
    best-scoring wrong class:

        if s_y <= s_r:   w_y += eta sample_weight x,   w_r -= eta sample_weight x

    and the intercepts by eta sample_weight. Ties update. Labels of equal score go
    to the class seen first.

    Time per event is linear in the features present, times the classes; memory is
    one float per class and feature name ever updated.

    Parameters
    ----------
    learning_rate
        eta > 0, finite, or one of River's schedulers.
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
    >>> from hinged import MulticlassPerceptron

    >>> model = preprocessing.StandardScaler() | MulticlassPerceptron()
    >>> evaluate.progressive_val_score(datasets.ImageSegments(), model, metrics.Accuracy())
    Accuracy: 83.37%

    References
    ----------
    Crammer, K. and Singer, Y., 2003. Ultraconservative online algorithms for multiclass problems.
    Journal of Machine Learning Research, 3.

    """

    _CLASS_RULE: ClassVar[ClassRule] = "perceptron"
    learning_rate = LearningRate()
    _learning_rate: Rate

    def __init__(
        self,
        learning_rate: Rate = 1.0,
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

    def _step(self, margin: float, norm2: float, w: float) -> float:
        return rate_at(self._learning_rate, self.clock) * w
