"""Views of the state of a model: explanations, accuracy and weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

import hinged
from hinged.multiclass import MulticlassClassifier
from hinged_service.evaluation.metrics import MOST_CLASSES
from hinged_service.model.predictor import label_text
from hinged_service.model.state import ModelState
from hinged_service.river_support.learners import RiverBinary, RiverMulticlass
from hinged_service.wire.copies import copied
from hinged_service.wire.events import Value

__all__ = [
    "ROLLING",
    "Account",
    "account",
    "explain_event",
    "feature_count",
    "recent_accuracy",
    "rolling_accuracy",
    "weights_of",
    "whole_accuracy",
]

ROLLING = 200
"""Judged events of the rolling accuracy of a model without such a metric, at least."""
_RIVER = (RiverBinary, RiverMulticlass)
_OF_CLASSES = (hinged.MulticlassLinearClassifier, hinged.OneVsRest, hinged.MulticlassQuadratic)
"""The learners that have weights for every class."""


def explain_event(
    state: ModelState, x: Mapping[str, Value], label: str | None
) -> dict[str, Any] | None:
    """Return the part of each feature in the score; `None` if the score is no sum of parts.

    Parameters
    ----------
    state
        The state of the model.
    x
        The features.
    label
        The text of a class of a multiclass model; the predicted one if left out.

    Returns
    -------
    `"y"`, `"score"`, `"intercept"`, `"contributions"` by the names that the learner
    sees, and `"features"`: the same by the names of the event, what comes from several
    of them shared equally, what comes from none (a bias) under its own name. Both with
    the intercept sum to the score.

    Raises
    ------
    hinged.InvalidEvent
        Naming the feature that the pipeline does not take, or `x` if there is too much of it.
    KeyError
        There is no such class.

    """
    learner, answers, pipeline = state.learner, state.answers, state.pipeline
    if not isinstance(learner, hinged.LinearClassifier):
        return None
    z = state.made_of(x)
    y, score, scores = answers.decide(z)
    if state.multiclass and label is not None:
        y = {label_text(c): c for c in scores}[label]
        score = scores[y]
    if isinstance(learner, (MulticlassClassifier, hinged.Auto)):
        parts = learner.explain_one(z, y)
    else:
        parts = learner.explain_one(z)
    intercept = parts.pop(hinged.INTERCEPT, 0.0)
    origins = {} if pipeline is None else pipeline.origins(x)
    features: dict[Any, float] = {}
    for name, value in parts.items():
        sources = origins.get(str(name)) or (name,)  # a constant comes from no feature
        for source in sources:
            features[source] = features.get(source, 0.0) + value / len(sources)
    return {
        "y": answers.label(y),
        "score": score,
        "intercept": intercept,
        "contributions": parts,
        "features": features,
    }


class Account(TypedDict):
    """The counts of a model, as its documents and its live feed have them."""

    events: int
    judged: int
    mistakes: int
    updates: int
    hinge_loss: float
    overflows: int
    rejected: int
    drifts: int
    frozen: bool
    metrics: dict[str, Any]


def account(state: ModelState, most_classes: int = MOST_CLASSES) -> Account:
    """Return the account of a model; its confusion matrices have `most_classes` at most."""
    learned = state.learner.accounting
    return Account(
        events=state.events,
        judged=state.judged,
        mistakes=state.mistakes,
        updates=learned.updates,
        hinge_loss=learned.hinge_loss,
        overflows=learned.overflows,
        rejected=state.rejected,
        drifts=state.detected,
        frozen=state.frozen,
        metrics={} if state.metrics is None else state.metrics.report(most_classes),
    )


def recent_accuracy(state: ModelState) -> float:
    """Return the share of right labels: by the first rolling accuracy of the spec, or ever."""
    found = None if state.metrics is None else state.metrics.first("accuracy", rolling=True)
    return (whole_accuracy(state) or 0.0) if found is None else found


def rolling_accuracy(state: ModelState) -> float | None:
    """Return the first rolling accuracy of the spec; without one that of the newest judged events.

    Those are the ones since the last point of the history that is 200 of them back, or all.
    """
    found = None if state.metrics is None else state.metrics.first("accuracy", rolling=True)
    if found is not None:
        return found
    judged, mistakes = state.history.before(state.judged - ROLLING)
    count = state.judged - judged
    return 1.0 - (state.mistakes - mistakes) / count if count else None


def whole_accuracy(state: ModelState) -> float | None:
    """Return the share of right labels among the judged events, `None` without one."""
    return (state.judged - state.mistakes) / state.judged if state.judged else None


def feature_count(state: ModelState) -> int:
    """Return how many feature names have a weight."""
    if isinstance(state.learner, _RIVER):
        return state.learner.feature_count()
    weights = [v for name, v in state.vectors().items() if "weights" in name]
    if len(weights) == 1:
        return len(weights[0])
    return len({name for vector in weights for name in vector.view()})


def weights_of(state: ModelState, label: str | None) -> dict[str, Any] | None:
    """Return copies of the weights that predict, as the service returns them.

    Of a multiclass hedge they are those of the expert that is trusted most.

    Parameters
    ----------
    state
        The state of the model.
    label
        The text of a class of a multiclass model, to see that one only.

    Returns
    -------
    `None` if the learner has no weights.

    """
    learner: object = state.learner
    if isinstance(learner, hinged.Auto):
        learner = learner.pool
    if isinstance(learner, hinged.Hedge):
        experts = zip(learner.experts, learner.trust, strict=True)
        return {"experts": [{**_linear(e), "trust": trust} for e, trust in experts]}
    if isinstance(learner, hinged.MulticlassHedge):
        learner = learner.experts[learner.trust.index(max(learner.trust))]
    if isinstance(learner, hinged.BinaryLinearClassifier):
        return _linear(learner)
    if isinstance(learner, _RIVER):
        return learner.weights()
    if not isinstance(learner, _OF_CLASSES):
        return None
    weights, intercepts = learner.weights, learner.intercepts
    return {
        "classes": {
            label_text(y): {"weights": copied(weights[y]), "intercept": intercepts[y]}
            for y in learner.classes
            if label in (None, label_text(y))
        }
    }


def _linear(learner: hinged.BinaryLinearClassifier) -> dict[str, Any]:
    return {"weights": copied(learner.weights), "intercept": 0.0 - learner.threshold}
