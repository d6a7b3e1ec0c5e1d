"""The area under the ROC curve, from the ranks of the events.

River's ROC AUC looks at ten thresholds only; this one does not depend on any.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping
from typing import Any

from hinged_service.evaluation.checks import (
    checked_count,
    checked_index,
    checked_label,
    checked_number,
    probability,
)
from hinged_service.evaluation.ranks import Ranks, area
from hinged_service.evaluation.window import Window

__all__ = ["RocAuc", "RollingRocAuc"]

_THRESHOLDS = [-1e-7, *(i / 9 for i in range(1, 9)), 1.0 + 1e-7]
"""The cut of the probability in an earlier version, as River's ROC AUC does."""


class RocAuc:
    """The ranks of the events of each label, since the model began.

    Parameters
    ----------
    by_score
        Whether events are ranked by their score, the log-odds of the probability, which
        distinguishes events where the probability is as good as 0 or 1.

    """

    def __init__(self, by_score: bool) -> None:
        self._by_score = by_score
        self._ranks = Ranks(), Ranks()

    def update(self, y_true: Any, y_pred: Any, proba: Mapping[Any, float], score: float) -> None:
        """Count one event."""
        row = int(checked_label(y_true, multiclass=False))
        self._ranks[row].add(score if self._by_score else probability(proba, True))

    def get(self, metric: str) -> float | None:
        """Return the area under the curve, `None` without an event of each label."""
        return area(*self._ranks)

    def get_state(self) -> Any:
        """Return the ranks as JSON-like data."""
        return {"ranks": [ranks.get_state() for ranks in self._ranks]}

    def set_state(self, saved: Any) -> None:
        """Restore ranks, or the counts of an earlier version between ten thresholds."""
        if set(saved) == {"counts", "window"}:
            states = [_ranks_of(counts, self._by_score) for counts in saved["counts"]]
        elif set(saved) == {"ranks"}:
            states = saved["ranks"]
        else:
            raise ValueError("they are no ranks")
        negative, positive = states
        fresh = Ranks(), Ranks()
        for ranks, state in zip(fresh, (negative, positive), strict=True):
            ranks.set_state(state)
        self._ranks = fresh


class RollingRocAuc:
    """Label and rank of the newest events: the area is exact."""

    def __init__(self, window: int, by_score: bool) -> None:
        self._by_score = by_score
        self._window = Window(window)

    def update(self, y_true: Any, y_pred: Any, proba: Mapping[Any, float], score: float) -> None:
        """Count one event."""
        row = int(checked_label(y_true, multiclass=False))
        self._window.push([row, score if self._by_score else probability(proba, True)])

    def get(self, metric: str) -> float | None:
        """Return the share of pairs in the right order, ties half; `None` without a pair."""
        values: tuple[list[float], list[float]] = ([], [])
        for row, value in self._window.items:
            values[row].append(value)
        negative, positive = values
        if not (negative and positive):
            return None
        negative.sort()
        right = sum(bisect.bisect_left(negative, v) + bisect.bisect(negative, v) for v in positive)
        return right / (2 * len(negative) * len(positive))

    def get_state(self) -> Any:
        """Return the events as JSON-like data."""
        return {"window": self._window.get_state()}

    def set_state(self, saved: Any) -> None:
        """Take over events, also of an earlier version, which kept the place among thresholds."""
        between = "counts" in saved
        items = []
        for row, value in saved["window"]:
            if not (type(row) is int and row in (0, 1)):
                raise ValueError("an item of the window is damaged")
            rank = _between(value, self._by_score) if between else checked_number(value)
            items.append([row, rank])
        self._window.refill(items)


def _between(place: Any, by_score: bool) -> float:
    """Return the rank in the middle between two of the thresholds that once were."""
    last = len(_THRESHOLDS) - 1
    p = (max(1, min(last, checked_index(place, range(last + 2)))) - 0.5) / last
    return math.log(p / (1.0 - p)) if by_score else p


def _ranks_of(counts: Any, by_score: bool) -> list[list[Any]]:
    """Return the state of the ranks of events that were counted between thresholds.

    Two items of one value mean that all events between them have that value.
    """
    if len(counts) != len(_THRESHOLDS) + 1:
        raise ValueError("the counts are of another length")
    items: list[list[Any]] = []
    for place, count in enumerate(counts):
        rank, left = _between(place, by_score), checked_count(count)
        items += [[rank, n, 0] for n in (min(1, left), left - 1) if n > 0]
    return items
