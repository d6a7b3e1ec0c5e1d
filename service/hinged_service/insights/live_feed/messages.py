"""Messages of the live feed: server-sent events with JSON."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
from fastapi.sse import format_sse_event

import hinged
from hinged_service.engine.live_model import LiveModel
from hinged_service.model.inspection import recent_accuracy
from hinged_service.model.state import ModelState
from hinged_service.wire.events import Event

__all__ = ["message", "metrics_message", "model_message", "outcome_data", "weights_message"]

_CLASSES = 20


def message(event: str, data: Any, position: str | None = None) -> bytes:
    """Return a server-sent event of a type, its data as JSON, its id a position."""
    text = msgspec.json.encode(data).decode()
    return format_sse_event(event=event, data_str=text, id=position)


def model_message(name: str, live_model: LiveModel) -> bytes:
    """Return which model a watched name means."""
    position = str(live_model.position)
    data = {"name": name, "model": live_model.name, "uid": live_model.entry.uid}
    return message("model", {**data, "position": position}, position)


def metrics_message(live_model: LiveModel, events_per_s: float | None) -> bytes:
    """Return how a model stands.

    Parameters
    ----------
    live_model
        The model.
    events_per_s
        How many events per second it got lately, if that is known.

    """
    fold, position = live_model.state, str(live_model.position)
    account = fold.learner.accounting
    data = {
        "position": position,
        "at_ms": live_model.position.order[0],
        "events": fold.events,
        "judged": fold.judged,
        "mistakes": fold.mistakes,
        "updates": account.updates,
        "hinge_loss": account.hinge_loss,
        "overflows": account.overflows,
        "rejected": fold.rejected,
        "drifts": fold.detected,
        "frozen": fold.frozen,
        "accuracy": recent_accuracy(fold),
        "metrics": fold.metrics.report() if fold.metrics is not None else {},
        "events_per_s": events_per_s,
        "stale_s": max(0.0, live_model.freshness.age_s()),
        "caught_up": live_model.status.caught_up,
    }
    return message("metrics", data, position)


def weights_message(shown: dict[str, Any], position: str) -> bytes:
    """Return weights at a position, those of the first classes only if there are many."""
    classes = shown.get("classes")
    if isinstance(classes, dict):
        shown = {**shown, "classes": dict(itertools.islice(classes.items(), _CLASSES))}
    return message("weights", {**shown, "position": position})


def outcome_data(fold: ModelState, event: Event, outcome: hinged.Outcome) -> dict[str, Any]:
    """Return what an event did to a model, without its place in the log."""
    data = {
        "id": event.id,
        "y": event.y,
        "w": event.w,
        "y_pred": fold.answers.label(outcome.y_pred),
        "score": outcome.score,
        "mistake": outcome.mistake,
        "updated": outcome.updated,
        "hinge_loss": outcome.hinge_loss,
    }
    if isinstance(fold.learner, hinged.BinaryLinearClassifier):
        score = outcome.score
        data["margin"] = score if fold.answers.target(event.y) else 0.0 - score
    return data
