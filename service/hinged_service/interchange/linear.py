"""The linear form of a model: all that another program needs in order to predict like it."""

from __future__ import annotations

from dataclasses import dataclass

import hinged
from hinged.lifted import Lifted
from hinged.temperature import LIMIT
from hinged_service.model.predictor import Label
from hinged_service.model.spec import ModelSpec
from hinged_service.model.state import ModelState
from hinged_service.pipelines.stage import NOTHING, Scaling

__all__ = ["IDENTITY", "LinearModel", "NotExportable", "linear_model"]

IDENTITY = Scaling()
_ELSE = "The formats json and river take every model."


class NotExportable(Exception):
    """A model that has no such form; the message states why, and the format to use instead."""


@dataclass(frozen=True)
class LinearModel:
    """Scores that are sums over features, each scaled by itself; an absent feature adds nothing.

    Attributes
    ----------
    name
        The name of the model.
    labels
        Binary: the negative and the positive one. Multiclass: in order of the scores; of equal
        scores the first wins.
    names
        The features, sorted.
    weights, intercepts
        A row of weights and an intercept for each score: one if binary, that of the positive label.
    stages
        For each stage of the pipeline the scaling of each feature.
    multiclass
        Whether each label has a score.
    label_at_zero
        Whether the score 0 means the positive label.
    temperature
        The factor and the limit of scores that calibrate the probabilities, if any do: binary
        `scale * score` within the limit, multiclass `scale * (score - highest)`, at least
        the limit's negative.

    """

    name: str
    labels: tuple[Label, ...]
    names: tuple[str, ...]
    weights: tuple[tuple[float, ...], ...]
    intercepts: tuple[float, ...]
    stages: tuple[tuple[Scaling, ...], ...]
    multiclass: bool
    label_at_zero: bool
    temperature: tuple[float, float] | None


def linear_model(name: str, spec: ModelSpec, state: ModelState) -> LinearModel:
    """Return the linear form of a model.

    Raises
    ------
    NotExportable
        Its learner is not linear, a stage is no scaler, or it knows too few classes.

    """
    learner: object = state.learner
    rule = learner.learner if isinstance(learner, hinged.OneVsRest) else learner
    if isinstance(getattr(rule, "initial_weights", None), hinged.RandomWeights):
        raise NotExportable("Every name that was never learned has a random weight. " + _ELSE)
    if isinstance(rule, (Lifted, hinged.MulticlassDiscriminant)):
        raise NotExportable(_not_linear(spec))
    if isinstance(learner, hinged.BinaryLinearClassifier):
        rows = [dict(learner.weights)]
        intercepts = [0.0 - learner.threshold]
        labels = state.answers.classes()
        at_zero = learner.label_at_zero
    elif isinstance(learner, (hinged.MulticlassLinearClassifier, hinged.OneVsRest)):
        labels = list(learner.classes)
        if len(labels) < 2:
            raise NotExportable(f"The model knows {len(labels)} classes; it takes two at least.")
        rows = [dict(learner.weights[y]) for y in labels]
        intercepts = [learner.intercepts[y] for y in labels]
        at_zero = False
    else:
        raise NotExportable(_not_linear(spec))
    names = sorted({n for row in rows for n, weight in row.items() if weight})
    stages = _stages(spec, state, names)
    kept = [i for i in range(len(names)) if not stages or stages[-1][i] != NOTHING]
    temperature = None if state.temperature is None else (state.temperature.scale, LIMIT)
    return LinearModel(
        name,
        tuple(labels),
        tuple(names[i] for i in kept),
        tuple(tuple(row.get(names[i], 0.0) for i in kept) for row in rows),
        tuple(intercepts),
        tuple(tuple(stage[i] for i in kept) for stage in stages),
        state.multiclass,
        at_zero,
        temperature,
    )


def _stages(spec: ModelSpec, state: ModelState, names: list[str]) -> list[list[Scaling]]:
    """Return the scalings of each stage that changes anything."""
    if state.pipeline is None:
        return []
    for number, (step, records) in enumerate(
        zip(spec.steps, state.pipeline.scalings(""), strict=True), start=1
    ):
        if records is None:
            raise NotExportable(
                f"The stage {number} of the pipeline, {step.type}, does not scale numbers. {_ELSE}"
            )
    found = [state.pipeline.scalings(name) for name in names]
    stages = [[one or IDENTITY for one in stage] for stage in zip(*found, strict=True)]
    return [stage for stage in stages if any(one != IDENTITY for one in stage)]


def _not_linear(spec: ModelSpec) -> str:
    kind = spec.learner.type
    if kind in ("auto", "hedge", "multiclass_hedge"):
        return (
            f"The learner {kind} pools several experts, so its score is not a linear sum. Let one "
            "linear learner learn the same events (hinged replay NAME NEW --learner logistic_sgd) "
            f"and export that. {_ELSE}"
        )
    return f"The learner {kind} is not one of the linear learners. {_ELSE}"
