"""Refusals of events that can be read: by the model before or after the log, or by the log."""

from __future__ import annotations

from collections.abc import Sequence

from hinged_service.errors import (
    Busy,
    Conflict,
    Detail,
    Expired,
    NotFound,
    ServiceError,
    Unprocessable,
)
from hinged_service.model.results import Rejection
from hinged_service.store.log_types import Refusal
from hinged_service.store.pending_predictions import KeepRefusal
from hinged_service.wire.faults import MAX_DETAILS

__all__ = ["COUNTED", "refused_by_log", "refused_by_model", "refused_line", "refused_prediction"]

COUNTED = {
    400: "invalid",
    404: "unknown",
    409: "conflict",
    410: "expired",
    413: "invalid",
    422: "invalid",
    429: "full",
}
"""The reason under which a refusal is counted, by its status."""


def refused_by_model(faults: Sequence[tuple[int, Rejection]], logged: bool) -> Unprocessable:
    """Return the refusal of a call whose events, if `logged`, are in the log all the same.

    `faults` are the index and the fault of each event at fault, at least one.
    """
    what = "The log has all of it, the model could not take some" if logged else "Nothing was taken"
    some = "" if len(faults) <= MAX_DETAILS else f" ({MAX_DETAILS} of {len(faults)} shown)"
    details = [Detail(f"[{i}].{fault.field}", fault.reason) for i, fault in faults[:MAX_DETAILS]]
    return Unprocessable(f"{what}: see errors{some}.", details, logged=logged)


def refused_line(faults: Sequence[Rejection], logged: bool) -> Unprocessable:
    """Return the refusal of one event outside an array, such as a line."""
    what = "The log has it, the model could not take it" if logged else "Nothing was taken"
    details = [Detail(fault.field, fault.reason) for fault in faults]
    return Unprocessable(f"{what}: see errors.", details, logged=logged)


def refused_by_log(index: int, why: Refusal) -> ServiceError:
    """Return the refusal of a caller's events, all for the one at `index`, by the script's code."""
    if why is Refusal.TOO_MANY_WAIT:
        return Busy("Too many predictions and early labels wait. Try again.", retry_after_s=1)
    if why is Refusal.NO_PREDICTION:
        return NotFound(
            "Nothing was taken: no prediction waits under that id.",
            [Detail(f"[{index}].id", "names no prediction that waits for its label")],
        )
    if why is Refusal.WAITED_TOO_LONG:
        return Expired(
            "Nothing was taken: the prediction was given up before its label came.",
            [Detail(f"[{index}].id", "names a prediction that waited too long")],
        )
    if why is Refusal.DAMAGED:
        return Conflict(
            "Nothing was taken: what waits under an event id is damaged. Send that event with its "
            "features.",
            [Detail(f"[{index}].id", "names a prediction that is damaged")],
        )
    return Conflict(
        "Nothing was taken: an event id was used before for another event.",
        [Detail(f"[{index}].id", "names another event already")],
    )


def refused_prediction(index: int, why: KeepRefusal) -> ServiceError:
    """Return the refusal to keep predictions, all for the one at `index`, by the script's code."""
    if why is KeepRefusal.TOO_MANY_WAIT:
        return Busy("Too many predictions wait for their labels. Try again.", retry_after_s=1)
    what, field = "Nothing was predicted: see errors.", f"[{index}].id"
    if why is KeepRefusal.WAITED_TOO_LONG:
        return Expired(what, [Detail(field, "names a prediction that waited too long")])
    reason = "names an event that has its label"
    if why is KeepRefusal.OTHER_FEATURES:
        reason = "other features wait under this id"
    return Conflict(what, [Detail(field, reason)])
