"""Messages of the live feed: server-sent events with JSON."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
from fastapi.sse import format_sse_event

import hinged
from hinged_service.engine.live_model import LiveModel
from hinged_service.model.inspection import account, rolling_accuracy, whole_accuracy
from hinged_service.model.state import ModelState
from hinged_service.wire import live_feed
from hinged_service.wire.events import Event
from hinged_service.wire.position import Position

__all__ = ["message", "metrics_message", "model_message", "outcome_of", "weights_message"]

_CLASSES = 20


def message(event: str, data: Any, position: str | None = None) -> bytes:
    """Return a server-sent event of a type, its data as JSON, its id a position."""
    text = msgspec.json.encode(data).decode()
    return format_sse_event(event=event, data_str=text, id=position)


def model_message(name: str, live_model: LiveModel) -> bytes:
    """Return the model that a watched name points to."""
    position = str(live_model.position)
    data = live_feed.LiveModel(name, live_model.name, live_model.entry.uid, position)
    return message("model", data, position)


def metrics_message(live_model: LiveModel, events_per_s: float | None) -> bytes:
    """Return the account of a model and the rate of its latest events, if that was measured."""
    state, position = live_model.state, str(live_model.position)
    data = live_feed.LiveMetrics(
        **account(state, _CLASSES),
        position=position,
        at_ms=live_model.position.order.ms,
        accuracy=whole_accuracy(state),
        rolling_accuracy=rolling_accuracy(state),
        events_per_s=events_per_s,
        stale_s=max(0.0, live_model.freshness.age_s()),
        caught_up=live_model.status.caught_up,
    )
    return message("metrics", data, position)


def weights_message(weights: dict[str, Any], position: str) -> bytes:
    """Return weights at a position: of many classes the first ones, and how many there are."""
    classes = weights.get("classes")
    if isinstance(classes, dict) and len(classes) > _CLASSES:
        some = dict(itertools.islice(classes.items(), _CLASSES))
        weights = {**weights, "classes": some, "all_classes": len(classes)}
    return message("weights", {**weights, "position": position})


def outcome_of(
    state: ModelState, event: Event, outcome: hinged.Outcome, position: Position, number: int
) -> live_feed.LiveOutcome:
    """Return the outcome of an event, without its features; `number` counts in its log entry."""
    margin = None
    if isinstance(state.learner, hinged.BinaryLinearClassifier):
        margin = outcome.score if state.answers.target(event.y) else 0.0 - outcome.score
    return live_feed.LiveOutcome(
        id=event.id,
        y=event.y,  # type: ignore[arg-type]  # a label of the model, so no fraction
        w=event.w,
        y_pred=state.answers.label(outcome.y_pred),
        score=outcome.score,
        mistake=outcome.mistake,
        updated=outcome.updated,
        hinge_loss=outcome.hinge_loss,
        margin=margin,
        position=str(position),
        number=number,
        at_ms=position.order.ms,
    )
