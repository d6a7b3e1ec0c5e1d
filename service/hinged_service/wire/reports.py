"""Answers of the service for monitoring: bounds, recent events, overview, health."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from hinged_service.wire.responses import Label, about

__all__ = [
    "BoundShown",
    "CertificateShown",
    "Health",
    "HistoryPoint",
    "HistoryTurn",
    "ModelGlance",
    "ModelGlances",
    "ModelHistory",
    "RecentEvent",
]


class BoundShown(msgspec.Struct, frozen=True):
    """A bound on the updates, and the linear function u that gives it."""

    value: Annotated[float, about("The bound.")]
    norm: Annotated[float, about("Norm of u, its intercept included.")]
    intercept: Annotated[float, about("Intercept of u.")]
    loss: Annotated[
        float,
        about("Sum of max(0, 1 - margin) of u: of general over the updates, else over all events."),
    ]


class CertificateShown(msgspec.Struct, frozen=True):
    """The updates of a model in a window of its past, and the bounds of the theorem."""

    start: Annotated[str, about("The position before the window.")]
    end: Annotated[str, about("The position of its last entry.")]
    events: Annotated[int, about("Events of weight 1 learned in it.")]
    updates: Annotated[int, about("Those that moved the weights; the bounds limit them.")]
    mistakes: Annotated[int, about("Those whose label the learner predicted wrong.")]
    radius: Annotated[float, about("R: the largest norm of an event, its constant included.")]
    margin: Annotated[float, about("The learner's.")]
    learning_rate: Annotated[float, about("The learner's.")]
    start_norm: Annotated[float, about("Norm of the weights before the window.")]
    bounds: Annotated[
        dict[str, BoundShown],
        about(
            "general: from any weights, over the updates. From zero weights with margin 0 "
            "also, over all events: hinge = R² norm² + 2 loss; sharp, never above it; "
            "separable, if some u separates the events."
        ),
    ]
    holds: Annotated[bool, about("Whether updates are within every bound; always true.")]
    notes: Annotated[list[str], about("Why the window starts there; why a bound is missing.")]


class RecentEvent(msgspec.Struct, frozen=True):
    """A labelled event, and the model's answer to it now that it has learned from it."""

    position: Annotated[str, about("Its entry in the log.")]
    number: Annotated[int, about("Its number within the entry of the log.")]
    at_ms: Annotated[int, about("The time of its arrival, in milliseconds since 1970.")]
    id: Annotated[str | None, about("Its id, if it has one.")]
    x: Annotated[dict[str, Any], about("The features.")]
    y: Annotated[Label, about("The label.")]
    w: Annotated[float, about("The weight.")]
    y_pred: Annotated[Label | None, about("The label that the model predicts now.")]
    score: Annotated[float, about("Its score now.")]


class HistoryPoint(msgspec.Struct, frozen=True):
    """The account of a model after one of its events."""

    at_ms: Annotated[int, about("The time of its entry in the log, in milliseconds since 1970.")]
    events: Annotated[int, about("Events that counted until then.")]
    judged: Annotated[int, about("Events that count in accuracy until then.")]
    mistakes: Annotated[int, about("Mistakes until then.")]
    updates: Annotated[int, about("Changes of the weights until then.")]
    drifts: Annotated[int, about("Drifts found until then.")]
    labelled: Annotated[int, about("Late labels of predictions until then.")]
    accuracy: Annotated[
        float | None, about("1 - mistakes / judged; null before the first judged event.")
    ]
    rolling_accuracy: Annotated[
        float | None,
        about(
            "The first rolling accuracy of the spec. Without one: the accuracy of the judged "
            "events since the last point that is 200 of them back, or of all."
        ),
    ]
    log_loss: Annotated[float | None, about("The log loss until then, if the spec has it.")]
    events_per_s: Annotated[
        float | None, about("Events per second since the last point of another time.")
    ]
    mean_delay_s: Annotated[
        float | None, about("The mean delay of the late labels since the point before.")
    ]


class HistoryTurn(msgspec.Struct, frozen=True):
    """A drift that was found, or a command that was carried out."""

    at_ms: Annotated[int, about("The time of its entry in the log, in milliseconds since 1970.")]
    events: Annotated[int, about("Events of the model until then.")]
    kind: Annotated[str, about("drift, or the command: configure, freeze, reset, restore, ….")]
    text: Annotated[str, about("What was configured, as JSON, 100 characters at most.")]


class ModelHistory(msgspec.Struct, frozen=True):
    """The whole life of a model in at most 500 points."""

    position: Annotated[str, about("The last entry of the log that the model has learned.")]
    points: Annotated[
        tuple[HistoryPoint, ...],
        about(
            "The oldest first, with equal numbers of events in between. The last one is the "
            "present state. At 500 points every other one is left out."
        ),
    ]
    turns: Annotated[tuple[HistoryTurn, ...], about("The last 50 drifts and commands.")]


class ModelGlance(msgspec.Struct, frozen=True):
    """A model at a glance."""

    name: Annotated[str, about("The model.")]
    stream: Annotated[str, about("Its stream.")]
    learner: Annotated[str, about("The type of its learner.")]
    at_ms: Annotated[
        int | None, about("The time of the last entry that it learned, in milliseconds since 1970.")
    ]
    events: Annotated[int | None, about("Events that counted.")]
    judged: Annotated[int | None, about("Events that count in accuracy: 1 - mistakes / judged.")]
    mistakes: Annotated[int | None, about("Mistakes among the judged.")]
    rolling_accuracy: Annotated[float | None, about("As in HistoryPoint.")]
    updates: Annotated[int | None, about("Changes of the weights.")]
    metrics: Annotated[dict[str, Any] | None, about("Its progressive metrics by name.")]
    drifts: Annotated[int | None, about("Drifts that its detector found.")]
    drifts_at_ms: Annotated[tuple[int, ...], about("The times of the latest ones.")]
    frozen: Annotated[bool, about("Whether it only predicts.")]
    stale_s: Annotated[float | None, about("Seconds since the worker last read the log.")]
    problem: Annotated[str | None, about("Why this worker cannot serve it now.")]


class ModelGlances(msgspec.Struct, frozen=True):
    """A page of models at a glance."""

    total: Annotated[int, about("Number of models that match.")]
    models: Annotated[tuple[ModelGlance, ...], about("The first of them, in order of name.")]


class Health(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of the worker that answered."""

    status: Annotated[
        Literal["alive", "ready"], about("alive: the worker runs. ready: it can serve.")
    ]
    warnings: Annotated[
        tuple[str, ...],
        about("Risks to what Redis keeps, and a disk that fills up; none stops the service."),
    ] = ()
    kernel: Annotated[
        Literal["compiled", "pure"] | None,
        about("The inner loops of the learners: equal results, but compiled ones are faster."),
    ] = None
