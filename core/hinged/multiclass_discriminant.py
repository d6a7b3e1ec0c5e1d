"""MulticlassDiscriminant: the class whose means are nearest, over a variance that all share."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Mapping

from hinged.base import INTERCEPT, Contributions
from hinged.events import Label, finite_features
from hinged.kernel import add_to_means, finite_scores, mean_scores
from hinged.kernel.pure import precisions
from hinged.multiclass import DEFAULT_CLASSES
from hinged.multiclass_linear import ClassWeights, MulticlassLinearClassifier, Pair
from hinged.state import SUM
from hinged.vector import Event, Features, Numbers, saturated

__all__ = ["MulticlassDiscriminant"]

_DOWN = 2.0**-64
Slopes = dict[Hashable, tuple[float, float]]
"""Mean and weight of each feature for a class."""


class MulticlassDiscriminant(MulticlassLinearClassifier):
    """Diagonal linear discriminant analysis, online: the nearest class means.

    With n_k the weights of the events of class k, N the sum of all, and sums over the events of
    class k of sample weight w, on an event:

        m_ki = (sum of w x_i) / (n_k + 1)
        v_i  = (1 + q_i) / (1 + N),   q_i += w (x_i - m_yi before) (x_i - m_yi after)
        s_k  = sum of m_ki (x_i - m_ki / 2) / v_i

    over the features that the event has. Among normal classes of these means, variances of v_i
    that they share, and equal shares of events, s_k is the logarithm of the likelihood, less
    what all classes have in common. The ones are an event of value 0 in each class, and a
    variance of 1 before the first event: features should be centred and scaled (`AutoScaler`).

    It is right earlier than learners that move by their mistakes, and learns from an event of
    a class without a rival. For correlated features those are better in the end.

    Time per event is linear in the features present, times the classes; memory is
    two floats per class and feature name ever learned.

    Parameters
    ----------
    max_classes
        The most classes, or `None` for no limit; an event of one more is refused.
    max_features
        The most feature names kept, or `None` for no limit.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from hinged import MulticlassDiscriminant

    >>> model = preprocessing.StandardScaler() | MulticlassDiscriminant()
    >>> evaluate.progressive_val_score(datasets.ImageSegments(), model, metrics.Accuracy())
    Accuracy: 85.40%

    References
    ----------
    Dudoit, S., Fridlyand, J. and Speed, T. P., 2002. Comparison of discrimination methods for the
    classification of tumors using gene expression data. Journal of the American Statistical
    Association, 97(457). Section 2.1 on diagonal linear discriminant analysis.
    Ng, A. Y. and Jordan, M. I., 2001. On discriminative vs. generative classifiers. NIPS 14.
    Welford, B. P., 1962. Note on a method for calculating corrected sums of squares and products.
    Technometrics, 4(3).

    """

    _CLASS_RULE = "means"
    _AUXILIARY = "squares"
    _INTERCEPT = SUM
    _needs_rival = False
    _update_margin = math.inf

    def __init__(
        self, max_classes: int | None = DEFAULT_CLASSES, max_features: int | None = None
    ) -> None:
        super().__init__(True, max_classes, max_features)

    def _add_class(self, label: Label, x: Numbers) -> float:
        self._parts[label] = self._new_part()
        return 0.0

    def _raw_scores(self, x: Event) -> tuple[Numbers, dict[Label, float]]:
        numbers = finite_features(x)
        scores = mean_scores(self._parts, numbers)
        if finite_scores(scores):
            return numbers, scores
        return numbers, {y: 0.0 if math.isnan(s) else saturated(s) for y, s in scores.items()}

    def scores_one(self, x: Event) -> dict[Label, float]:
        """Return the finite score of every class, in the order the classes were seen."""
        return self._raw_scores(x)[1]

    def _update(self, x: Numbers, pair: Pair, margin: float, norm: float, w: float) -> bool:
        return add_to_means(pair[0], self._room(x), w) or self._overflow()

    def _moving(self, y: Hashable, scores: Mapping[Label, float]) -> Collection[Hashable]:
        return (y,)

    @property
    def numbers_per_name(self) -> int:
        """The numbers that the event's class stores for a name."""
        return self._numbers

    @property
    def weights(self) -> dict[Label, Numbers]:
        """The weights m_ki / v_i, by class."""
        return {
            label: {name: weight for name, (_, weight) in slopes.items()}
            for label, slopes in self._all_slopes().items()
        }

    @property
    def intercepts(self) -> dict[Label, float]:
        """The intercepts by class, for events that have every feature of the class."""
        return {label: _constant(slopes) for label, slopes in self._all_slopes().items()}

    def _all_slopes(self) -> dict[Label, Slopes]:
        known = {name: 0.0 for part in self._parts.values() for name in part.weights.view()}
        precision = precisions(self._parts, known)
        parts = self._parts.items()
        return {label: _slopes(part, part.weights.view(), precision) for label, part in parts}

    def contributions(self, x: Features, y: Label | None = None) -> Contributions:
        """Return value and weight of each feature for the class `y`, the intercept last."""
        part = ClassWeights() if y is None else self._parts.get(y, ClassWeights())
        slopes = _slopes(part, x, precisions(self._parts, x))
        pairs: Contributions = {name: (v, slopes[name][1]) for name, v in x.items()}
        return {**pairs, INTERCEPT: (1.0, _constant(slopes))}


def _slopes(part: ClassWeights, names: Iterable[Hashable], precision: Numbers) -> Slopes:
    """Return mean and weight of features for a class."""
    means = {name: part.weights.get(name) / (part.intercept + 1.0) for name in names}
    return {name: (mean, saturated(mean * precision[name])) for name, mean in means.items()}


def _constant(slopes: Slopes) -> float:
    """Return the score less the dot product of event and weights."""
    parts = (_DOWN * mean * weight for mean, weight in slopes.values())  # no sum is infinite
    return saturated(-0.5 * math.fsum(parts) / _DOWN)
