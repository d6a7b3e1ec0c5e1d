"""One binary learner per class, the label by the highest score."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from hinged import members, state
from hinged.base import Contributions
from hinged.binary import BinaryLinearClassifier
from hinged.events import Label, finite_features
from hinged.kernel import scores_of, teach
from hinged.multiclass import DEFAULT_CLASSES, MulticlassByParts, restored_classes
from hinged.perceptron import Perceptron
from hinged.state import COUNT
from hinged.vector import Event, Features, Numbers

__all__ = ["OneVsRest"]


class OneVsRest(MulticlassByParts[BinaryLinearClassifier]):
    """A binary rule for each class against all others.

    Every class has a clone of `learner`, which learns every event since the class
    was first seen, as true where the event is of the class. The label is the class
    of the highest score (never of a probability), of equal ones the class seen
    first.

    Time per event is that of one binary learner, times the classes.

    Parameters
    ----------
    learner
        Any binary learner of this package; by default `Perceptron()`.
    max_classes
        The most classes, or `None` for no limit; an event of one more is refused.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from hinged import AROW, OneVsRest

    >>> model = preprocessing.StandardScaler() | OneVsRest(AROW())
    >>> evaluate.progressive_val_score(datasets.ImageSegments(), model, metrics.Accuracy())
    Accuracy: 85.40%

    References
    ----------
    Rifkin, R. and Klautau, A., 2004. In defense of one-vs-all classification. Journal of Machine
    Learning Research, 5.

    """

    def __init__(
        self,
        learner: BinaryLinearClassifier | None = None,
        max_classes: int | None = DEFAULT_CLASSES,
    ) -> None:
        super().__init__(fit_intercept=True, max_classes=max_classes)
        self.learner = learner
        self._prototype = Perceptron() if learner is None else members.checked(learner)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"learner": Perceptron()}

    @property
    def weights(self) -> dict[Label, Numbers]:
        """The weights that predict, by class."""
        return {label: member.weights for label, member in self._parts.items()}

    @property
    def intercepts(self) -> dict[Label, float]:
        """The intercepts that predict, by class."""
        return {label: 0.0 - member.threshold for label, member in self._parts.items()}

    def _new_part(self) -> BinaryLinearClassifier:
        member = self._prototype.clone()
        if self._tracking:
            member.track()
        return member

    def _raw_scores(self, x: Event) -> tuple[Numbers, dict[Label, float]]:
        numbers = finite_features(x)
        return numbers, self._scores(numbers)

    def _scores(self, x: Event) -> dict[Label, float]:
        return dict(zip(self._parts, scores_of(list(self._parts.values()), x), strict=True))

    def _learn_classes(
        self, x: Numbers, y: Label, rival: Label | None, margin: float, norm: float, w: float
    ) -> bool:
        return teach(self._parts, x, y, w, self.accounting)

    def scores_one(self, x: Event) -> dict[Label, float]:
        """Return the score of every class, in the order the classes were seen."""
        if not self._parts:
            self._prototype.score_one(x)
        return self._scores(x)

    def contributions(self, x: Features, y: Label | None = None) -> Contributions:
        """Return value and weight of each feature for the class `y`, the intercept last."""
        member = self._prototype if y is None else self._parts.get(y, self._prototype)
        return member.contributions(x)

    def check_weight(self, w: object) -> float:
        """Return the sample weight as a float, or raise `InvalidEvent`."""
        return self._prototype.check_weight(w)

    @property
    def numbers_per_name(self) -> int:
        """The numbers that all classes, and a new one, store for a name."""
        return (len(self._parts) + 1) * self._prototype.numbers_per_name

    def stored_bytes(self) -> int:
        """Return the bytes of the numbers stored by name."""
        return sum(member.stored_bytes() for member in self._parts.values())

    def growth_bytes(self, x: Event, y: Hashable, enough: float = math.inf) -> int:
        """Return how many more bytes learning `x` with the label `y` may store at most."""
        more = 0 if y in self._parts else self._prototype.missing_bytes(x)
        for member in self._parts.values():
            if more > enough:
                break
            more += member.missing_bytes(x)
        return more

    def get_state(self) -> dict[str, Any]:
        """Return all that is needed to go on learning, as `LinearClassifier.get_state` says.

        `"members"` are the learners' types; the scalars and vectors of the learner of
        class number i are named `"i/..."`.
        """
        own, parts = {"clock": self.clock}, list(self._parts.values())
        flat = members.flat_state(type(self).__name__, own, self.accounting, parts)
        return {**flat, "classes": self.classes}

    def set_state(self, saved: Mapping[str, Any]) -> None:
        """Take over a saved state, or raise `InvalidState` and change nothing."""
        saved = state.checked_header(saved, type(self).__name__)
        classes = restored_classes(saved.get("classes"))
        fresh = [self._prototype.clone() for _ in classes]
        scalars, account = members.restored_account(saved, {"clock": COUNT})
        self._parts = dict(zip(classes, members.restored(saved, fresh), strict=True))
        self.clock = scalars["clock"]
        self.accounting = account
