"""Progressive accounting: what happened to a learner, counted as it happened."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import NamedTuple

from hinged.events import Label
from hinged.kernel import length

__all__ = ["Accounting", "Fields", "Outcome"]


class Outcome(NamedTuple):
    """Outcome of one event: predicted and scored first, learned after.

    Parameters
    ----------
    y_pred
        The label predicted before learning; `None` from a multiclass learner
        that knows no class yet.
    score
        The score that decided `y_pred`, before learning; always finite. Binary:
        `w . x + b`. Multiclass: the score of the predicted class, 0 without one.
    mistake
        Whether `y_pred` differs from the label. An event of weight 0, or without a
        prediction, is never one: it counts in no accuracy.
    updated
        Whether the weights moved. Ties move them without being a mistake.
    hinge_loss
        `max(0, 1 - margin)` of the weights that learn, before learning; 0 for an
        event of weight 0.

    """

    y_pred: Label | None
    score: float
    mistake: bool
    updated: bool
    hinge_loss: float


Fields = tuple[Label | None, float, bool, bool, float]
"""The fields of an `Outcome` in order, cheaper to make."""


@dataclass(slots=True)
class Accounting:
    """Running totals of a learner, all taken before each event is learned.

    Parameters
    ----------
    events
        Events seen, those of weight 0 included.
    mistakes
        Events whose predicted label differed from their label.
    updates
        Weight changes. At least as many as mistakes for the plain perceptron,
        which also moves on ties.
    hinge_loss
        Sum of `max(0, 1 - margin)`; it saturates at the largest float.
    perceptron_loss
        Sum of `max(0, -margin)`; it saturates likewise.
    radius
        The largest Euclidean norm of an event, its constant 1 included where an
        intercept is learned: R of the mistake bounds.
    overflows
        Updates left out because a weight would have become infinite, or because the
        score that they would come from overflowed.
    ignored
        Features of updates left out because the learner was full.

    """

    events: int = 0
    mistakes: int = 0
    updates: int = 0
    hinge_loss: float = 0.0
    perceptron_loss: float = 0.0
    radius: float = 0.0
    overflows: int = 0
    ignored: int = 0

    def add_margin(self, margin: float) -> None:
        """Add the losses of one event, of a margin below 1, to the sums."""
        self.hinge_loss = min(self.hinge_loss + (1.0 - margin), sys.float_info.max)
        if margin < 0.0:
            self.perceptron_loss = min(self.perceptron_loss - margin, sys.float_info.max)

    def add_norm(self, norm: float, constant: float) -> None:
        """Take an event's norm, and its constant, into account for the radius."""
        reach = length(norm, constant)
        if reach > self.radius:
            self.radius = min(reach, sys.float_info.max)
