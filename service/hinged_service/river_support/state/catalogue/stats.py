"""Running statistics."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

from river import stats
from river._river_rust import stats as rust_stats
from river.utils.sorted_window import SortedWindow

from hinged_service.river_support.state.catalogue.entry import Entry
from hinged_service.river_support.state.rust import has_data
from hinged_service.wire.codec import DamagedState

__all__ = ["CLASSES"]

_SPREAD: dict[str, Any] = {"ddof": int, "mean": stats.Mean, "_S": float}


def _updated(attribute: str) -> Callable[[object], None]:
    def finish(made: object) -> None:
        if vars(made)["_is_updated"] is not has_data(vars(made)[attribute]):
            raise DamagedState(f"a stored {type(made).__name__} is damaged")

    return finish


CLASSES: dict[type, Entry] = {
    stats.Count: Entry({"n": int}),
    stats.Sum: Entry({"sum": float}),
    stats.Mean: Entry({"n": float, "_mean": float}),
    stats.Var: Entry(_SPREAD),
    stats.SEM: Entry(_SPREAD),
    stats.Min: Entry({"min": float}),
    stats.Max: Entry({"max": float}),
    stats.AbsMax: Entry({"abs_max": float}),
    stats.Mode: Entry({"k": int, "counts": defaultdict[Any, int]}),
    stats.Shift: Entry({"amount": int, "fill_value": Any, "buffer": deque[Any]}),
    stats.EWMean: Entry({"fading_factor": float, "_ewmean": rust_stats.RsEWMean}),
    stats.EWVar: Entry({"fading_factor": float, "_ewvar": rust_stats.RsEWVar}),
    stats.Kurtosis: Entry({"bias": bool, "_kurtosis": rust_stats.RsKurtosis}),
    stats.Skew: Entry({"bias": bool, "_skew": rust_stats.RsSkew}),
    stats.PeakToPeak: Entry(
        {"_ptp": rust_stats.RsPeakToPeak, "_is_updated": bool}, finish=_updated("_ptp")
    ),
    stats.Quantile: Entry(
        {"_quantile": rust_stats.RsQuantile, "_is_updated": bool, "q": float},
        finish=_updated("_quantile"),
    ),
    stats.IQR: Entry(
        {"q_inf": float, "q_sup": float, "_iqr": rust_stats.RsIQR, "_is_updated": bool},
        finish=_updated("_iqr"),
    ),
    stats.RollingQuantile: Entry(
        {"_rolling_quantile": rust_stats.RsRollingQuantile, "q": float}
        | {"window_size_value": int, "_is_updated": bool},
        finish=_updated("_rolling_quantile"),
    ),
    stats.RollingIQR: Entry(
        {"q_inf": float, "q_sup": float, "_rolling_iqr": rust_stats.RsRollingIQR}
        | {"window_size_value": int, "_is_updated": bool},
        finish=_updated("_rolling_iqr"),
    ),
    stats.RollingMin: Entry({"window": SortedWindow}),
    stats.RollingMax: Entry({"window": SortedWindow}),
    stats.RollingAbsMax: Entry({"window": SortedWindow}),
    stats.RollingMode: Entry({"window": deque[Any], "counts": defaultdict[Any, int]}),
}
