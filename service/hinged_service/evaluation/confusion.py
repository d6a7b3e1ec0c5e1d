"""The confusion matrix, and River's metrics that are computed from it."""

from __future__ import annotations

import functools
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from hinged_service.evaluation.checks import (
    Label,
    checked_count,
    checked_index,
    checked_label,
    refuse_mixed,
)
from hinged_service.evaluation.window import Window
from hinged_service.river_support.lazy import metrics

__all__ = ["Confusion"]

_river: Any = metrics  # not all of River is typed
_NAMES = {
    "accuracy": "Accuracy",
    "balanced_accuracy": "BalancedAccuracy",
    "f1": "F1",
    "precision": "Precision",
    "recall": "Recall",
    "mcc": "MCC",
    "cohen_kappa": "CohenKappa",
}
_MEANS_OVER_CLASSES = ("f1", "precision", "recall")
_MATRIX_BYTES = 2**18
_COUNT_BYTES = 24


@functools.cache
def _ordered_matrix() -> Any:
    """Return a class: River's confusion matrix, its classes in the order in which they came.

    It is made when a model first counts labels: River's metrics take most of a second to import.
    """

    class OrderedMatrix(_river.ConfusionMatrix):  # type: ignore[misc]
        def __init__(self, order: Sequence[Label], cells: Mapping[tuple[int, int], int]) -> None:
            super().__init__()
            self._order = order
            for (i, j), count in cells.items():
                self.update(order[i], order[j], count)

        @property
        def classes(self) -> list[Label]:
            """The classes that occur."""
            return [c for c in self._order if self.sum_row.get(c) or self.sum_col.get(c)]

    return OrderedMatrix


class Confusion:
    """The number of events by true and predicted class."""

    def __init__(self, window: int | None, multiclass: bool, names: Sequence[Label] | None) -> None:
        self._multiclass = multiclass
        self._names = names
        self._classes: dict[Label, int] = {} if multiclass else {False: 0, True: 1}
        self._cells: dict[tuple[int, int], int] = {}
        self._window = Window(window)
        self._matrix_of = _ordered_matrix()

    def update(self, y_true: Any, y_pred: Any, proba: Mapping[Any, float], score: float) -> None:
        """Count one event."""
        pair = (checked_label(y_true, self._multiclass), checked_label(y_pred, self._multiclass))
        refuse_mixed([*itertools.islice(self._classes, 1), *pair])
        i, j = (self._classes.setdefault(label, len(self._classes)) for label in pair)
        self._cells[i, j] = self._cells.get((i, j), 0) + 1
        old = self._window.push([i, j])
        if old is not None:
            self._cells[old[0], old[1]] -= 1

    def get(self, metric: str) -> Any:
        """Return the value of a metric that is a number, `None` without an event."""
        cells = self._counted()
        if not cells:
            return None
        macro = "Macro" if self._multiclass and metric in _MEANS_OVER_CLASSES else ""
        kind = getattr(_river, macro + _NAMES[metric])
        return float(kind(cm=self._matrix_of(list(self._classes), cells)).get())

    def _counted(self) -> dict[tuple[int, int], int]:
        return {pair: count for pair, count in self._cells.items() if count}

    def matrix(self, most: int) -> tuple[dict[str, dict[str, int]], int, int]:
        """Return the counts by the text of the true and then of the predicted label.

        Of more than `most` classes, or of long names, those are taken that occur most often.

        Returns
        -------
        The counts above 0; the number of classes taken; the number of those that occur.
        """
        names = list(self._classes) if self._names is None else self._names
        texts = [label if isinstance(label, str) else json.dumps(label) for label in names]
        cells, totals = self._counted(), dict[int, int]()
        for pair, count in cells.items():
            for i in pair:
                totals[i] = totals.get(i, 0) + count
        order = sorted(totals, key=lambda i: (-totals[i], i))[:most]
        longest = max((len(json.dumps(texts[i])) for i in order), default=0)
        frequent = set(order[: max(1, math.isqrt(_MATRIX_BYTES // (longest + _COUNT_BYTES)))])
        matrix: dict[str, dict[str, int]] = {}
        for (i, j), count in sorted(cells.items()):
            if i in frequent and j in frequent:
                matrix.setdefault(texts[i], {})[texts[j]] = count
        return matrix, len(frequent), len(totals)

    def get_state(self) -> Any:
        """Return the counts as JSON-like data."""
        return {
            "classes": list(self._classes),
            "cells": [[i, j, n] for (i, j), n in sorted(self._cells.items()) if n],
            "window": self._window.get_state(),
        }

    def set_state(self, saved: Any) -> None:
        """Take over counts."""
        labels = [checked_label(label, self._multiclass) for label in saved["classes"]]
        classes = {label: n for n, label in enumerate(labels)}
        for i, j, *_ in (*saved["cells"], *saved["window"]):
            checked_index(i, classes), checked_index(j, classes)
        cells = {(i, j): checked_count(n) for i, j, n in saved["cells"]}
        refuse_mixed(saved["classes"])
        if len(classes) < len(saved["classes"]):
            raise ValueError("a class appears twice")
        self._window.refill(saved["window"])
        self._classes, self._cells = classes, cells
