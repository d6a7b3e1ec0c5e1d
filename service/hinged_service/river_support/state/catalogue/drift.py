"""Detectors of drift."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

from river import drift, stats
from river._river_rust import drift as rust_drift
from river.drift import binary
from river.drift.binary.hddm_w import SampleInfo

from hinged_service.river_support.state.catalogue.entry import Entry, all_of
from hinged_service.wire.codec import DamagedState

__all__ = ["CLASSES"]

_DRIFT: dict[str, Any] = {"_drift_detected": bool}
_BINARY_DRIFT = _DRIFT | {"_warning_detected": bool}
_TESTS = {"up": "_test_increase", "down": "_test_decrease", "both": "_test_both"}


def _finish_page_hinkley(made: drift.PageHinkley) -> None:
    if made.mode not in _TESTS:
        raise DamagedState("the mode of a stored Page-Hinkley test is damaged")
    vars(made)["_test_drift"] = getattr(made, _TESTS[made.mode])


CLASSES: dict[type, Entry] = {
    drift.ADWIN: Entry(
        _DRIFT
        | {"delta": float}
        | all_of(int, "clock max_buckets min_window_length grace_period")
        | {"_helper": rust_drift.AdaptiveWindowing}
    ),
    drift.PageHinkley: Entry(
        _DRIFT
        | {"min_instances": int}
        | all_of(float, "delta threshold alpha")
        | {"mode": str, "_x_mean": stats.Mean}
        | all_of(float, "_sum_increase _sum_decrease _min_increase _max_decrease"),
        derived=frozenset(("_test_drift",)),
        finish=_finish_page_hinkley,
    ),
    drift.KSWIN: Entry(
        _DRIFT
        | {"alpha": float, "window_size": int, "stat_size": int, "seed": int | None}
        | {"p_value": float, "n": int, "window": deque[float], "_rng": random.Random}
    ),
    binary.DDM: Entry(
        _BINARY_DRIFT
        | {"warm_start": int, "warning_threshold": float, "drift_threshold": float}
        | {"_p": stats.Mean, "_p_min": float | None, "_s_min": float | None, "_ps_min": float}
    ),
    binary.EDDM: Entry(
        _BINARY_DRIFT
        | {"warm_start": int, "alpha": float, "beta": float, "_error_distances": stats.Var}
        | all_of(int, "_n _last_error _n_errors")
        | {"_p2s_prime_max": float}
    ),
    binary.HDDMA: Entry(
        _BINARY_DRIFT
        | {"drift_confidence": float, "warning_confidence": float, "two_sided_test": bool}
        | all_of(stats.Mean, "_x_min _x_max _z")
    ),
    binary.HDDMW: Entry(
        _BINARY_DRIFT
        | all_of(float, "drift_confidence warning_confidence lambda_val")
        | {"two_sided_test": bool}
        | all_of(SampleInfo, "_total _s1_decr _s1_incr _s2_decr _s2_incr")
        | all_of(float, "_incr_cutpoint _decr_cutpoint")
    ),
    SampleInfo: Entry(
        {"_ewma": stats.EWMean, "_is_init": bool} | all_of(float, "_ibc _lambd_sq _c_lambd_sq")
    ),
}
