"""Scalers, encoders, imputers."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from river import preprocessing, stats, utils
from river.preprocessing.impute import Constant

from hinged_service.river_support.state.catalogue.entry import Entry, all_of

__all__ = ["CLASSES"]

_ROLLING: Any = utils.Rolling
_FLOATS = defaultdict[Any, float]
_COUNTS = Counter[Any]
CLASSES: dict[type, Entry] = {
    preprocessing.StandardScaler: Entry(
        {"with_std": bool, "window_size": int | None, "counts": _COUNTS}
        | all_of(_FLOATS | defaultdict[Any, _ROLLING], "means vars")
    ),
    preprocessing.AdaptiveStandardScaler: Entry(
        {
            "fading_factor": float,
            "vars": defaultdict[Any, stats.EWVar],
            "means": defaultdict[Any, stats.EWMean],
        }
    ),
    preprocessing.MinMaxScaler: Entry(
        {
            "window_size": int | None,
            "min": defaultdict[Any, stats.Min] | defaultdict[Any, stats.RollingMin],
            "max": defaultdict[Any, stats.Max] | defaultdict[Any, stats.RollingMax],
        }
    ),
    preprocessing.MaxAbsScaler: Entry(
        {
            "window_size": int | None,
            "abs_max": defaultdict[Any, stats.AbsMax] | defaultdict[Any, stats.RollingAbsMax],
        }
    ),
    preprocessing.RobustScaler: Entry(
        all_of(bool, "with_centering with_scaling")
        | all_of(float, "q_inf q_sup")
        | {"median": defaultdict[Any, stats.Quantile], "iqr": defaultdict[Any, stats.IQR]}
    ),
    preprocessing.Normalizer: Entry({"order": float}),
    preprocessing.Binarizer: Entry({"threshold": float, "dtype": type}),
    preprocessing.OneHotEncoder: Entry(
        {
            **all_of(bool, "drop_zeros drop_first"),
            "categories": dict[Any, set[Any]] | None,
            "_zero_dict": dict[Any, int],
            "values": defaultdict[Any, set[Any]] | dict[Any, set[Any]],
        }
    ),
    preprocessing.FeatureHasher: Entry(
        {"n_features": int, "seed": int | None, "alternate_sign": bool, "_seed": int}
    ),
    preprocessing.StatImputer: Entry(
        {"imputers": tuple[tuple[Any, Any], ...], "stats": dict[Any, stats.base.Univariate]}
    ),
    Constant: Entry({"value": Any}),
    preprocessing.PreviousImputer: Entry({"_latest": dict[Any, Any]}),
}
