"""Rules: the accounting of a learner, and its part that is in C where there is a compiler."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, NamedTuple

from hinged.arithmetic import length
from hinged.kernel.pure.storage import Event, Storage

if TYPE_CHECKING:
    from hinged.events import Label

__all__ = [
    "CORE",
    "LARGEST",
    "RULES",
    "TOTALS",
    "Accounting",
    "BinaryCore",
    "Outcome",
    "outcome_of",
    "revived_accounting",
]

LARGEST = sys.float_info.max
CORE = (
    *("_weights", "accounting", "clock", "max_features", "intercept", "_constant"),
    *("label_at_zero", "_rule", "_learning_rate", "_projects", "record", "last_update"),
    *("_squares", "_sums", "_variance", "_pocket", "_shrink_marks", "_pull_marks"),
    *("intercept_sum", "intercept_squares", "intercept_variance", "pocket_intercept"),
    *("log_shrink", "pull", "_l1", "_l2", "_C", "_r", "_phi", "_scales", "_sizes", "_rewards"),
)
"""The attributes of a binary learner that the compiled version has in C, whatever its rule."""


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


outcome_of = tuple.__new__  # what `Outcome._make` does, without a frame of Python


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

    def __reduce__(self) -> tuple[object, ...]:
        return revived_accounting, tuple(getattr(self, name) for name in TOTALS)

    def add_margin(self, margin: float) -> None:
        """Add the losses of one event, of a margin below 1, to the sums."""
        self.hinge_loss = min(self.hinge_loss + (1.0 - margin), LARGEST)
        if margin < 0.0:
            self.perceptron_loss = min(self.perceptron_loss - margin, LARGEST)

    def add_norm(self, norm: float, constant: float) -> None:
        """Take an event's norm, and its constant, into account for the radius."""
        reach = length(norm, constant)
        if reach > self.radius:
            self.radius = min(reach, LARGEST)


def revived_accounting(*totals: float) -> Accounting:
    """Return an accounting of the version in use, compiled or not, from a pickle of either."""
    from hinged import kernel  # it imports this module

    return kernel.Accounting(*totals)  # type: ignore[arg-type]


TOTALS = tuple(field.name for field in fields(Accounting))


class BinaryCore:
    """The part of a binary learner that the compiled version has in C.

    There it learns an ordinary event of a rule that it knows in one call, with the bits of
    the rule's own methods: finite numbers, no overflow in sight, room for all names. It
    refuses any other event before anything has changed. Its `learn_one` and `predict_learn_one`
    try that before the rule's own `_learn`.
    """

    _rule = 0
    """The rule that the compiled version knows, by `rule_number`; 0 for none."""
    _weights: Storage
    intercept: float

    def _raw_score(self, x: Event) -> float:
        return self._weights.dot(x) + self.intercept

    def _served_score(self, x: Event) -> float:
        return self._weights.dot(x) + self.intercept

    def _label_at_once(self, x: Event) -> bool | None:
        """Return the label of an ordinary event, or `None`."""
        return None

    def _wait_for_run(self) -> None:
        """Wait for the end of a run in another thread: see `learn_rows`."""


RULES = (
    "",
    "perceptron",
    "uncapped",
    "I",
    "II",
    "arow",
    "scw",
    "constant",
    "sqrt",
    "adagrad",
    "rms",
    "logistic adagrad",
    "linear",
    "linear capped",
    "averaged",
    "pocket",
    "constant shrunk",
    "sqrt shrunk",
    "pegasos shrunk",
    "constant pulled",
    "sqrt pulled",
    "pegasos pulled",
    "adagrad penalised",
    "proximal",
    "betting",
)
