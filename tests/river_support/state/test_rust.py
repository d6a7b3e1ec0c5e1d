"""River's parts in Rust: no damaged state reaches them, whose panics no `except` would stop."""

import math
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from river import drift, stats

from hinged_service.river_support.state import Unencodable, decode, digest, encode
from hinged_service.river_support.state.rust import RUST, rust_from, rust_state
from hinged_service.wire.codec import DamagedState

ADWIN: Any = drift.ADWIN
MAKE: dict[str, Any] = {
    "Quantile": (lambda: stats.Quantile(0.3), "_quantile"),
    "IQR": (stats.IQR, "_iqr"),
    "EWMean": (stats.EWMean, "_ewmean"),
    "EWVar": (stats.EWVar, "_ewvar"),
    "PeakToPeak": (stats.PeakToPeak, "_ptp"),
    "Kurtosis": (stats.Kurtosis, "_kurtosis"),
    "Kurtosis-unbiased": (lambda: stats.Kurtosis(bias=True), "_kurtosis"),
    "Skew": (lambda: stats.Skew(bias=True), "_skew"),
    "RollingQuantile": (lambda: stats.RollingQuantile(0.3, 5), "_rolling_quantile"),
    "RollingIQR": (lambda: stats.RollingIQR(5), "_rolling_iqr"),
    "ADWIN": (lambda: ADWIN(clock=3, max_buckets=3, grace_period=2), "_helper"),
}


def helper(name: str, events: int) -> Any:
    make, attribute = MAKE[name]
    made, source = make(), random.Random(events)
    for number in range(events):
        made.update(source.gauss(number // 50, 1.0))
    return getattr(made, attribute)


@pytest.mark.parametrize("events", [0, 1, 2, 4, 5, 6, 40, 400])
@pytest.mark.parametrize("name", MAKE)
def test_every_byte_comes_back(name: str, events: int) -> None:
    value = helper(name, events)
    restored = rust_from(RUST[type(value)], rust_state(value))
    assert bytes(restored.__getstate__()) == bytes(value.__getstate__())


def changed(state: Any, source: random.Random) -> Any:
    """Return a copy of a state with one number, or one list, changed."""
    if not isinstance(state, list) or not state:
        numbers = [0, 1, -1, 5, 6, 10**7, 2**62, 2**64, 0.5, -1e300, 1e300, math.nan, math.inf]
        return source.choice([*numbers, True, None, "1", []])
    place = source.randrange(len(state))
    if source.random() < 0.1:
        return state[:place] + state[place + source.randrange(2) * 2 :]
    return [*state[:place], changed(state[place], source), *state[place + 1 :]]


@given(
    name=st.sampled_from(sorted(MAKE)),
    events=st.sampled_from([0, 1, 4, 5, 60]),
    source=st.randoms(use_true_random=False),
)
@settings(max_examples=1_000, deadline=2_000, suppress_health_check=list(HealthCheck))
def test_a_changed_state_is_damaged_or_can_go_on(
    name: str, events: int, source: random.Random
) -> None:
    value = helper(name, events)
    state = changed(rust_state(value), source)
    try:
        restored: Any = rust_from(RUST[type(value)], state)
    except DamagedState:
        return
    for number in range(20):
        restored.update(source.gauss(number, 1.0))
        if name != "ADWIN":
            restored.get()


@pytest.mark.parametrize("state", [b"", b"\x00" * 400, None, "text", [], [[]], [[0.5], "a"], {}])
@pytest.mark.parametrize("name", sorted(RUST.values()))
def test_bytes_are_no_state(name: str, state: Any) -> None:
    with pytest.raises(DamagedState):
        rust_from(name, state)


@pytest.mark.parametrize("name", ["RollingQuantile", "RollingIQR"])
def test_no_window_is_asked_for_that_memory_cannot_hold(name: str) -> None:
    arguments, fields = rust_state(helper(name, 0))
    with pytest.raises(DamagedState):
        rust_from(f"Rs{name}", [[*arguments[:-1], 2**60], fields])


def test_a_window_without_values_that_says_it_has_some() -> None:
    data = encode(stats.RollingQuantile(0.5, 3))
    data["rows"][0][1]["_is_updated"] = True
    with pytest.raises(DamagedState):
        decode(data)


def test_a_statistic_that_saw_nan_is_refused() -> None:
    quantile = stats.Quantile(0.5)
    quantile.update(math.nan)
    with pytest.raises(Unencodable, match="not finite"):
        encode(quantile)


def test_a_detector_goes_on_after_a_drift() -> None:
    detector, source = ADWIN(), random.Random(1)
    while not detector.drift_detected:
        detector.update(source.random() + 4 * (detector.width > 300))
    restored: Any = decode(encode(detector))
    for _ in range(200):
        value = source.random()
        detector.update(value)
        restored.update(value)
    assert digest(restored) == digest(detector)
    assert restored.width == detector.width
