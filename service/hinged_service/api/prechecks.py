"""Checks of well-formed events by the model they are for, before anything is logged."""

from __future__ import annotations

from collections.abc import Sequence

from hinged_service.engine.live_model import LiveModel
from hinged_service.model.state import ModelState, Rejection
from hinged_service.wire.events import Event

__all__ = ["note_refused", "precheck"]

_REASONS = {
    400: "invalid",
    404: "unknown",
    409: "conflict",
    410: "expired",
    413: "invalid",
    422: "invalid",
    429: "full",
}


def precheck(
    events: Sequence[Event], fold: ModelState, closely: bool
) -> list[tuple[int, Rejection]]:
    """Return what is wrong with labels, weights and features, by the index of the event.

    Parameters
    ----------
    events
        Well-formed events.
    fold
        The model's present state.
    closely
        Whether features may be refused too, as `ModelSpec.can_reject_features` tells.

    """
    faults = []
    target, expected = fold.answers.target, fold.answers.expected
    for i, event in enumerate(events):
        if target(event.y) is None:
            faults.append((i, Rejection("y", expected())))
        if (event.w != 1.0 or closely) and (fault := fold.check(event)) is not None:
            faults.append((i, fault))
    return faults


def note_refused(live_model: LiveModel, status: int) -> None:
    """Count a call or line that a model refused, by the status that tells why."""
    reason = _REASONS.get(status)
    if reason is not None:
        live_model.observer.of_model(live_model.name, reason)
