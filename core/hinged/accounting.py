"""Progressive accounting: what happened to a learner, counted as it happened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Accounting", "Outcome"]


class Outcome(NamedTuple):
    """What one event did: predicted and scored first, learned after.

    Parameters
    ----------
    y_pred
        The label predicted before learning.
    score
        `w . x + b` before learning; always finite.
    mistake
        Whether `y_pred` differs from the label. An event of weight 0 is never one.
    updated
        Whether the weights moved. Ties move them without being a mistake.
    hinge_loss
        `max(0, 1 - margin)` before learning; 0 for an event of weight 0.

    """

    y_pred: bool
    score: float
    mistake: bool
    updated: bool
    hinge_loss: float


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
    overflows
        Updates left out because a weight would have become infinite.

    """

    events: int = 0
    mistakes: int = 0
    updates: int = 0
    hinge_loss: float = 0.0
    overflows: int = 0
