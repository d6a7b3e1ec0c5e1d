"""MulticlassQuadratic: a multiclass learner of the features and of their squares."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from typing import Any

from hinged.accounting import Fields
from hinged.errors import InvalidParameter, shown
from hinged.events import Label, finite_features
from hinged.kernel import learn_class, scores_at_once, with_squares
from hinged.lifted import Lifted
from hinged.multiclass import MulticlassClassifier
from hinged.multiclass_arow import MulticlassAROW
from hinged.multiclass_linear import MulticlassLinearClassifier
from hinged.one_vs_rest import OneVsRest
from hinged.vector import Event, Numbers

__all__ = ["MulticlassQuadratic"]

Weighted = MulticlassLinearClassifier | OneVsRest
"""The multiclass learners that have weights of their own."""


class MulticlassQuadratic(Lifted[Weighted], MulticlassClassifier):
    """A multiclass learner of each feature v and of its square, so that boundaries may bend.

    The learner is given, beside `v`, `v^2 - 1` under the name of the feature followed by `²`, as
    that of `Quadratic`, which says which values have no square:

        s_k = sum of w_ki v_i + sum of u_ki (v_i^2 - 1) + b_k

    Features should be centred and scaled (`AutoScaler`). Where those of each class are normal
    and independent, with means and variances of its own, the log-odds of any two classes are the
    difference of two such sums.

    Time and memory are those of the learner for twice the features.

    Parameters
    ----------
    learner
        A multiclass learner of this package that has weights, no pool; never touched: what learns
        is a clone. `None` is `MulticlassAROW`. Its `max_features` counts squares too.

    Attributes
    ----------
    lifted : MulticlassLinearClassifier or OneVsRest
        The learned learner.

    Examples
    --------
    >>> from river import evaluate, metrics
    >>> from river.datasets import synth
    >>> from hinged import AutoScaler, MulticlassAROW, MulticlassQuadratic

    Each class of this stream has its values about some centres:

    >>> def accuracy(learner):
    ...     made = synth.RandomRBF(1, 2, n_classes=4, n_features=10, n_centroids=20)
    ...     model = AutoScaler() | learner
    ...     return evaluate.progressive_val_score(made.take(2_000), model, metrics.Accuracy())
    >>> accuracy(MulticlassAROW()), accuracy(MulticlassQuadratic())
    (Accuracy: 8...%, Accuracy: 9...%)

    References
    ----------
    Hastie, T., Tibshirani, R. and Friedman, J., 2009. The Elements of Statistical Learning, 2nd
    edition. Section 4.3 on quadratic discriminants. Springer.
    Chang, Y.-W., Hsieh, C.-J., Chang, K.-W., Ringgaard, M. and Lin, C.-J., 2010. Training and
    testing low-degree polynomial data mappings via linear SVM. Journal of Machine Learning
    Research, 11.

    """

    _CLASS_RULE = "squares"

    def __init__(self, learner: Weighted | None = None) -> None:
        inner = MulticlassAROW() if learner is None else learner
        if not isinstance(inner, Weighted):
            raise InvalidParameter(
                f"must be a multiclass learner of hinged with weights, not {shown(inner)}"
            )
        self.lifted = inner.clone()
        super().__init__(inner.fit_intercept, inner.max_classes)
        self.learner = learner

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}

    @property
    def classes(self) -> list[Label]:
        """The classes in the order in which they were seen."""
        return self.lifted.classes

    @property
    def weights(self) -> dict[Label, Numbers]:
        """The weights that predict, of features and squares, by class."""
        return self.lifted.weights

    @property
    def intercepts(self) -> dict[Label, float]:
        """The intercepts that predict, by class."""
        return self.lifted.intercepts

    def _lift(self, x: Numbers) -> Numbers:
        return with_squares(x)

    def scores_one(self, x: Event) -> dict[Label, float]:
        """Return the score of every class, in the order the classes were seen."""
        scores = scores_at_once(self, x) if self._rule else None
        return scores or self.lifted.scores_one(with_squares(finite_features(x)))

    def _learn(self, x: Event, y: Hashable, w: float) -> Fields:
        fields = learn_class(self, x, y, w) if self._rule else None
        return fields or super()._learn(x, y, w)

    def _check_label(self, y: Hashable) -> Label:
        return self.lifted._check_label(y)  # noqa: SLF001 - a learner of the same family

    def _check_labels(self, labels: list[Hashable]) -> None:
        self.lifted._check_labels(labels)  # noqa: SLF001

    @property
    def numbers_per_name(self) -> int:
        """The most numbers that are stored for a name: those of the feature and of its square."""
        return 2 * self.lifted.numbers_per_name

    def growth_bytes(self, x: Event, y: Hashable, enough: float = math.inf) -> int:
        """Return how many more bytes learning `x` with the label `y` may store at most."""
        return self.lifted.growth_bytes(with_squares(finite_features(x)), y, enough)
