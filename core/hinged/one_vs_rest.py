"""One binary learner per class, the label by the highest score."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from hinged import frames, state
from hinged.accounting import Fields
from hinged.base import LinearClassifier
from hinged.binary import BinaryLinearClassifier
from hinged.events import checked_features, finite_features
from hinged.members import (
    checked_learner,
    flat_state,
    learn_member,
    restored_account,
    restored_members,
)
from hinged.multiclass import (
    DEFAULT_CLASSES,
    admitted_class,
    admitted_classes,
    best,
    restored_classes,
    softmax,
)
from hinged.parameters import checked_cap
from hinged.perceptron import Perceptron
from hinged.state import COUNT
from hinged.vector import Features, saturated

__all__ = ["OneVsRest"]


class OneVsRest(LinearClassifier):
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
        super().__init__()
        self.learner = learner
        self._prototype = Perceptron() if learner is None else checked_learner(learner)
        self.max_classes = checked_cap("max_classes", max_classes)
        self._members: dict[Any, BinaryLinearClassifier] = {}

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"learner": Perceptron()}

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    def classes(self) -> list[Any]:
        """The classes in the order in which they were seen."""
        return list(self._members)

    @property
    def weights(self) -> dict[Any, Mapping[Any, float]]:
        """The weights that predict, by class."""
        return {label: member.weights for label, member in self._members.items()}

    @property
    def intercepts(self) -> dict[Any, float]:
        """The intercepts that predict, by class."""
        return {label: 0.0 - member.threshold for label, member in self._members.items()}

    def _learn(self, x: Mapping[Any, Any], y: Any, w: float) -> Fields:
        y = self._check_label(y)
        w = self.check_weight(w)
        x = finite_features(x)
        scores = self.scores_one(x)
        y_pred = best(scores)
        score = 0.0 if y_pred is None else scores[y_pred]
        account = self.accounting
        account.events += 1
        if w == 0.0:
            return y_pred, score, False, False, 0.0
        self.clock += 1
        mistake = y_pred is not None and y_pred != y
        account.mistakes += mistake
        if y not in self._members:
            self._members[y] = member = self._prototype.clone()
            if self._tracking:
                member.track()
        own = scores.pop(y, 0.0)
        rival = best(scores)
        margin = 0.0 if rival is None else saturated(own - scores[rival])
        loss = 0.0
        if margin < 1.0:
            loss = saturated(1.0 - margin)
            account.add_margin(margin)
        account.add_norm(math.hypot(*x.values()), self._constant)
        updated = False
        for label, member in self._members.items():
            updated |= learn_member(member, x, label == y, w, account)
        account.updates += updated
        return y_pred, score, mistake, updated, loss

    def scores_one(self, x: Mapping[Any, Any]) -> dict[Any, float]:
        """Return the score of every class, in the order the classes were seen."""
        if not self._members:
            self._prototype.score_one(x)
        return {label: member.score_one(x) for label, member in self._members.items()}

    def score_one(self, x: Mapping[Any, Any]) -> float:
        """Return the score of the predicted class; 0 while no class is known."""
        return max(self.scores_one(x).values(), default=0.0)

    def predict_one(self, x: Mapping[Any, Any], **kwargs: Any) -> Any:
        """Return the class of the highest score, the first seen of equals; `None` without one."""
        return best(self.scores_one(x))

    def predict_proba_one(self, x: Mapping[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """Return the softmax of the scores by class; `{}` while no class is known.

        1 for the only class known, else neither 0 nor 1.
        """
        return softmax(self.scores_one(x))

    def predict_many(self, X: Any) -> Any:
        """Return the labels of the rows of `X` as a series, index kept."""
        return frames.labels([self.predict_one(x) for x in frames.rows(X)], like=X)

    def predict_proba_many(self, X: Any) -> Any:
        """Return a frame with one column per class, index kept."""
        probas = [self.predict_proba_one(x) for x in frames.rows(X)]
        return frames.frame({c: [p[c] for p in probas] for c in self._members}, like=X)

    def explain_one(self, x: Mapping[Any, Any], y: Any = None) -> dict[Any, float]:
        """Return what each feature adds to the score of a class, the intercept under `INTERCEPT`.

        Parameters
        ----------
        x
            Feature names to finite real numbers.
        y
            A known class; by default the predicted one.

        """
        y = self.predict_one(x) if y is None else y
        return {n: v * w for n, (v, w) in self._contributions(checked_features(x), y).items()}

    def _contributions(self, x: Features, y: Any) -> dict[Any, tuple[float, float]]:
        return self._members.get(y, self._prototype)._contributions(x, None)

    def _check_label(self, y: Any) -> Any:
        return admitted_class(y, self._members, self.max_classes)

    def _check_labels(self, labels: list[Any]) -> None:
        admitted_classes(labels, self._members, self.max_classes)

    def check_weight(self, w: Any) -> float:
        """Return the sample weight as a float, or raise `InvalidEvent`."""
        return self._prototype.check_weight(w)

    def get_state(self) -> dict[str, Any]:
        """Return all that is needed to go on learning exactly where this stands.

        Returns
        -------
        As `BinaryLinearClassifier.get_state`, with `"classes"` in order and
        `"members"`, the learners' types; the scalars and vectors of the learner of
        class number i are named `"i/..."`.

        """
        members = list(self._members.values())
        flat = flat_state(type(self).__name__, {"clock": self.clock}, self.accounting, members)
        return {**flat, "classes": self.classes}

    def set_state(self, saved: Mapping[str, Any]) -> None:
        """Take over a state that `get_state` gave, here or in another process.

        Raises
        ------
        InvalidState
            If it is of another version or learner, or damaged. The learner has not
            changed.

        """
        saved = state.checked_header(saved, type(self).__name__)
        classes = restored_classes(saved.get("classes"))
        fresh = [self._prototype.clone() for _ in classes]
        scalars, account = restored_account(saved, {"clock": COUNT})
        members = restored_members(saved, fresh)
        self._members = dict(zip(classes, members, strict=True))
        self.clock = scalars["clock"]
        self.accounting = account
