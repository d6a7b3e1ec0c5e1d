"""Binary River classifiers with the face of a binary learner of hinged."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import hinged
from hinged.events import binary_target
from hinged.vector import Features
from hinged_service.river_support.lazy import linear_model
from hinged_service.river_support.learners.adaptor import Adaptor

__all__ = ["RiverBinary", "linear_weights"]


class RiverBinary(Adaptor):
    """A binary River classifier with the face of a binary learner of hinged.

    The score is 2 P(true) - 1, from -1 to 1, and its sign is the label: false at 0.
    """

    def score_one(self, x: Mapping[Any, Any]) -> float:
        """Return the finite score behind the predicted label.

        Raises
        ------
        InvalidEvent
            Naming the feature that is no number between -1e100 and 1e100.

        """
        return self._answer(self._kept(self._checked(x)))[0]

    def answer_one(self, x: Mapping[Any, Any]) -> tuple[float, dict[bool, float]]:
        """Return the score and the probabilities of false and true; errors as in `score_one`."""
        return self._answer(self._kept(self._checked(x)))

    def _answer(self, x: Features) -> tuple[float, dict[bool, float]]:
        found = self._found(x)
        p = found.get(True, 0.5)
        if not 0.0 <= p <= 1.0:
            p = max(0.0, min(1.0, p)) if math.isfinite(p) else 0.5
            found = {}
        return 2.0 * p - 1.0, {False: found.get(False, 1.0 - p), True: p}

    def predict_learn_one(self, x: Mapping[Any, Any], y: Any, w: float = 1.0) -> hinged.Outcome:
        """Predict, score, then learn: one step of progressive validation.

        Parameters
        ----------
        x
            Feature names to finite floats.
        y
            True or false.
        w
            Sample weight, see `check_weight`. Weight 0 moves nothing.

        Raises
        ------
        InvalidEvent
            Naming the field; the learner has not changed.

        """
        target = binary_target(y)
        w = self.check_weight(w)
        x = self._checked(x)
        kept = self._kept(x)
        score = self._answer(kept)[0]
        positive = score > 0.0
        if w == 0.0:
            self.accounting.events += 1
            return hinged.Outcome(positive, score, False, False, 0.0)
        self._learn(kept, target > 0.0, w)
        mistake = positive is not (target > 0.0)
        updated, loss = self._account(x, kept, target * score, mistake)
        return hinged.Outcome(positive, score, mistake, updated, loss)

    def weights(self) -> dict[str, Any] | None:
        """Return copies of the weights and the intercept; `None` if it is not linear.

        Returns
        -------
        `{"weights", "intercept"}`. P(true) is the logistic function of
        `w . x + intercept`.

        """
        return linear_weights(self._model)


def linear_weights(model: Any) -> dict[str, Any] | None:
    """Return copies of the weights and the intercept of a River classifier, `None` of others."""
    if isinstance(model, linear_model.ALMAClassifier):
        return {"weights": dict(model.w), "intercept": 0.0}
    if isinstance(model, (linear_model.LogisticRegression, linear_model.PAClassifier)):
        return {"weights": dict(model.weights), "intercept": model.intercept}
    return None
