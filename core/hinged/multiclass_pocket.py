"""The multiclass pocket perceptron: predict with the weights of the longest correct run."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import ClassVar

from hinged.events import Label
from hinged.kernel import class_scores
from hinged.multiclass import DEFAULT_CLASSES
from hinged.multiclass_linear import ClassWeights, ClassWeightsByName, Pair
from hinged.multiclass_perceptron import MulticlassPerceptron
from hinged.parameters import Rate
from hinged.start import RandomWeights, StartedVector
from hinged.state import COUNT, ScalarType
from hinged.vector import Event, Numbers, WeightVector

__all__ = ["MulticlassPocketPerceptron"]


class MulticlassPocketPerceptron(MulticlassPerceptron):
    """The multiclass perceptron, predicting with those of its weights that were right longest.

    The raw weights learn exactly as `MulticlassPerceptron`'s do. Served are the
    weights of all classes with the longest run of events without an update, the
    running one included. `accounting.mistakes` counts the served label; updates
    and losses are those of the raw weights.

    Time per event is linear in the features present, times the classes, and in
    all weights when a record ends; memory is two floats per class and name.

    Parameters
    ----------
    learning_rate
        eta > 0, finite, or one of River's schedulers.
    fit_intercept
        Whether every class learns an intercept, pocketed likewise.
    max_classes
        The most classes, or `None` for no limit; an event of one more is refused.
    max_features
        The most feature names kept, or `None` for no limit.
    initial_weights
        Weights to start from: `None` for 0; by class, then by feature name, classes
        that are known from the start; or `RandomWeights`, others for each class.
    initial_intercepts
        Intercepts to start from, by class, known from the start likewise.

    Attributes
    ----------
    record : int
        Events in the run of the pocketed weights.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from hinged import MulticlassPocketPerceptron

    >>> model = preprocessing.StandardScaler() | MulticlassPocketPerceptron()
    >>> evaluate.progressive_val_score(datasets.ImageSegments(), model, metrics.Accuracy())
    Accuracy: 80.60%

    References
    ----------
    Gallant, S. I., 1990. Perceptron-based learning algorithms. IEEE Transactions on Neural
    Networks, 1(2). Section on winner-take-all groups.

    """

    _AUXILIARY = "pocket"
    _AUXILIARY_STARTED = True
    _SCALARS: ClassVar[dict[str, ScalarType]] = {"record": COUNT, "last_update": COUNT}
    _serves_raw = False

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
            learning_rate,
            fit_intercept,
            max_classes,
            max_features,
            initial_weights=initial_weights,
            initial_intercepts=initial_intercepts,
        )
        self.record = 0
        self.last_update = 0

    def _start_classes(self) -> None:
        super()._start_classes()
        for part in self._parts.values():
            part.auxiliary.replace(part.weights)
            part.auxiliary_intercept = part.intercept

    def _started_part(self, label: Label) -> ClassWeights:
        part = super()._started_part(label)
        if isinstance(self.initial_weights, RandomWeights):
            part.auxiliary = StartedVector(self.initial_weights.of(label), None)
            if self._tracking:
                part.auxiliary.track()
        return part

    def _running(self) -> bool:
        return self.clock - self.last_update > self.record

    def _update(self, x: Numbers, pair: Pair, margin: float, norm: float, w: float) -> bool:
        run = self.clock - 1 - self.last_update
        if run > self.record:
            self.record = run
            for part in self._parts.values():
                part.auxiliary.replace(part.weights)
                part.auxiliary_intercept = part.intercept
        self.last_update = self.clock
        return super()._update(x, pair, margin, norm, w)

    def _served(self, part: ClassWeights) -> WeightVector:
        return part.weights if self._running() else part.auxiliary

    def _served_weights(self, part: ClassWeights) -> Numbers:
        return self._served(part).view()

    def _served_weight(self, part: ClassWeights, name: Hashable) -> float:
        return self._served(part).get(name)

    def _served_intercept(self, part: ClassWeights) -> float:
        return part.intercept if self._running() else part.auxiliary_intercept

    def _served_scores(self, x: Event) -> dict[Label, float]:
        return class_scores(self._parts, x, auxiliary=not self._running())
