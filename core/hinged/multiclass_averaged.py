"""The multiclass averaged perceptron: predict with the mean of all weights so far."""

from __future__ import annotations

from collections.abc import Hashable

from hinged.events import Label
from hinged.kernel import averaged_scores, finite_scores
from hinged.multiclass_linear import ClassWeights, Pair
from hinged.multiclass_perceptron import MulticlassPerceptron
from hinged.vector import Event, Numbers, WeightVector, saturated

__all__ = ["MulticlassAveragedPerceptron"]


class MulticlassAveragedPerceptron(MulticlassPerceptron):
    """The multiclass perceptron, predicting with the mean of its weights after each event.

    The raw weights learn exactly as `MulticlassPerceptron`'s do; every class
    serves `w - u / T` as `AveragedPerceptron` does. A class counts as zero before
    its first event. `accounting.mistakes` counts the served label; updates and
    losses are those of the raw weights.

    Time per event is linear in the features present, times the classes; memory is
    two floats per class and feature name ever updated.

    Parameters
    ----------
    learning_rate
        eta > 0, finite, or one of River's schedulers.
    fit_intercept
        Whether every class learns an intercept, averaged likewise.
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
    >>> from hinged import MulticlassAveragedPerceptron

    >>> model = preprocessing.StandardScaler() | MulticlassAveragedPerceptron()
    >>> evaluate.progressive_val_score(datasets.ImageSegments(), model, metrics.Accuracy())
    Accuracy: 87.22%

    References
    ----------
    Freund, Y. and Schapire, R. E., 1999. Large margin classification using the perceptron
    algorithm. Machine Learning, 37(3).
    Collins, M., 2002. Discriminative training methods for hidden Markov models. EMNLP.

    """

    _CLASS_RULE = "averaged"
    _AUXILIARY = "sums"
    _serves_raw = False

    def _update(self, x: Numbers, pair: Pair, margin: float, norm: float, w: float) -> bool:
        before = [part.intercept for part in pair]
        updated = super()._update(x, pair, margin, norm, w)
        for part, old in zip(pair, before, strict=True):
            moved = saturated((self.clock - 1) * (part.intercept - old))
            part.auxiliary_intercept = saturated(part.auxiliary_intercept + moved)
        return updated

    def _moves(self, part: ClassWeights, step: float) -> tuple[tuple[WeightVector, float], ...]:
        return ((part.weights, step), (part.auxiliary, (self.clock - 1) * step))

    def _served_weights(self, part: ClassWeights) -> Numbers:
        return {name: self._served_weight(part, name) for name in part.weights.view()}

    def _served_weight(self, part: ClassWeights, name: Hashable) -> float:
        return saturated(part.weights.get(name) - part.auxiliary.get(name) / max(self.clock, 1))

    def _served_intercept(self, part: ClassWeights) -> float:
        return saturated(part.intercept - part.auxiliary_intercept / max(self.clock, 1))

    def _served_scores(self, x: Event) -> dict[Label, float]:
        return averaged_scores(self._parts, x, max(self.clock, 1))

    def _served_from(self, x: Numbers, raw: dict[Label, float]) -> dict[Label, float]:
        served = averaged_scores(self._parts, x, max(self.clock, 1), raw)
        return served if finite_scores(served) else self.scores_one(x)
