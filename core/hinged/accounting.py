"""Progressive accounting: counts of the events, mistakes and updates of a learner."""

from __future__ import annotations

from typing import NamedTuple

from hinged.events import Label
from hinged.kernel import Accounting

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
