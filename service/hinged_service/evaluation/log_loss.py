"""The log loss, of all events or of the newest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from hinged_service.evaluation.checks import (
    checked_count,
    checked_label,
    checked_number,
    probability,
)
from hinged_service.evaluation.window import Window

__all__ = ["LogLoss"]


class LogLoss:
    """The sum of -log P(the label that came), probabilities cut as River cuts them."""

    def __init__(self, window: int | None, multiclass: bool) -> None:
        self._multiclass = multiclass
        self._sum = 0.0
        self._n = 0
        self._rolling = window is not None
        self._window = Window(window)

    def update(self, y_true: Any, y_pred: Any, proba: Mapping[Any, float], score: float) -> None:
        """Count one event."""
        label = checked_label(y_true, self._multiclass)
        if self._multiclass:
            loss = -math.log(_cut(probability(proba, label))) if label in proba else 0.0
        else:
            p = _cut(probability(proba, True))
            loss = -math.log(p) if label else -math.log(1.0 - p)
        self._window.push(loss)
        self._sum += loss
        self._n += 1

    def get(self, metric: str) -> float | None:
        """Return the mean loss, `None` without an event."""
        if self._rolling:
            losses = self._window.items
            return math.fsum(losses) / len(losses) if losses else None
        return self._sum / self._n if self._n else None

    def get_state(self) -> Any:
        """Return the sums as JSON-like data."""
        return {"sum": self._sum, "n": self._n, "window": self._window.get_state()}

    def set_state(self, saved: Any) -> None:
        """Take over sums."""
        total, n = checked_number(saved["sum"]), checked_count(saved["n"])
        for loss in saved["window"]:
            checked_number(loss)
        self._window.refill(saved["window"])
        self._sum, self._n = total, n


def _cut(p: float) -> float:
    return max(min(p, 1.0 - 1e-15), 1e-15)
