"""Views of the state of a model: explanations, accuracy and weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import hinged
from hinged_service.model.predictor import label_text
from hinged_service.model.state import ModelState
from hinged_service.river_support.learners import RiverBinary, RiverMulticlass
from hinged_service.wire.events import Value

__all__ = ["explain_event", "feature_count", "recent_accuracy", "shown_weights", "whole_accuracy"]

_SEVERAL = (hinged.MulticlassLinearClassifier, hinged.OneVsRest)
_RIVER = (RiverBinary, RiverMulticlass)


def explain_event(
    state: ModelState, x: Mapping[str, Value], label: str | None
) -> dict[str, Any] | None:
    """Return what each feature adds to the score; `None` if the score is no such sum.

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
    if not isinstance(learner, (*_SEVERAL, hinged.BinaryLinearClassifier, hinged.Hedge)):
        return None
    z = state.made_of(x)
    y, score, scores = answers.decide(z)
    if state.multiclass and label is not None:
        y = {label_text(c): c for c in scores}[label]
        score = scores[y]
    parts = learner.explain_one(z, y) if isinstance(learner, _SEVERAL) else learner.explain_one(z)
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


def recent_accuracy(state: ModelState) -> float:
    """Return the share of right labels: by the first rolling accuracy of the spec, or ever."""
    report = {} if state.metrics is None else state.metrics.report()
    recent = [v for name, v in report.items() if name.startswith("rolling_accuracy")]
    if recent and isinstance(recent[0], float):
        return recent[0]
    return whole_accuracy(state) or 0.0


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


def shown_weights(state: ModelState, label: str | None) -> dict[str, Any] | None:
    """Return copies of the weights that predict, as the service shows them.

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
    learner = state.learner
    if isinstance(learner, hinged.Hedge):
        experts = zip(learner.experts, learner.trust, strict=True)
        return {"experts": [{**_linear(e), "trust": trust} for e, trust in experts]}
    if isinstance(learner, hinged.BinaryLinearClassifier):
        return _linear(learner)
    if isinstance(learner, _RIVER):
        return learner.weights()
    if not isinstance(learner, _SEVERAL):
        return None
    weights, intercepts = learner.weights, learner.intercepts
    return {
        "classes": {
            label_text(y): {"weights": dict(weights[y]), "intercept": intercepts[y]}
            for y in learner.classes
            if label in (None, label_text(y))
        }
    }


def _linear(learner: hinged.BinaryLinearClassifier) -> dict[str, Any]:
    return {"weights": dict(learner.weights), "intercept": 0.0 - learner.threshold}
