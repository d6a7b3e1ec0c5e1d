"""Verbs about events: predict, learn, label, explain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from hinged_service.cli.arguments import AtLeast, ClassName, Name, Proba
from hinged_service.cli.command import Session
from hinged_service.cli.inputs import label_of, read_events
from hinged_service.cli.output import Facts, Output, Part, Table, accuracy, label_text, staleness
from hinged_service.cli.progress import counted
from hinged_service.client import (
    ClientError,
    Duplicate,
    Early,
    Event,
    Explanation,
    Learned,
    Outcome,
    Prediction,
)

__all__ = ["explain", "label", "learn", "predict"]


_ONE_ID = "names one event, but there are several."

Features = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="FEATURE=VALUE",
        help='The features. A value that is JSON is read as JSON (3, true, null, "3"), '
        "any other as text.",
    ),
]
EventJson = Annotated[
    str | None,
    typer.Option(
        "--event",
        metavar="JSON",
        help='The event as JSON: {"x": {"free": 1}} or the features alone, or an array of events. '
        "Without it and without features, events are read from standard input, as one JSON "
        "document or one event per line.",
    ),
]


def predict(
    session: Session,
    name: Name,
    features: Features = None,
    event: EventJson = None,
    event_id: Annotated[
        str | None, typer.Option("--id", help="Id of the event, whose label comes later.")
    ] = None,
    at_least: AtLeast = None,
    proba: Proba = None,
) -> None:
    """Predict the labels of events. This changes no model.

    Only the features of an event are sent: an id or a label beside them is left out. With --id the
    service keeps one event until `hinged label` sends its label.

    hinged predict mail free=1 money=1

    hinged predict mail < events.ndjson
    """
    events, many = read_events(features, event)
    if many and event_id is not None:
        raise typer.BadParameter(_ONE_ID, param_hint="--id")
    xs = [event["x"] for event in events]
    client = session.client
    if many:
        results = client.predict_many(name, xs, at_least=at_least, proba=proba)
        found = list(counted("predicting", results, len(xs)))
        session.show(found, _predictions(found, _calibrated(session, name)))
    else:
        one = client.predict(name, xs[0], event_id, at_least=at_least, proba=proba)
        session.show(one, _prediction(one, _calibrated(session, name)))


def learn(
    session: Session,
    name: Name,
    features: Features = None,
    event: EventJson = None,
    label: Annotated[
        str | None, typer.Option(help="The label, if the JSON of the event has no y.")
    ] = None,
    event_id: Annotated[
        str | None,
        typer.Option(
            "--id",
            help="Id of the event, if its JSON has none. An id counts once; a repetition changes "
            "nothing.",
        ),
    ] = None,
    weight: Annotated[
        float | None,
        typer.Option(min=0.0, help="Sample weight, if the JSON of the event has no w. Default: 1."),
    ] = None,
) -> None:
    """Learn labelled events. Each is predicted and scored first.

    hinged learn mail free=1 money=1 --label spam --id m1

    hinged learn mail < labelled.ndjson
    """
    events, many = read_events(features, event)
    if many and event_id is not None:
        raise typer.BadParameter(_ONE_ID, param_hint="--id")
    added: dict[str, Any] = {}
    if event_id is not None:
        added["id"] = event_id
    if weight is not None:
        added["w"] = weight
    events = [{n: v for n, v in event.items() if v is not None} for event in events]
    if label is None and any("y" not in event for event in events):
        raise typer.BadParameter("An event has no label: give --label, or y beside x.")
    if label is not None:
        model = session.client.model(name)
        added["y"] = label_of(label, model.spec, model.classes)
    labelled = [Event(**{**added, **event}) for event in events]
    if many:
        _learn_many(session, name, labelled)
    else:
        outcome = session.client.learn(name, *labelled[0])
        session.show(outcome, *_outcome(outcome, labelled[0].y, labelled[0].w))


def label(
    session: Session,
    name: Name,
    event_id: Annotated[
        str, typer.Argument(metavar="ID", help="The id with which it was predicted.")
    ],
    label: Annotated[str, typer.Argument(metavar="LABEL", help="Its label.")],
    weight: Annotated[float, typer.Option(min=0.0, help="Sample weight.")] = 1.0,
) -> None:
    """Send the label of an earlier prediction, which is learned with it.

    hinged predict mail free=1 money=1 --id m7

    hinged label mail m7 spam
    """
    model = session.client.model(name)
    y = label_of(label, model.spec, model.classes)
    outcome = session.client.learn_label(name, event_id, y, weight)
    if isinstance(outcome, Early):
        session.show(outcome, "No prediction has that id yet: the label waits for it.")
    else:
        session.show(outcome, *_outcome(outcome, y, weight))


def explain(
    session: Session,
    name: Name,
    features: Features = None,
    event: EventJson = None,
    label: ClassName = None,
    at_least: AtLeast = None,
) -> None:
    """Explain a prediction: the contribution of each feature to the score.

    hinged explain mail free=1 money=1
    """
    events, _ = read_events(features, event)
    if len(events) != 1:
        raise typer.BadParameter("Explain one event at a time.")
    found = session.client.explain(name, events[0]["x"], label=label, at_least=at_least)
    session.show(found, *_explanation(found))


def _learn_many(session: Session, name: str, events: list[Event]) -> None:
    outcomes: list[Outcome] = []
    try:
        results = session.client.learn_many(name, events)
        outcomes.extend(counted("learning", results, len(events)))
    except ClientError:
        typer.echo(
            f"{len(outcomes)} of {len(events)} events were learned. Those with ids can be sent "
            "again: they count once.",
            err=True,
        )
        raise
    session.show(outcomes, _outcomes(outcomes, events))


def _calibrated(session: Session, name: str) -> bool:
    """Return whether the probabilities that a table shows are calibrated."""
    return session.output is not Output.TABLE or session.client.model(name).calibrated is not False


def _prediction(found: Prediction, calibrated: bool) -> Facts:
    mark = "" if calibrated else ", uncalibrated"
    return Facts(
        {
            "label": label_text(found.y),
            "score": found.score,
            **{f"P({label}){mark}": p for label, p in found.proba.items()},
            "stale": staleness(found.stale_s),
        }
    )


def _predictions(found: Sequence[Prediction], calibrated: bool) -> Table:
    return Table(
        ("event", "label", "score", "probability" if calibrated else "uncalibrated probability"),
        [
            (i, label_text(p.y), p.score, p.proba.get(label_text(p.y)))
            for i, p in enumerate(found, start=1)
        ],
        "There are no events.",
    )


def _outcome(outcome: Outcome, y: object, weight: float) -> list[Part]:
    if isinstance(outcome, Duplicate):
        return ["This id counted before: nothing was learned."]
    verdict = "wrong" if outcome.mistake else "right" if _judged(outcome, weight) else "not judged"
    moved = "The weights changed." if outcome.updated else "The weights did not change."
    return [
        f"Predicted {label_text(outcome.y_pred)}, was {label_text(y)}: {verdict}. {moved}",
        Facts({"score": outcome.score, "hinge loss": outcome.hinge_loss}),
    ]


def _judged(outcome: Learned, weight: float) -> bool:
    """Return whether an event counts in accuracy."""
    return outcome.y_pred is not None and weight > 0


def _outcomes(outcomes: Sequence[Outcome], events: Sequence[Event]) -> Facts:
    learned = [outcome for outcome in outcomes if isinstance(outcome, Learned)]
    mistakes = sum(outcome.mistake for outcome in learned)
    judged = sum(
        isinstance(outcome, Learned) and _judged(outcome, event.w)
        for outcome, event in zip(outcomes, events, strict=True)
    )
    return Facts(
        {
            "events": len(outcomes),
            "learned": len(learned),
            "counted before": len(outcomes) - len(learned) or None,
            "accuracy": accuracy(judged, mistakes),
            "mistakes": mistakes,
            "updates": sum(outcome.updated for outcome in learned),
        }
    )


def _explanation(found: Explanation) -> list[Part]:
    parts = sorted(found.contributions.items(), key=lambda part: -abs(part[1]))
    rows = [*parts, ("(intercept)", found.intercept), ("(score)", found.score)]
    heading = f"The score for {label_text(found.y)} is the sum of these:"
    return [heading, Table(("feature", "adds"), rows)]
