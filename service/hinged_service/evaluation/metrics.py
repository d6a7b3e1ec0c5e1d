"""Progressive metrics of a model: chosen in the spec, counted event by event, River's formulas.

Counts of whole events are kept, in plain lists; River's metrics are computed from
them on demand, over the classes in the order in which they were seen (River itself
goes through a set).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import hinged
from hinged_service.evaluation.checks import Label
from hinged_service.evaluation.confusion import Confusion
from hinged_service.evaluation.log_loss import LogLoss
from hinged_service.evaluation.reliability import Reliability
from hinged_service.evaluation.roc_auc import RocAuc, RollingRocAuc
from hinged_service.evaluation.specs import (
    Metric,
    MetricSpec,
    RollingSpec,
    check_metrics,
    full_spec,
)

__all__ = ["MOST_CLASSES", "Metrics"]

MOST_CLASSES = 50
"""Classes of a confusion matrix that are reported by default."""
_STATE_VERSION = 1
_OF_RELIABILITY = ("calibration_error", "reliability")
_FAULTS = (ArithmeticError, LookupError, TypeError, ValueError, AttributeError)


class _Counts(Protocol):
    """The counts that one kind of metric keeps of the events, with or without a window."""

    def update(self, y_true: Any, y_pred: Any, proba: Mapping[Any, float], score: float) -> None:
        """Count one event, or raise and change nothing."""

    def get(self, metric: str) -> Any:
        """Return the value of a metric, `None` without an event."""

    def get_state(self) -> Any:
        """Return the counts as JSON-like data."""

    def set_state(self, saved: Any) -> None:
        """Take over counts; raises an error of Python's own if they are damaged."""


class Metrics:
    """The progressive metrics of a model.

    A metric that an event makes fail is set aside with the reason, which is part
    of the state; nothing else is touched by it.

    Parameters
    ----------
    specs
        The metrics, checked by `check_metrics`.
    multiclass
        Whether the model distinguishes more than two classes.
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
        self._specs = [full_spec(spec) for spec in specs]
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
                return RocAuc(self._by_score)
            return RollingRocAuc(window, self._by_score)
        if metric == "log_loss":
            return LogLoss(window, self._multiclass)
        if metric in _OF_RELIABILITY:
            return Reliability(window, self._multiclass)
        return Confusion(window, self._multiclass, self._labels)

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

    def report(self, most_classes: int = MOST_CLASSES) -> dict[str, Any]:
        """Return the value of every metric by its name.

        Returns
        -------
        A finite number; `None` before the first event, or where there is no
        number; for reliability, a list of bins; for a confusion matrix, by the text
        of the true and then of the predicted label, the counts above 0; `{"error":
        reason}` of a metric that failed. A matrix has `most_classes` at most, those
        that occur most often, and 256 KiB; beside one that is cut, under its name and
        `_classes`, stands how many are reported and of how many.

        """
        found: dict[str, Any] = {}
        for spec in self._specs:
            value = self._value(spec, most_classes)
            if not isinstance(value, tuple):
                found[spec.name] = value
                continue
            found[spec.name], reported, classes = value
            if reported < classes:
                found[f"{spec.name}_classes"] = {"shown": reported, "of": classes}
        return found

    def first(self, metric: str, rolling: bool) -> float | None:
        """Return the value of the first metric of a kind in the spec, `None` without a number."""
        for spec in self._specs:
            if spec.metric == metric and (spec.window is not None) is rolling:
                value = self._value(spec, 1)
                return value if isinstance(value, float) else None
        return None

    def _value(self, spec: MetricSpec | RollingSpec, most_classes: int) -> Any:
        key = _key(spec)
        if key in self._errors:
            return {"error": self._errors[key]}
        counts = self._counts[key]
        try:
            if isinstance(counts, Confusion) and spec.metric == "confusion_matrix":
                return counts.matrix(most_classes)
            value = counts.get(spec.metric)
        except _FAULTS as error:  # of the value only: what was counted is sound
            return {"error": _reason(error)}
        return None if isinstance(value, float) and not math.isfinite(value) else value

    def get_state(self) -> dict[str, Any]:
        """Return the complete state as JSON-like data."""
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
    """Return the key of the counts that a metric is computed from."""
    kind = spec.metric if spec.metric in ("roc_auc", "log_loss") else "confusion"
    if spec.metric in _OF_RELIABILITY:
        kind = "reliability"
    return kind if spec.window is None else f"{kind}/{spec.window}"


def _refuse_others(counts: Any, errors: Any, keys: set[str]) -> None:
    if set(counts) != keys or not set(errors) <= keys:
        raise ValueError("they are of other metrics")
    if not all(isinstance(reason, str) for reason in errors.values()):
        raise ValueError("a reason is not text")
