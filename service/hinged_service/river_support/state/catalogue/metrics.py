"""Metrics."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from river import metrics, stats

from hinged_service.river_support.state.catalogue.entry import Entry
from hinged_service.wire.codec import DamagedState

__all__ = ["CLASSES"]

_FLOATS = defaultdict[Any, float]
_MATRIX: dict[str, Any] = {"cm": metrics.ConfusionMatrix}
_BINARY: dict[str, Any] = {**_MATRIX, "pos_val": Any, "_requires_labels": bool}
_FBETA = _BINARY | {"beta": float, "precision": metrics.Precision, "recall": metrics.Recall}


def _finish_roc_auc(made: metrics.ROCAUC) -> None:
    if not made.n_thresholds == len(made.thresholds) == len(made.cms):
        raise DamagedState("the thresholds of a stored ROC AUC are damaged")


CLASSES: dict[type, Entry] = {
    metrics.ConfusionMatrix: Entry(
        {"_init_classes": set[Any], "sum_row": _FLOATS, "sum_col": _FLOATS}
        | {"data": defaultdict[Any, _FLOATS], "n_samples": int}
        | {"total_weight": float, "_total_true_positives": float}
    ),
    metrics.Accuracy: Entry(_MATRIX),
    metrics.BalancedAccuracy: Entry(_MATRIX),
    metrics.CohenKappa: Entry(_MATRIX),
    metrics.GeometricMean: Entry(_MATRIX),
    metrics.Precision: Entry(_BINARY),
    metrics.Recall: Entry(_BINARY),
    metrics.MCC: Entry(_BINARY),
    metrics.F1: Entry(_FBETA),
    metrics.FBeta: Entry(_FBETA),
    metrics.MacroF1: Entry({**_MATRIX, "beta": float}),
    metrics.WeightedF1: Entry({**_MATRIX, "beta": float}),
    metrics.MicroF1: Entry(
        _MATRIX
        | {"beta": float, "precision": metrics.MicroPrecision, "recall": metrics.MicroRecall}
    ),
    metrics.MicroPrecision: Entry(_MATRIX),
    metrics.MicroRecall: Entry(_MATRIX),
    metrics.LogLoss: Entry({"_mean": stats.Mean}),
    metrics.CrossEntropy: Entry({"_mean": stats.Mean}),
    metrics.ROCAUC: Entry(
        {"n_thresholds": int, "pos_val": Any}
        | {"thresholds": list[float], "cms": list[metrics.ConfusionMatrix]},
        finish=_finish_roc_auc,
    ),
}
