"""Detectors of drift."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

from river import drift, stats
from river._river_rust import drift as rust_drift
from river.drift import binary
from river.drift.binary.hddm_w import SampleInfo

from hinged_service.river_support.state.catalogue.entry import Entry
from hinged_service.wire.codec import DamagedState

__all__ = ["CLASSES"]

_DRIFT = {"_drift_detected": bool}
_BINARY_DRIFT: dict[str, Any] = {**_DRIFT, "_warning_detected": bool}


def _finish_page_hinkley(made: Any) -> None:
    tests = {"up": made._test_increase, "down": made._test_decrease, "both": made._test_both}
    if made.mode not in tests:
        raise DamagedState("the mode of a stored Page-Hinkley test is damaged")
    made._test_drift = tests[made.mode]


CLASSES: dict[type, Entry] = {
    drift.ADWIN: Entry(
        {
            **_DRIFT,
            "delta": float,
            "clock": int,
            "max_buckets": int,
            "min_window_length": int,
            "grace_period": int,
            "_helper": rust_drift.AdaptiveWindowing,
        }
    ),
    drift.PageHinkley: Entry(
        {
            **_DRIFT,
            "min_instances": int,
            "delta": float,
            "threshold": float,
            "alpha": float,
            "mode": str,
            "_x_mean": stats.Mean,
            "_sum_increase": float,
            "_sum_decrease": float,
            "_min_increase": float,
            "_max_decrease": float,
        },
        derived=frozenset(("_test_drift",)),
        finish=_finish_page_hinkley,
    ),
    drift.KSWIN: Entry(
        {
            **_DRIFT,
            "alpha": float,
            "window_size": int,
            "stat_size": int,
            "seed": int | None,
            "p_value": float,
            "n": int,
            "window": deque[float],
            "_rng": random.Random,
        }
    ),
    binary.DDM: Entry(
        {
            **_BINARY_DRIFT,
            "warm_start": int,
            "warning_threshold": float,
            "drift_threshold": float,
            "_p": stats.Mean,
            "_p_min": float | None,
            "_s_min": float | None,
            "_ps_min": float,
        }
    ),
    binary.EDDM: Entry(
        {
            **_BINARY_DRIFT,
            "warm_start": int,
            "alpha": float,
            "beta": float,
            "_error_distances": stats.Var,
            "_n": int,
            "_last_error": int,
            "_n_errors": int,
            "_p2s_prime_max": float,
        }
    ),
    binary.HDDMA: Entry(
        {
            **_BINARY_DRIFT,
            "drift_confidence": float,
            "warning_confidence": float,
            "two_sided_test": bool,
            "_x_min": stats.Mean,
            "_x_max": stats.Mean,
            "_z": stats.Mean,
        }
    ),
    binary.HDDMW: Entry(
        {
            **_BINARY_DRIFT,
            "drift_confidence": float,
            "warning_confidence": float,
            "lambda_val": float,
            "two_sided_test": bool,
            "_total": SampleInfo,
            "_s1_decr": SampleInfo,
            "_s1_incr": SampleInfo,
            "_s2_decr": SampleInfo,
            "_s2_incr": SampleInfo,
            "_incr_cutpoint": float,
            "_decr_cutpoint": float,
        }
    ),
    SampleInfo: Entry(
        {
            "_ewma": stats.EWMean,
            "_is_init": bool,
            "_ibc": float,
            "_lambd_sq": float,
            "_c_lambd_sq": float,
        }
    ),
}
