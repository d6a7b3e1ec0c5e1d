"""The interface of a learner: hinged's own, River's and the operator's pipelines alike."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol

from hinged.accounting import Accounting, Outcome

__all__ = ["Features", "Label", "Learner", "MulticlassLearner"]

Label = bool | int | str
Features = Mapping[Any, Any]
"""Names to numbers; a classifier of the operator's own takes text, booleans and `None` too."""


class Learner(Protocol):
    """The interface of a learner for a model's state; a binary one has no more than this.

    Attributes
    ----------
    accounting : hinged.accounting.Accounting
        Events, mistakes, updates and losses so far.

    """

    accounting: Accounting

    def track(self) -> None:
        """Note from now on which weights change, if single ones can be saved."""

    def check_weight(self, w: float) -> float:
        """Return the sample weight as a float, or raise `InvalidEvent`."""

    def score_one(self, x: Features) -> float:
        """Return the finite score behind the predicted label; nothing changes."""

    def predict_learn_one(self, x: Features, y: Label, w: float = 1.0) -> Outcome:
        """Predict, score, then learn: one step of progressive validation.

        Weight 0 moves nothing. `InvalidEvent` names the field at fault, and nothing has
        changed then.
        """

    @property
    def numbers_per_name(self) -> int:
        """The most numbers that learning one event stores for a name that is new."""

    def stored_bytes(self) -> int:
        """Return the bytes of all numbers stored by name, each with its name."""

    def growth_bytes(self, x: Features, y: Label, enough: float = math.inf) -> int:
        """Return how many more bytes learning the event may store; 0 if all is stored."""

    def get_state(self) -> dict[str, Any]:
        """Return the complete state, from which learning continues exactly."""

    def set_state(self, saved: Mapping[str, Any]) -> None:
        """Take over a state that `get_state` gave, or raise `InvalidState`."""


class MulticlassLearner(Learner, Protocol):
    """A learner of more than two classes, which may appear at any time."""

    @property
    def classes(self) -> list[Any]:
        """The classes in the order in which they were seen."""

    def scores_one(self, x: Features) -> dict[Any, float]:
        """Return the finite score of every class, in that order."""
