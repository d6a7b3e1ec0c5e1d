"""Multiclass River classifiers as learners of a model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import hinged
from hinged.multiclass import admitted_class, best, restored_classes
from hinged_service.river_support.learners.adaptor import Adaptor
from hinged_service.river_support.learners.classifier import Checked, RiverClassifier
from hinged_service.river_support.learners.interface import Features, Label

__all__ = ["RiverMulticlass"]


class RiverMulticlass(Adaptor):
    """A multiclass River classifier as a learner.

    The score of a class is its probability; of equal ones the class seen first is
    predicted, and where River has no probabilities all are equal.

    Parameters
    ----------
    classifier, max_features
        See `Adaptor`.
    max_classes
        Largest number of classes. An event of one more is refused.

    """

    def __init__(self, classifier: RiverClassifier, max_features: int, max_classes: int) -> None:
        super().__init__(classifier, max_features)
        self._max_classes = max_classes

    @property
    def classes(self) -> list[Any]:
        """The classes in the order in which they were seen."""
        return list(self._classes)

    def scores_one(self, x: Features) -> dict[Any, float]:
        """Return the probability of every class, in the order the classes were seen."""
        return self._scores(self._kept(self.classifier.checked(x)))

    def score_one(self, x: Features) -> float:
        """Return the probability of the predicted class; 0 while no class was seen."""
        return max(self.scores_one(x).values(), default=0.0)

    def _scores(self, x: Checked) -> dict[Any, float]:
        found = self._found(x)
        scores = {label: float(found.get(label, 0.0)) for label in self._classes}
        values = scores.values()
        if all(map(math.isfinite, values)) and max(values, default=1.0) > 0.0:
            return scores
        return dict.fromkeys(scores, 1.0 / len(scores))

    def predict_learn_one(self, x: Features, y: Label, w: float = 1.0) -> hinged.Outcome:
        """Predict, score, then learn; raise `InvalidEvent` before anything has changed."""
        y = admitted_class(y, self._classes, self._max_classes)
        w = self.check_weight(w)
        checked = self.classifier.checked(x)
        kept = self._kept(checked)
        scores = self._scores(kept)
        y_pred = best(scores)
        score = 0.0 if y_pred is None else scores[y_pred]
        if w == 0.0:
            self.accounting.events += 1
            return hinged.Outcome(y_pred, score, False, False, 0.0)
        self._learn(kept, y, w)
        self._classes[y] = None
        own = scores.pop(y, 0.0)
        rival = best(scores)
        margin = 0.0 if rival is None else own - scores[rival]
        mistake = y_pred is not None and y_pred != y
        updated, loss = self._account(checked, kept, margin, mistake)
        return hinged.Outcome(y_pred, score, mistake, updated, loss)

    def get_state(self) -> dict[str, Any]:
        """Return the state as `RiverBinary.get_state`, with the list of `"classes"`."""
        return {**super().get_state(), "classes": self.classes}

    def _restored_classes(self, saved: Mapping[str, Any]) -> dict[Label, None]:
        classes = restored_classes(saved.get("classes"))
        if len(classes) > self._max_classes:
            raise hinged.InvalidState(f"there must be at most {self._max_classes} classes")
        return dict.fromkeys(classes)
