"""Multiclass River classifiers with the face of a multiclass learner of hinged."""

from __future__ import annotations

import collections
import math
from collections.abc import Mapping
from typing import Any

import hinged
from hinged import state
from hinged.multiclass import admitted_class, best, restored_classes
from hinged.vector import Features
from hinged_service.river_support.learners.adaptor import Adaptor

__all__ = ["RiverMulticlass", "RiverVotes"]


class RiverMulticlass(Adaptor):
    """A multiclass River classifier with the face of a multiclass learner of hinged.

    The score of a class is its probability; of equal ones the class seen first is
    predicted, and where River has no probabilities all are equal.

    Parameters
    ----------
    model, max_features, weighted
        See `Adaptor`.
    max_classes
        The most classes; an event of one more is refused.
    max_leaves
        The leaves at which a tree stops growing.
    nonnegative
        Whether the classifier takes counts only.

    """

    def __init__(
        self,
        model: Any,
        max_features: int,
        max_classes: int,
        weighted: bool = False,
        max_leaves: int | None = None,
        nonnegative: bool = False,
    ) -> None:
        super().__init__(model, max_features, weighted)
        self._max_classes = max_classes
        self._max_leaves = max_leaves
        self._nonnegative = nonnegative
        self._classes: dict[Any, None] = {}

    @property
    def classes(self) -> list[Any]:
        """The classes in the order in which they were seen."""
        return list(self._classes)

    def weights(self) -> None:
        """Return `None`: there is no one linear function to show."""

    def scores_one(self, x: Mapping[Any, Any]) -> dict[Any, float]:
        """Return the probability of every class, in the order the classes were seen.

        Raises
        ------
        InvalidEvent
            Naming the feature that is no number between -1e100 and 1e100, or
            below 0 where the classifier takes counts only.

        """
        return self._scores(self._kept(self._checked(x)))

    def score_one(self, x: Mapping[Any, Any]) -> float:
        """Return the probability of the predicted class; 0 while no class is known."""
        return max(self.scores_one(x).values(), default=0.0)

    def _checked(self, x: Mapping[Any, Any]) -> Features:
        clean = super()._checked(x)
        if self._nonnegative:
            for name, value in clean.items():
                if value < 0.0:
                    raise hinged.InvalidEvent(f"x[{name!r}]", "must be at least 0: it is a count")
        return clean

    def _scores(self, x: Features) -> dict[Any, float]:
        found = self._found(x)
        scores = {label: float(found.get(label, 0.0)) for label in self._classes}
        values = scores.values()
        if all(map(math.isfinite, values)) and max(values, default=1.0) > 0.0:
            return scores
        return dict.fromkeys(scores, 1.0 / len(scores))

    def predict_learn_one(self, x: Mapping[Any, Any], y: Any, w: float = 1.0) -> hinged.Outcome:
        """Predict, score, then learn: one step of progressive validation.

        Parameters
        ----------
        x
            Feature names to finite floats.
        y
            The label: text, an integer or a truth value, all of one type.
        w
            Sample weight, see `check_weight`. Weight 0 moves nothing.

        Raises
        ------
        InvalidEvent
            Naming the field; the learner has not changed.

        """
        y = admitted_class(y, self._classes, self._max_classes)
        w = self.check_weight(w)
        x = self._checked(x)
        kept = self._kept(x)
        scores = self._scores(kept)
        y_pred = best(scores)
        score = 0.0 if y_pred is None else scores[y_pred]
        if w == 0.0:
            self.accounting.events += 1
            return hinged.Outcome(y_pred, score, False, False, 0.0)
        self._learn(kept, y, w)
        self._classes[y] = None
        self._stop_full_trees()
        own = scores.pop(y, 0.0)
        rival = best(scores)
        margin = 0.0 if rival is None else own - scores[rival]
        mistake = y_pred is not None and y_pred != y
        updated, loss = self._account(x, kept, margin, mistake)
        return hinged.Outcome(y_pred, score, mistake, updated, loss)

    def _stop_full_trees(self) -> None:
        if self._max_leaves is None:
            return
        for model in getattr(self._model, "models", (self._model,)):  # bagged ones, or the one
            if model.n_active_leaves + model.n_inactive_leaves >= self._max_leaves:
                model._growth_allowed = False

    def get_state(self) -> dict[str, Any]:
        """Return all that is needed to go on learning exactly where this stands.

        Returns
        -------
        As `RiverBinary.get_state`, with the list of `"classes"`.

        """
        return {**super().get_state(), "classes": self.classes}

    def set_state(self, saved: Mapping[str, Any]) -> None:
        """Take over a state that `get_state` gave, here or in another process.

        Raises
        ------
        InvalidState
            If it is of another version, learner or parameters, or damaged. The
            learner has not changed.

        """
        header = state.checked_header(saved, type(self._fresh).__name__)
        classes = restored_classes(header.get("classes"))
        if len(classes) > self._max_classes:
            raise hinged.InvalidState(f"there must be at most {self._max_classes} classes")
        super().set_state(saved)
        self._classes = dict.fromkeys(classes)


class RiverVotes(RiverMulticlass):
    """River's one against one: the score of a class is its share of the votes.

    River goes through a set when a class is new, so that the order of its
    classifiers would depend on the process; here they are made in the order in
    which the classes were seen, before it looks.
    """

    def _probabilities(self, x: Features) -> dict[Any, float]:
        votes: dict[Any, int] = collections.Counter()
        for (first, second), classifier in self._model.classifiers.items():
            votes[second if classifier.predict_one(x) else first] += 1
        total = len(self._model.classifiers)
        return {label: n / total for label, n in votes.items()} if total else {}

    def _teach(self, x: Features, y: Any, w: float) -> None:
        if y not in self._classes:
            for c in self._classes:
                self._model.classifiers[(c, y) if c < y else (y, c)]
        super()._teach(x, y, w)
