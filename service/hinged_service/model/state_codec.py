"""The state of a model as JSON-like data, beside its vectors, and back."""

from __future__ import annotations

from typing import Any

import hinged
from hinged_service.model.results import KEPT_DETECTIONS, Detection
from hinged_service.model.state import ModelState
from hinged_service.wire.position import EntryId

__all__ = ["restore_state", "state_scalars"]

_COUNTS = (
    "events",
    "judged",
    "mistakes",
    "rejected",
    "excluded",
    "detected",
    "labelled",
    "delay_ms",
    "longest_delay_ms",
    "served",
    "served_mistakes",
)


def state_scalars(state: ModelState) -> dict[str, Any]:
    """Return all of the state but the vectors, as JSON-like data."""
    learner = state.learner.get_state()
    del learner["vectors"]
    return {
        "learner": learner,
        "counts": {name: getattr(state, name) for name in _COUNTS},
        "frozen": state.frozen,
        "configured": state.configured,
        "calibration": None if state.temperature is None else state.temperature.scalars(),
        "balance": None if state.balance is None else state.balance.get_state(),
        "pipeline": None if state.pipeline is None else state.pipeline.get_state(),
        "metrics": None if state.metrics is None else state.metrics.get_state(),
        "drift": None if state.drift is None else state.drift.get_state(),
        "detections": [list(detection) for detection in state.detections],
        "history": state.history.get_state(),
    }


def restore_state(
    state: ModelState, scalars: dict[str, Any], vectors: dict[str, dict[Any, float]]
) -> None:
    """Give a model the state that scalars and vectors describe.

    Parameters
    ----------
    state
        The state of a model of the same spec, as it is made.
    scalars
        What `state_scalars` returned.
    vectors
        The weights by the names of the vectors.

    Raises
    ------
    hinged.InvalidState
        If it is not the state of such a model. It may have been taken over in part.

    """
    counts = _counts(scalars)
    match scalars:
        case {
            "learner": dict() as learner,
            "frozen": bool() as frozen,
            "configured": dict() as configured,
            "detections": list() as detections,
        }:
            pass
        case _:
            raise hinged.InvalidState("the stored state is damaged")
    stored = [vector for vector in vectors.values() if isinstance(vector, dict)]
    if any(set(map(type, vector)) - {str} for vector in stored):  # not those of a live model
        raise hinged.InvalidState("a stored feature name is not text")
    if len(detections) != min(counts["detected"], KEPT_DETECTIONS):
        raise hinged.InvalidState(f"{len(detections)} of {counts['detected']} drifts are kept")
    try:
        if configured:
            state.configured = configured
            state.renew()
        state.detections = tuple([_detection(*detection) for detection in detections])
    except (ValueError, TypeError) as error:
        raise hinged.InvalidState(f"the stored state is damaged: {error}") from error
    state.take_over({**learner, "vectors": vectors})
    parts: tuple[tuple[Any, str], ...] = (
        (state.pipeline, "pipeline"),
        (state.temperature, "calibration"),
        (state.balance, "balance"),
        (state.metrics, "metrics"),
        (state.drift, "drift"),
    )
    for part, name in parts:
        saved = scalars.get(name)
        if (part is None) is not (saved is None):
            raise hinged.InvalidState(f"the stored state is of another {name}")
        if part is not None:
            part.set_state(saved)
    state.frozen = frozen
    for name, count in counts.items():
        setattr(state, name, count)
    state.history.set_state(scalars.get("history"), state.reading(0))


def _counts(scalars: dict[str, Any]) -> dict[str, int]:
    match scalars:
        case {"counts": dict() as counts} if counts.keys() | {"judged"} == set(_COUNTS):
            counts = {"judged": counts.get("events"), **counts}  # once all events were
        case _:
            raise hinged.InvalidState("the stored counters are damaged")
    if not all(map(_is_count, counts.values())):
        raise hinged.InvalidState("the stored counters are damaged")
    if not counts["mistakes"] <= counts["judged"] <= counts["events"]:
        raise hinged.InvalidState("the stored counters contradict each other")
    return counts


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _detection(entry: object, number: object, events: object) -> Detection:
    match entry, number, events:
        case str(), int(), int() if _is_count(number) and _is_count(events):
            EntryId.parse(entry)
            return Detection(entry, number, events)
    raise TypeError("a detection is an entry id and two counts")
