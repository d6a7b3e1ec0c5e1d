"""Detectors of drift on the mistake signal."""

import json
import math
import random
from typing import Any

import pytest
from pydantic import ValidationError
from river import drift as river_drift

import hinged
from hinged_service.evaluation.drift import Drift, DriftSpec
from hinged_service.river_support import state as river_state

drift: Any = river_drift  # not all of River is typed

DETECTORS: dict[str, tuple[dict[str, Any], Any]] = {
    "adwin": ({"type": "ADWIN"}, drift.ADWIN()),
    "adwin_quick": (
        {"type": "ADWIN", "delta": 0.05, "clock": 4, "grace_period": 5, "max_buckets": 3},
        drift.ADWIN(delta=0.05, clock=4, grace_period=5, max_buckets=3),
    ),
    "page_hinkley": (
        {"type": "PageHinkley", "threshold": 10.0, "mode": "up"},
        drift.PageHinkley(threshold=10.0, mode="up"),
    ),
    "kswin": ({"type": "KSWIN", "alpha": 0.001, "seed": 5}, drift.KSWIN(alpha=0.001, seed=5)),
    "ddm": ({"type": "DDM", "warm_start": 40}, drift.binary.DDM(warm_start=40)),
    "eddm": ({"type": "EDDM", "beta": 0.8}, drift.binary.EDDM(beta=0.8)),
    "hddm_a": ({"type": "HDDMA", "two_sided_test": True}, drift.binary.HDDMA(two_sided_test=True)),
    "hddm_w": ({"type": "HDDMW", "lambda_val": 0.1}, drift.binary.HDDMW(lambda_val=0.1)),
}


def spec_of(name: str) -> DriftSpec:
    return DriftSpec.model_validate_json(json.dumps({"detector": DETECTORS[name][0]}))


def mistakes(seed: int = 3) -> list[bool]:
    """Return 1,500 events with one mistake in ten, then 1,500 with six in ten."""
    rng = random.Random(seed)
    return [rng.random() < (0.1 if number < 1_500 else 0.6) for number in range(3_000)]


@pytest.mark.parametrize("name", DETECTORS)
def test_a_detector_is_rivers_step_by_step_and_finds_the_change(name: str) -> None:
    ours, theirs = Drift(spec_of(name)), DETECTORS[name][1].clone()
    found = []
    for number, mistake in enumerate(mistakes()):
        theirs.update(int(mistake))
        assert ours.update(mistake) is bool(theirs.drift_detected)
        if theirs.drift_detected:
            found.append(number)
    assert any(1_500 <= number < 1_700 for number in found)


@pytest.mark.parametrize("name", DETECTORS)
def test_a_detector_goes_on_exactly_where_its_state_stood(name: str) -> None:
    plain, moved = Drift(spec_of(name)), Drift(spec_of(name))
    for number, mistake in enumerate(mistakes(4)):
        if number % 173 == 0 or number in (1, 2, 3, 1_510, 1_520, 1_530):
            state = json.loads(json.dumps(moved.get_state(), sort_keys=True, allow_nan=False))
            moved = Drift(spec_of(name))
            moved.set_state(state)
            assert moved.get_state() == state
        assert moved.update(mistake) is plain.update(mistake)
    assert moved.get_state() == plain.get_state()


def test_the_state_right_at_a_detection_starts_afresh_after_it() -> None:
    plain, moved = Drift(spec_of("ddm")), Drift(spec_of("ddm"))
    events = mistakes()
    at = next(n for n, mistake in enumerate(events) if plain.update(mistake) and n >= 1_500)
    for mistake in events[: at + 1]:
        last = moved.update(mistake)
    assert last
    state = json.loads(json.dumps(moved.get_state()))
    moved = Drift(spec_of("ddm"))
    moved.set_state(state)
    assert [moved.update(m) for m in events[at + 1 :]] == [
        plain.update(m) for m in events[at + 1 :]
    ]


@pytest.mark.parametrize("name", DETECTORS)
def test_a_damaged_state_is_refused_and_changes_nothing(name: str) -> None:
    ours = Drift(spec_of(name))
    for mistake in mistakes()[:100]:
        ours.update(mistake)
    sound = json.loads(json.dumps(ours.get_state()))
    other = river_state.encode(drift.KSWIN(alpha=0.5, seed=2))
    for broken in (
        {},
        None,
        {**sound, "version": 9},
        {**sound, "type": "FHDDM"},
        {**sound, "detector": None},
        {**sound, "detector": {"type": "os.system"}},
        {**sound, "detector": river_state.encode({"a": 1})},
        {**sound, "detector": river_state.encode(drift.ADWIN(delta=0.77))},
        {**sound, "detector": other},
    ):
        with pytest.raises(hinged.InvalidState):
            ours.set_state(broken)  # type: ignore[arg-type]
        assert ours.get_state() == sound


def test_an_action_is_mark_reset_or_promote() -> None:
    for action in ("mark", "reset", {"promote": {"alias": "live"}}):
        spec = {"detector": {"type": "DDM"}, "action": action}
        assert DriftSpec.model_validate_json(json.dumps(spec)).model_dump()["action"] == action
    assert DriftSpec.model_validate({"detector": {"type": "DDM"}}).action == "mark"


@pytest.mark.parametrize(
    "spec",
    [
        {"detector": {"type": "DDM"}, "action": "forget"},
        {"detector": {"type": "DDM"}, "action": {"promote": {"alias": "a b"}}},
        {"detector": {"type": "DDM"}, "action": {"promote": "live"}},
        {"detector": {"type": "KSWIN"}},
        {"detector": {"type": "KSWIN", "seed": 1, "window_size": 40, "stat_size": 30}},
        {"detector": {"type": "EDDM", "alpha": 0.5, "beta": 0.9}},
        {"detector": {"type": "ADWIN", "delta": 0.0}},
        {"detector": {"type": "ADWIN", "delta": math.nan}},
        {"detector": {"type": "DummyDriftDetector"}},
        {"action": "mark"},
    ],
)
def test_other_specs_are_refused(spec: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        DriftSpec.model_validate(spec)
