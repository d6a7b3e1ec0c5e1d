"""What the calls return: the answers of the service as immutable, typed values."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import msgspec

__all__ = [
    "Drift",
    "Duplicate",
    "ExpertWeights",
    "Explanation",
    "Label",
    "Learned",
    "LinearWeights",
    "ModelInfo",
    "ModelListed",
    "Outcome",
    "Prediction",
    "Weights",
]

Label = bool | int | str


class Prediction(msgspec.Struct, frozen=True):
    """A prediction.

    Parameters
    ----------
    y
        The predicted label; `None` while a multiclass model knows no class.
    score
        The score that decided it.
    proba
        Per label, by its text (`"true"`, `"3"`, `"spam"`); uncalibrated.
    position
        The place in the log up to which the model had learned; to be given as
        `at_least` to whatever must know as much.
    stale_s
        The model's age in seconds while Redis does not answer, else `None`.

    """

    y: Label | None
    score: float
    proba: dict[str, float]
    position: str
    stale_s: float | None = None


class Learned(msgspec.Struct, frozen=True):
    """What an event did, predicted and scored before it was learned.

    Parameters
    ----------
    y_pred
        The label predicted before learning.
    score
        The score that decided it, before learning.
    mistake
        Whether the predicted label was wrong.
    updated
        Whether the weights moved.
    hinge_loss
        `max(0, 1 - margin)` before learning.
    position
        The place in the log after which the event is in the model.

    """

    duplicate: ClassVar[Literal[False]] = False

    y_pred: Label | None
    score: float
    mistake: bool
    updated: bool
    hinge_loss: float
    position: str


class Duplicate(msgspec.Struct, frozen=True):
    """The event had counted before, be it in an attempt whose answer was lost.

    Parameters
    ----------
    position
        A place in the log at which the event is in the model.

    """

    duplicate: ClassVar[Literal[True]] = True

    position: str


Outcome = Learned | Duplicate


class ModelListed(msgspec.Struct, frozen=True):
    """A model as the list shows it.

    Parameters
    ----------
    name
        The model's name.
    spec
        Its spec, defaults included.
    base
        The position at which it starts.

    """

    name: str
    spec: dict[str, Any]
    base: str


class Drift(msgspec.Struct, frozen=True):
    """A drift that a model's detector found.

    Parameters
    ----------
    entry
        Id of the log entry; its first part is the time in ms.
    number
        Number of the event within the entry.
    events
        Events of the model until then.

    """

    entry: str
    number: int
    events: int


class ModelInfo(ModelListed, frozen=True):
    """A model, its position and its account.

    Parameters
    ----------
    position
        The place in the log up to which it has learned.
    events
        Events learned, each once.
    mistakes
        Judged events whose predicted label was wrong.
    updates
        Weight changes.
    hinge_loss
        Sum of `max(0, 1 - margin)`, each before its update.
    perceptron_loss
        Sum of `max(0, -margin)`, likewise.
    overflows
        Updates left out because a weight would be infinite, or their score overflowed.
    rejected
        Events of the stream that this model cannot take.
    radius
        The largest norm of an event, its constant included.
    ignored_features
        Features of updates left out because the model was full.
    features
        Feature names that have a weight.
    classes
        Binary: the labels, the negative one first. Multiclass: those seen.
    snapshot
        Entry id of the snapshot in Redis.
    progress
        The share of the stream's log that it has learned; below 1 it is catching up.
    excluded
        Events of the stream that its spec leaves out.
    frozen
        Whether it only predicts.
    configured
        Parameters changed since it was created.
    metrics
        Its progressive metrics by name.
    drifts
        Drifts that its detector found.
    detections
        The latest of them, oldest first.
    stale_s
        The model's age in seconds while Redis does not answer, else `None`.
    judged
        Events that count in accuracy: of weight above 0, and with a prediction.
    accuracy
        `1 - mistakes / judged`; `None` without one.

    """

    position: str
    events: int
    mistakes: int
    updates: int
    hinge_loss: float
    perceptron_loss: float
    overflows: int
    rejected: int
    radius: float
    ignored_features: int
    features: int
    classes: tuple[Label, ...]
    snapshot: str
    progress: float = 1.0
    excluded: int = 0
    frozen: bool = False
    configured: dict[str, Any] = {}
    metrics: dict[str, Any] = {}
    drifts: int = 0
    detections: tuple[Drift, ...] = ()
    stale_s: float | None = None
    judged: int = 0
    accuracy: float | None = None


class LinearWeights(msgspec.Struct, frozen=True):
    """One linear function.

    Parameters
    ----------
    weights
        By feature name, largest magnitude first.
    intercept
        b in `score = w . x + b`.

    """

    weights: dict[str, float]
    intercept: float


class ExpertWeights(LinearWeights, frozen=True):
    """One expert of a hedge.

    Parameters
    ----------
    trust
        Its share of the vote.

    """

    trust: float


class Weights(msgspec.Struct, frozen=True):
    """The weights that predict; what a model has not is `None`.

    Parameters
    ----------
    position
        The place in the log up to which the model had learned.
    weights, intercept
        Of a binary model.
    classes
        Of a multiclass model: by the label's text.
    experts
        Of a hedge, in order.

    """

    position: str
    weights: dict[str, float] | None = None
    intercept: float | None = None
    classes: dict[str, LinearWeights] | None = None
    experts: tuple[ExpertWeights, ...] | None = None


class Explanation(msgspec.Struct, frozen=True):
    """What each feature adds to a score.

    Parameters
    ----------
    y
        The label whose score is explained; `None` while no class is known.
    score
        The sum of the intercept and all contributions.
    intercept
        What is there without features.
    contributions
        By the features that the learner sees, largest magnitude first.
    features
        The same by the features of the event.
    position
        The place in the log up to which the model had learned.

    """

    y: Label | None
    score: float
    intercept: float
    contributions: dict[str, float]
    features: dict[str, float]
    position: str
