"""Progressive metrics of a model: chosen in the spec, counted event by event, River's formulas.

What is kept are counts of whole events, in plain lists; River's metrics are
computed from them when they are asked for, over the classes in the order in
which they were seen (River itself goes through a set). ROC AUC is not River's,
which looks at ten thresholds only, but made of the ranks of the events.
"""

from __future__ import annotations

import bisect
import collections
import functools
import itertools
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, Protocol

from pydantic import Field

import hinged
from hinged_service.evaluation.ranks import Ranks, area
from hinged_service.river_support.lazy import metrics
from hinged_service.wire.strict import StrictModel

__all__ = ["MetricSpecs", "Metrics", "RollingSpec", "check_metrics"]

Label = bool | int | str
Name = Literal[
    "accuracy",
    "balanced_accuracy",
    "f1",
    "precision",
    "recall",
    "roc_auc",
    "log_loss",
    "confusion_matrix",
    "mcc",
    "cohen_kappa",
]

_STATE_VERSION = 1
_THRESHOLDS = [-1e-7, *(i / 9 for i in range(1, 9)), 1.0 + 1e-7]
"""Where an earlier version cut the probability, as River's ROC AUC does."""
_FAULTS = (ArithmeticError, LookupError, TypeError, ValueError, AttributeError)
_river: Any = metrics  # not all of River is typed
_BINARY = {
    "accuracy": "Accuracy",
    "balanced_accuracy": "BalancedAccuracy",
    "f1": "F1",
    "precision": "Precision",
    "recall": "Recall",
    "mcc": "MCC",
    "cohen_kappa": "CohenKappa",
}
_MULTICLASS = {
    "accuracy": "Accuracy",
    "balanced_accuracy": "BalancedAccuracy",
    "f1": "MacroF1",
    "precision": "MacroPrecision",
    "recall": "MacroRecall",
    "cohen_kappa": "CohenKappa",
}


class MetricSpec(StrictModel):
    """A metric of all events since the model began; with two classes the positive one counts.

    With more classes, f1, precision and recall are the mean over the classes. ROC AUC is exact
    for the first 500 events of each label; after that it is off by 0.002 at most, whatever the
    scores are. It is null while only one label was seen.
    """

    type: Name

    @property
    def metric(self) -> str:
        """Which metric it is."""
        return self.type

    @property
    def window(self) -> None:
        """No window: all events count."""
        return

    @property
    def name(self) -> str:
        """What it is called in a report."""
        return self.type


class RollingSpec(StrictModel):
    """A metric of the newest events only; ROC AUC is exact, null if they are of one label."""

    type: Literal["rolling"]
    metric: Name = Field(description="Which metric.")
    window: int = Field(1_000, ge=1, le=10_000, description="How many events count.")

    @property
    def name(self) -> str:
        """What it is called in a report."""
        return f"rolling_{self.metric}_{self.window}"


Metric = Name | MetricSpec | RollingSpec
MetricSpecs = Annotated[
    tuple[Metric, ...],
    Field(max_length=20, description="Metrics by name, or with their parameters."),
]


def _full(spec: Metric) -> MetricSpec | RollingSpec:
    return MetricSpec(type=spec) if isinstance(spec, str) else spec


def check_metrics(specs: Iterable[Metric], multiclass: bool) -> None:
    """Check that the metrics of a spec differ and fit its learner.

    Parameters
    ----------
    specs
        The metrics.
    multiclass
        Whether the learner tells more than two classes apart.

    Raises
    ------
    ValueError
        Naming the metric.

    """
    names = set()
    for spec in map(_full, specs):
        if spec.name in names:
            raise ValueError(f"{spec.name} is there twice")
        names.add(spec.name)
        if multiclass and spec.metric in ("roc_auc", "mcc"):
            raise ValueError(f"{spec.metric} needs a learner of two classes")


class _Counts(Protocol):
    """What one kind of metric keeps of the events: a counter with or without a window."""

    def update(self, y_true: Any, y_pred: Any, proba: Mapping[Any, float], score: float) -> None:
        """Count one event, or raise and change nothing."""

    def get(self, metric: str) -> Any:
        """Return the value of a metric, `None` without an event."""

    def get_state(self) -> Any:
        """Return the counts as JSON-like data."""

    def set_state(self, saved: Any) -> None:
        """Take over counts; raises an error of Python's own if they are damaged."""


class _Window:
    """The newest items, if there is a window; else nothing is kept.

    Parameters
    ----------
    size
        How many items, or `None`.

    """

    def __init__(self, size: int | None) -> None:
        self._size = size
        self.items: collections.deque[Any] = collections.deque()

    def push(self, item: Any) -> Any | None:
        """Add an item; return the one that leaves, `None` if none does."""
        if self._size is None:
            return None
        old = self.items.popleft() if len(self.items) == self._size else None
        self.items.append(item)
        return old

    def get_state(self) -> list[Any]:
        """Return the items, the oldest first."""
        return list(self.items)

    def refill(self, items: Any) -> None:
        """Take over the items of a state."""
        if not isinstance(items, list) or len(items) > (self._size or 0):
            raise ValueError("the window is no list of its size")
        self.items = collections.deque(items)


@functools.cache
def _ordered_matrix() -> Any:
    """Return a class: River's confusion matrix, its classes in the order in which they are given.

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


class _Confusion:
    """How often each class was taken for each."""

    def __init__(self, window: int | None, multiclass: bool, names: Sequence[Label] | None) -> None:
        self._multiclass = multiclass
        self._names = names
        self._classes: dict[Label, int] = {} if multiclass else {False: 0, True: 1}
        self._cells: dict[tuple[int, int], int] = {}
        self._window = _Window(window)
        self._matrix_of = _ordered_matrix()

    def update(self, y_true: Any, y_pred: Any, proba: Mapping[Any, float], score: float) -> None:
        """Count one event."""
        pair = (_checked(y_true, self._multiclass), _checked(y_pred, self._multiclass))
        _refuse_mixed([*itertools.islice(self._classes, 1), *pair])
        i, j = (self._classes.setdefault(label, len(self._classes)) for label in pair)
        self._cells[i, j] = self._cells.get((i, j), 0) + 1
        old = self._window.push([i, j])
        if old is not None:
            self._cells[old[0], old[1]] -= 1

    def get(self, metric: str) -> Any:
        """Return the value of a metric, `None` without an event."""
        cells = {pair: count for pair, count in self._cells.items() if count}
        if metric == "confusion_matrix":
            return self._matrix(cells)
        if not cells:
            return None
        kind = getattr(_river, (_MULTICLASS if self._multiclass else _BINARY)[metric])
        return float(kind(cm=self._matrix_of(list(self._classes), cells)).get())

    def _matrix(self, cells: Mapping[tuple[int, int], int]) -> dict[str, dict[str, int]]:
        names = list(self._classes) if self._names is None else self._names
        texts = [label if isinstance(label, str) else json.dumps(label) for label in names]
        matrix: dict[str, dict[str, int]] = {}
        for (i, j), count in sorted(cells.items()):
            matrix.setdefault(texts[i], {})[texts[j]] = count
        return matrix

    def get_state(self) -> Any:
        """Return the counts as JSON-like data."""
        return {
            "classes": list(self._classes),
            "cells": [[i, j, n] for (i, j), n in sorted(self._cells.items()) if n],
            "window": self._window.get_state(),
        }

    def set_state(self, saved: Any) -> None:
        """Take over counts."""
        classes = {_checked(label, self._multiclass): n for n, label in enumerate(saved["classes"])}
        cells = {(_index(i, classes), _index(j, classes)): _count(n) for i, j, n in saved["cells"]}
        for i, j in saved["window"]:
            _index(i, classes), _index(j, classes)
        _refuse_mixed(saved["classes"])
        if len(classes) < len(saved["classes"]):
            raise ValueError("a class is there twice")
        self._window.refill(saved["window"])
        self._classes, self._cells = classes, cells


class _LogLoss:
    """The sum of -log P(the label that came), probabilities cut as River cuts them."""

    def __init__(self, window: int | None, multiclass: bool) -> None:
        self._multiclass = multiclass
        self._sum = 0.0
        self._n = 0
        self._rolling = window is not None
        self._window = _Window(window)

    def update(self, y_true: Any, y_pred: Any, proba: Mapping[Any, float], score: float) -> None:
        """Count one event."""
        label = _checked(y_true, self._multiclass)
        if self._multiclass:
            loss = -math.log(_cut(_probability(proba, label))) if label in proba else 0.0
        else:
            p = _cut(_probability(proba, True))
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
        total, n = _number(saved["sum"]), _count(saved["n"])
        for loss in saved["window"]:
            _number(loss)
        self._window.refill(saved["window"])
        self._sum, self._n = total, n


class _RocAuc:
    """The ranks of the events of each label, since the model began.

    Parameters
    ----------
    by_score
        Whether events are ranked by their score, the log-odds of the probability, which
        tells events apart where the probability is as good as 0 or 1.

    """

    def __init__(self, by_score: bool) -> None:
        self._by_score = by_score
        self._ranks = Ranks(), Ranks()

    def update(self, y_true: Any, y_pred: Any, proba: Mapping[Any, float], score: float) -> None:
        """Count one event."""
        row = int(_checked(y_true, multiclass=False))
        self._ranks[row].add(score if self._by_score else _probability(proba, True))

    def get(self, metric: str) -> float | None:
        """Return the area under the curve, `None` without an event of each label."""
        return area(*self._ranks)

    def get_state(self) -> Any:
        """Return the ranks as JSON-like data."""
        return {"ranks": [ranks.get_state() for ranks in self._ranks]}

    def set_state(self, saved: Any) -> None:
        """Take over ranks, or what an earlier version counted between ten thresholds."""
        if set(saved) == {"counts", "window"}:
            given = [_ranks_of(counts, self._by_score) for counts in saved["counts"]]
        elif set(saved) == {"ranks"}:
            given = saved["ranks"]
        else:
            raise ValueError("they are no ranks")
        negative, positive = given
        fresh = Ranks(), Ranks()
        for ranks, state in zip(fresh, (negative, positive), strict=True):
            ranks.set_state(state)
        self._ranks = fresh


class _RollingRocAuc:
    """Label and rank of the newest events: the area is exact."""

    def __init__(self, window: int, by_score: bool) -> None:
        self._by_score = by_score
        self._window = _Window(window)

    def update(self, y_true: Any, y_pred: Any, proba: Mapping[Any, float], score: float) -> None:
        """Count one event."""
        row = int(_checked(y_true, multiclass=False))
        self._window.push([row, score if self._by_score else _probability(proba, True)])

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
        """Take over events, be it of an earlier version, which kept the place among thresholds."""
        between = "counts" in saved
        items = []
        for row, value in saved["window"]:
            if not (type(row) is int and row in (0, 1)):
                raise ValueError("an item of the window is damaged")
            rank = _between(value, self._by_score) if between else _number(value)
            items.append([row, rank])
        self._window.refill(items)


def _between(place: Any, by_score: bool) -> float:
    """Return the rank in the middle between two of the thresholds that once were."""
    last = len(_THRESHOLDS) - 1
    p = (max(1, min(last, _index(place, range(last + 2)))) - 0.5) / last
    return math.log(p / (1.0 - p)) if by_score else p


def _ranks_of(counts: Any, by_score: bool) -> list[list[Any]]:
    """Return the state of the ranks of events that were counted between thresholds.

    Two items of one value say that all events between them have that value.
    """
    if len(counts) != len(_THRESHOLDS) + 1:
        raise ValueError("the counts are of another length")
    items: list[list[Any]] = []
    for place, count in enumerate(counts):
        rank, left = _between(place, by_score), _count(count)
        items += [[rank, n, 0] for n in (min(1, left), left - 1) if n > 0]
    return items


class Metrics:
    """The progressive metrics of a model.

    A metric that an event makes fail is set aside with the reason, which is part
    of the state; nothing else is touched by it.

    Parameters
    ----------
    specs
        The metrics, checked by `check_metrics`.
    multiclass
        Whether the model tells more than two classes apart.
    labels
        Binary: how the negative and the positive label are called in a confusion
        matrix; false and true if left out.
    by_score
        Whether ROC AUC ranks events by their score, not by their probability.

    """

    def __init__(
        self,
        specs: Iterable[Metric],
        multiclass: bool,
        labels: Sequence[Label] | None = None,
        by_score: bool = False,
    ) -> None:
        self._by_score = by_score
        self._specs = [_full(spec) for spec in specs]
        check_metrics(self._specs, multiclass)
        self._multiclass = multiclass
        self._labels = None if multiclass else labels
        self._counts = self._fresh()
        self._errors: dict[str, str] = {}

    def _fresh(self) -> dict[str, _Counts]:
        counts: dict[str, _Counts] = {}
        for spec in self._specs:
            key = _key(spec)
            if key not in counts:
                counts[key] = self._counter(spec.metric, spec.window)
        return counts

    def _counter(self, metric: str, window: int | None) -> _Counts:
        if metric == "roc_auc":
            if window is None:
                return _RocAuc(self._by_score)
            return _RollingRocAuc(window, self._by_score)
        if metric == "log_loss":
            return _LogLoss(window, self._multiclass)
        return _Confusion(window, self._multiclass, self._labels)

    def update(
        self, y_true: Any, y_pred: Any, proba: Mapping[Any, float], score: float = 0.0
    ) -> None:
        """Count one event, never raising.

        Parameters
        ----------
        y_true
            The label. Binary: true or false.
        y_pred
            The label predicted before learning; an event without one is not
            counted, as in the model's accuracy and in River's own evaluation.
        proba
            Probability by label, before learning.
        score
            The score behind them, if events are ranked by it.

        """
        if y_pred is None:
            return
        for key, counts in self._counts.items():
            if key in self._errors:
                continue
            try:
                counts.update(y_true, y_pred, proba, score)
            except _FAULTS as error:
                self._errors[key] = _reason(error)

    def report(self) -> dict[str, Any]:
        """Return the value of every metric by its name.

        Returns
        -------
        A finite number; `None` before the first event, or where there is no
        number; for a confusion matrix, by the text of the true and then of the
        predicted label, the counts above 0; `{"error": reason}` of a metric that
        failed.

        """
        return {spec.name: self._value(spec) for spec in self._specs}

    def _value(self, spec: MetricSpec | RollingSpec) -> Any:
        key = _key(spec)
        if key in self._errors:
            return {"error": self._errors[key]}
        try:
            value = self._counts[key].get(spec.metric)
        except _FAULTS as error:  # of the value only: what was counted is sound
            return {"error": _reason(error)}
        return None if isinstance(value, float) and not math.isfinite(value) else value

    def get_state(self) -> dict[str, Any]:
        """Return all that is needed to go on exactly where this stands, as JSON-like data."""
        return {
            "version": _STATE_VERSION,
            "counts": {key: counts.get_state() for key, counts in self._counts.items()},
            "errors": dict(self._errors),
        }

    def set_state(self, saved: Mapping[str, Any]) -> None:
        """Take over a state that `get_state` gave.

        Raises
        ------
        hinged.InvalidState
            If it is of another version or of other metrics, or damaged. Nothing
            has changed.

        """
        if not isinstance(saved, Mapping) or set(saved) != {"version", "counts", "errors"}:
            raise hinged.InvalidState("not the state of metrics")
        if saved["version"] != _STATE_VERSION:
            raise hinged.InvalidState(f"not a version {_STATE_VERSION} state of metrics")
        fresh = self._fresh()
        errors = saved["errors"]
        try:
            _refuse_others(saved["counts"], errors, set(fresh))
            for key, counts in fresh.items():
                counts.set_state(saved["counts"][key])
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise hinged.InvalidState(f"the metrics are damaged: {error}") from None
        self._counts = fresh
        self._errors = dict(errors)


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:200]


def _key(spec: MetricSpec | RollingSpec) -> str:
    """Return which counts a metric is computed from."""
    kind = spec.metric if spec.metric in ("roc_auc", "log_loss") else "confusion"
    return kind if spec.window is None else f"{kind}/{spec.window}"


def _refuse_others(counts: Any, errors: Any, keys: set[str]) -> None:
    if set(counts) != keys or not set(errors) <= keys:
        raise ValueError("they are of other metrics")
    if not all(isinstance(reason, str) for reason in errors.values()):
        raise ValueError("a reason is no text")


def _checked(label: Any, multiclass: bool) -> Label:
    if type(label) is bool or (multiclass and type(label) in (int, str)):
        return label  # type: ignore[no-any-return]
    raise TypeError(f"cannot take a label of type {type(label).__name__}")


def _refuse_mixed(labels: Iterable[Label]) -> None:
    if len(set(map(type, labels))) > 1:
        raise TypeError("cannot take labels of several types")


def _probability(proba: Mapping[Any, float], label: Label) -> float:
    p = float(proba.get(label, 0.0))
    if not math.isfinite(p):
        raise ValueError("a probability is not finite")
    return p


def _cut(p: float) -> float:
    return max(min(p, 1.0 - 1e-15), 1e-15)


def _index(value: Any, of: Any) -> int:
    if type(value) is not int or not 0 <= value < len(of):
        raise ValueError("an index is damaged")
    return value


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise ValueError("a count is damaged")
    return value


def _number(value: Any) -> float:
    if type(value) not in (int, float) or not abs(value) <= sys.float_info.max:
        raise ValueError("a number is damaged")
    return float(value)
