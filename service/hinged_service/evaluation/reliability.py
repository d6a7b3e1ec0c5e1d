"""Reliability: the frequency of labels by predicted probability, of all events or the newest."""

from __future__ import annotations

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
from hinged_service.evaluation.window import Window

__all__ = ["Reliability"]

_BINS = 10


class Reliability:
    """Events by probability, in ten bins of equal width, and how many of them came true.

    Of two classes it is the probability of the positive one; of many that of the predicted one.

    References
    ----------
    Naeini, M. P., Cooper, G. F. and Hauskrecht, M., 2015. Obtaining well calibrated probabilities
    using Bayesian binning. AAAI 29.

    """

    def __init__(self, window: int | None, multiclass: bool) -> None:
        self._multiclass = multiclass
        self._rolling = window is not None
        self._window = Window(window)
        self._counts, self._true, self._sums = [0] * _BINS, [0] * _BINS, [0.0] * _BINS

    def update(self, y_true: Any, y_pred: Any, proba: Mapping[Any, float], score: float) -> None:
        """Count one event."""
        label = checked_label(y_true, self._multiclass)
        label_of_proba = checked_label(y_pred, self._multiclass) if self._multiclass else True
        p = max(0.0, min(1.0, probability(proba, label_of_proba)))
        place, came = min(_BINS - 1, int(_BINS * p)), int(label == label_of_proba)
        if self._rolling:
            self._window.push([place, came, p])
            return
        self._counts[place] += 1
        self._true[place] += came
        self._sums[place] += p

    def get(self, metric: str) -> Any:
        """Return the curve, or the expected calibration error; `None` without an event.

        The curve is, by rising probability, for each bin with events the mean of their
        probabilities, the share that came true, and how many they are. The error is the mean
        over all events of how far both lie apart in their bin.
        """
        rows = list(zip(self._counts, self._true, self._sums, strict=True))
        if self._rolling:
            rows = [self._of_window(place) for place in range(_BINS)]
        curve = [
            {"probability": total / n, "share": true / n, "events": n}
            for n, true, total in rows
            if n
        ]
        if metric == "reliability" or not curve:
            return curve or None
        gaps = [one["events"] * abs(one["probability"] - one["share"]) for one in curve]
        return math.fsum(gaps) / sum(n for n, _, _ in rows)

    def _of_window(self, place: int) -> tuple[int, int, float]:
        found = [(came, p) for at, came, p in self._window.items if at == place]
        return len(found), sum(came for came, _ in found), math.fsum(p for _, p in found)

    def get_state(self) -> Any:
        """Return the counts as JSON-like data."""
        bins = zip(self._counts, self._true, self._sums, strict=True)
        return {"bins": [list(one) for one in bins], "window": self._window.get_state()}

    def set_state(self, saved: Any) -> None:
        """Take over counts."""
        bins = [
            (checked_count(n), checked_count(t), checked_number(s)) for n, t, s in saved["bins"]
        ]
        if len(bins) != _BINS or any(t > n or not 0.0 <= s <= n for n, t, s in bins):
            raise ValueError("a bin is damaged")
        for place, came, p in saved["window"]:
            checked_index(place, range(_BINS)), checked_index(came, range(2))
            if not 0.0 <= checked_number(p) <= 1.0:
                raise ValueError("an item of the window is damaged")
        self._window.refill(saved["window"])
        self._counts = [n for n, _, _ in bins]
        self._true = [t for _, t, _ in bins]
        self._sums = [s for _, _, s in bins]
