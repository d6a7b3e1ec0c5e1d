"""Quadratic: a binary learner of the features and of their squares, as one learner."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

from hinged.accounting import Fields
from hinged.binary import BinaryLinearClassifier
from hinged.events import finite_features
from hinged.kernel import with_squares
from hinged.lifted import LiftedBinary
from hinged.scw import SCW
from hinged.vector import Event, Numbers

__all__ = ["Quadratic"]


class Quadratic(LiftedBinary):
    """A binary learner of each feature v and of its square, so that its boundary may bend.

    The learner is given, beside `v`, `v^2 - 1` under the name of the feature followed by `²`:

        score = sum of w_i v_i + sum of u_i (v_i^2 - 1) + b

    With centred and scaled features (`AutoScaler`), `v^2 - 1` has mean 0, and no correlation
    with `v` where values lie evenly about the mean: it is the second Hermite polynomial. So a
    label that holds for middle values, or for extreme ones, is learned; one that depends on two
    features together is not (`Curved` learns those). Values of 0 and 1, as of flags, have no
    square, nor has a feature whose square would be called as another one of the event. Values
    beyond 1e150 are squared as 1e150.

    Time and memory are those of the learner for twice the features.

    Parameters
    ----------
    learner
        A binary learner of this package, never touched: what learns is a clone. `None` is
        `SCW(phi=1.0)`. Its `max_features` counts squares too.

    Attributes
    ----------
    lifted : BinaryLinearClassifier
        The learned learner.

    Examples
    --------
    >>> from river import evaluate, metrics
    >>> from river.datasets import synth
    >>> from hinged import SCW, AutoScaler, Quadratic

    The label of this stream holds for the young and for the old:

    >>> def accuracy(learner):
    ...     stream = synth.Agrawal(0, seed=1).take(2_000)
    ...     model = AutoScaler() | learner
    ...     return evaluate.progressive_val_score(stream, model, metrics.Accuracy())
    >>> accuracy(SCW(phi=1.0)), accuracy(Quadratic())
    (Accuracy: 6...%, Accuracy: 9...%)

    References
    ----------
    Chang, Y.-W., Hsieh, C.-J., Chang, K.-W., Ringgaard, M. and Lin, C.-J., 2010. Training and
    testing low-degree polynomial data mappings via linear SVM. Journal of Machine Learning
    Research, 11.
    Hastie, T. and Tibshirani, R., 1986. Generalized additive models. Statistical Science, 1(3).

    """

    def __init__(self, learner: BinaryLinearClassifier | None = None) -> None:
        super().__init__(learner, SCW(phi=1.0))
        self._by_squares = type(self) is Quadratic  # the compiled kernel need not come back here

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}

    def _lift(self, x: Numbers) -> Numbers:
        return with_squares(x)

    def _learn(self, x: Event, y: Hashable, w: float) -> Fields:
        return self._learn_at_once(x, y, w) or super()._learn(x, y, w)

    def predict_one(self, x: Event, **kwargs: object) -> bool:
        """Return the learner's label for the features and their squares."""
        label = self._label_at_once(x)
        return super().predict_one(x) if label is None else label

    @property
    def numbers_per_name(self) -> int:
        """The most numbers that are stored for a name: those of the feature and of its square."""
        return 2 * self.lifted.numbers_per_name

    def missing_bytes(self, x: Event) -> int:
        """Return the missing names of `x` and of its squares that there is room for.

        The square of a name that is not stored counts in any case, that of a stored one by the
        value: where all values are 0 or 1, it is never stored.
        """
        numbers, known = finite_features(x), self.lifted.weights
        given = {name: value if name in known else 2.0 for name, value in numbers.items()}
        return self.lifted.missing_bytes(with_squares(given))
