"""Binary River classifiers as learners of a model."""

from __future__ import annotations

import math

import hinged
from hinged.events import binary_target
from hinged_service.river_support.learners.adaptor import Adaptor
from hinged_service.river_support.learners.classifier import Checked
from hinged_service.river_support.learners.interface import Features, Label

__all__ = ["RiverBinary"]


class RiverBinary(Adaptor):
    """A binary River classifier as a learner.

    The score is 2 P(true) - 1, from -1 to 1, and its sign is the label: false at 0. Where
    a classifier of the operator's own predicts true at 0, it is the least value above 0.
    """

    def score_one(self, x: Features) -> float:
        """Return the finite score; raise `InvalidEvent` naming a feature that is refused."""
        return self.answer_one(x)[0]

    def answer_one(self, x: Features) -> tuple[float, dict[bool, float]]:
        """Return the score and the probabilities of false and true; errors as in `score_one`."""
        return self._answer(self._kept(self.classifier.checked(x)))

    def _answer(self, x: Checked) -> tuple[float, dict[bool, float]]:
        found = self._found(x)
        p = found.get(True, 0.5)
        if not 0.0 <= p <= 1.0:
            p = max(0.0, min(1.0, p)) if math.isfinite(p) else 0.5
            found = {}
        score = 2.0 * p - 1.0
        if score == 0.0 and self.classifier.is_positive(x):
            score = math.ulp(0.0)
        return score, {False: found.get(False, 1.0 - p), True: p}

    def predict_learn_one(self, x: Features, y: Label, w: float = 1.0) -> hinged.Outcome:
        """Predict, score, then learn; raise `InvalidEvent` before anything has changed."""
        target = binary_target(y)
        w = self.check_weight(w)
        checked = self.classifier.checked(x)
        kept = self._kept(checked)
        score = self._answer(kept)[0]
        positive = score > 0.0
        if w == 0.0:
            self.accounting.events += 1
            return hinged.Outcome(positive, score, False, False, 0.0)
        self._learn(kept, target > 0.0, w)
        mistake = positive is not (target > 0.0)
        updated, loss = self._account(checked, kept, target * score, mistake)
        return hinged.Outcome(positive, score, mistake, updated, loss)
