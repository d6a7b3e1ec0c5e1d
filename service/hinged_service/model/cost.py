"""Estimated cost of an event of a spec, and its factors.

The estimate is for an event of 30 numbers, or of a text of 200 words where the pipeline takes
text, once the model knows as many classes as it may. Its constants are times as measured on one
core; they decide which specs are refused and where work is done, never a result.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from hinged.hedge import default_pool
from hinged.multiclass_hedge import default_multiclass_pool
from hinged_service.evaluation.drift import KSWINSpec
from hinged_service.evaluation.specs import full_spec
from hinged_service.model.learner_specs import (
    AutoSpec,
    CurvedSpec,
    HedgeSpec,
    MulticlassHedgeSpec,
    MulticlassQuadraticSpec,
    QuadraticSpec,
)
from hinged_service.model.spec import ModelSpec
from hinged_service.pipelines.auto_scaler import AutoScalerSpec
from hinged_service.pipelines.catalogue import Steps, UnionSpec
from hinged_service.pipelines.fourier import FourierFeaturesSpec
from hinged_service.pipelines.hasher import FeatureHasherSpec
from hinged_service.pipelines.kernel import RBFSamplerSpec
from hinged_service.pipelines.polynomial import PolynomialExtenderSpec
from hinged_service.pipelines.selection import SelectSpec
from hinged_service.pipelines.text import BagOfWordsSpec, TFIDFSpec
from hinged_service.pipelines.values import MAX_WIDTH
from hinged_service.river_support.custom import CustomSpec
from hinged_service.river_support.learners.specs import (
    BaggingClassifierSpec,
    HoeffdingTreeClassifierSpec,
    OneVsOneClassifierSpec,
    OneVsRestClassifierSpec,
)
from hinged_service.wire.strict_model import StrictModel

__all__ = ["EVENT_BYTES", "Cost", "Factor", "Limits", "cost_of", "limits_of"]

EVENT_BYTES = 600
"""Size of the event of the estimate, as JSON."""
_NUMBERS = 30
_WORDS = 200
_EVENT_MS = 5_000.0
_UNKNOWN_MS = 1.0
_MOST_MADE = 50_000
_MOST_TERMS = 5_000_000
_EXPERTS = len(default_pool())
_EXPERT_RULES = _EXPERTS + 1  # one of them has twice the features
_MULTICLASS_EXPERTS = len(default_multiclass_pool())
_MULTICLASS_RULES = _MULTICLASS_EXPERTS + 1  # likewise

_RULE_US = 0.5  # per feature: an own rule predicts and learns
_STAGE_US = 0.5  # per feature that a stage gives
_PRODUCT_US = 1.5
_TERM_US = 2.0
_SCALED_US = 2.0  # per feature
_COSINE_US = 0.5  # per feature and cosine
_CURVED_US = 0.1  # the same of a curved learner
_CLASS_US = 1.0  # per class
_CELL_US = 0.1  # per class and feature
_RIVER_US = 1.2  # per feature: a linear classifier of River
_ONE_OF_MANY_US = 0.4  # per feature: each of the classifiers of several classes
_RIVER_CELL_US = 1.0
_TREE_US = 10.0  # per feature
_METRIC_US = 0.3  # per class and metric
_WINDOW_US = 0.5  # per event of KSWIN's window
_CURVED = CurvedSpec(type="curved")


class Factor(NamedTuple):
    """A part of a spec that multiplies the work of an event."""

    field: str
    times: float
    reason: str


class Cost(NamedTuple):
    """Estimate of the time that one event takes, and its causes, the largest first."""

    ms: float
    factors: list[Factor]


def cost_of(spec: ModelSpec) -> Cost:
    """Return the estimated cost of an event of a model; that of a custom one is a guess."""
    if isinstance(spec.learner, CustomSpec):
        return Cost(_UNKNOWN_MS, [])
    factors: list[Factor] = []
    width, us = _pipeline(spec.steps, _NUMBERS, "pipeline", factors)
    us += _learner(_listed(spec), width, "learner", factors)
    classes = len(spec.labels) if isinstance(spec.labels, tuple) else spec.max_classes or 2
    if spec.metrics:
        us += _METRIC_US * classes * len(spec.metrics)
        metrics = [full_spec(metric) for metric in spec.metrics]
        factors.append(Factor("metrics", len(metrics), f"are {len(metrics)} to count in"))
    if spec.drift is not None and isinstance(spec.drift.detector, KSWINSpec):
        size = spec.drift.detector.window_size
        us += _WINDOW_US * size
        factors.append(
            Factor("drift.detector.window_size", size / 100, f"has {size} events looked through")
        )
    slow = sorted((f for f in factors if f.times > 1.0), key=lambda f: -f.times)
    return Cost(us / 1000, slow)


class Limits(NamedTuple):
    """Bounds on one event before the pipeline: features made of it, and characters of its texts.

    Within them an event takes some seconds at most, by the estimate.
    """

    features: int
    characters: int | None


def limits_of(spec: ModelSpec) -> Limits:
    """Return the bounds on an event of a model; they follow from the spec alone."""
    each_word = _terms_per_word(spec.pipeline)
    characters = _MOST_TERMS // each_word if each_word else None
    if isinstance(spec.learner, CustomSpec):
        return Limits(_MOST_MADE, characters)
    learner = _listed(spec)
    fixed = _learner(learner, 0, "", [])
    each = _STAGE_US + (_learner(learner, _MOST_MADE, "", []) - fixed) / _MOST_MADE
    made = int((_EVENT_MS * 1000 - fixed) / each)
    return Limits(max(_NUMBERS, min(made, _MOST_MADE)), characters)


def _listed(spec: ModelSpec) -> StrictModel:
    """Return the learner, of no more classes than the labels that the spec lists, if it does."""
    if isinstance(spec.labels, tuple) and hasattr(spec.learner, "max_classes"):
        return spec.learner.model_copy(update={"max_classes": len(spec.labels)})
    return spec.learner


def _terms_per_word(steps: Steps) -> int:
    """Return how many terms the steps make of a word at most."""
    count = 0
    for step in steps:
        if isinstance(step, UnionSpec):
            count += sum(map(_terms_per_word, step.branches))
        elif isinstance(step, (BagOfWordsSpec, TFIDFSpec)):
            count += step.ngram_range[1] - step.ngram_range[0] + 1
    return count


def _pipeline(steps: Steps, width: int, at: str, factors: list[Factor]) -> tuple[int, float]:
    """Return how many features the steps give of an event of `width`, and their time."""
    us = 0.0
    for i, step in enumerate(steps):
        here = f"{at}[{i}]"
        if isinstance(step, UnionSpec):
            found = [
                _pipeline(branch, width, f"{here}.branches[{k}]", factors)
                for k, branch in enumerate(step.branches)
            ]
            width = sum(made for made, _ in found)
            us += sum(time for _, time in found)
            continue
        made, step_us, field = _stage(step, width)
        if made > width:
            factors.append(
                Factor(f"{here}.{field}", made / width, f"makes {made} features of {width}")
            )
        width = made
        us += step_us
    return width, us


def _stage(step: object, width: int) -> tuple[int, float, str]:
    """Return how many features a stage gives, its time, and the field that decides."""
    made, each_us, own_us, field = width, _STAGE_US, 0.0, ""
    if isinstance(step, PolynomialExtenderSpec):
        again = not step.interaction_only
        made = sum(math.comb(width + again * (k - 1), k) for k in range(1, step.degree + 1))
        made, each_us, field = min(made, MAX_WIDTH), _PRODUCT_US, "degree"
    elif isinstance(step, RBFSamplerSpec):
        made, field = min(width * step.n_components, MAX_WIDTH), "n_components"
    elif isinstance(step, FourierFeaturesSpec):
        own_us = _COSINE_US * width * step.n_components
        made, field = step.n_components, "n_components"
    elif isinstance(step, (BagOfWordsSpec, TFIDFSpec)):
        least, most = step.ngram_range
        made, each_us, field = _WORDS * (most - least + 1), _TERM_US, "ngram_range"
    elif isinstance(step, AutoScalerSpec):
        each_us = _SCALED_US
    elif isinstance(step, FeatureHasherSpec):
        made = min(width, step.n_features)
    elif isinstance(step, SelectSpec):
        made = min(width, len(step.keys))
    made = max(1, made)
    return made, own_us + each_us * made, field


def _learner(learner: object, width: int, at: str, factors: list[Factor]) -> float:
    """Return the time of a learner of that path in the spec, for an event of `width` features."""
    classes: int = getattr(learner, "max_classes", 0)
    if classes:
        factors.append(Factor(f"{at}.max_classes", classes, f"allows {classes} classes"))
    if isinstance(learner, BaggingClassifierSpec):
        count = learner.n_models
        factors.append(Factor(f"{at}.n_models", count, f"makes {count} members"))
        return count * _learner(learner.model, width, f"{at}.model", factors)
    if isinstance(learner, HoeffdingTreeClassifierSpec):
        return _TREE_US * width + _RIVER_CELL_US * width * classes
    if isinstance(learner, OneVsRestClassifierSpec):
        return (_ONE_OF_MANY_US * width + _CLASS_US) * classes
    if isinstance(learner, OneVsOneClassifierSpec):
        return (_ONE_OF_MANY_US * width + _CLASS_US) * classes * (classes - 1) / 2
    if type(learner).__module__ == HedgeSpec.__module__:
        return _own_learner(learner, width, at, factors)
    return _RIVER_CELL_US * width * classes if classes else _RIVER_US * width


def _own_learner(learner: object, width: int, at: str, factors: list[Factor]) -> float:
    """Return the time of a learner of the library, as `_learner` does."""
    classes: int = getattr(learner, "max_classes", 0)
    rule_us = _CLASS_US * classes + (_CELL_US * classes or _RULE_US) * width
    if isinstance(learner, CurvedSpec):
        count = learner.n_components
        factors.append(Factor(f"{at}.n_components", count / 10, f"makes {count} cosines"))
        cosines_us = _CURVED_US * min(width, learner.max_width) * count
        return cosines_us + _own_learner(learner.learner, count, at, factors)
    if isinstance(learner, QuadraticSpec):
        return _own_learner(learner.learner, 2 * width, at, factors)
    if isinstance(learner, MulticlassQuadraticSpec):
        return _own_learner(learner.rule, 2 * width, at, [])
    if isinstance(learner, (HedgeSpec, MulticlassHedgeSpec)):
        of_many = isinstance(learner, MulticlassHedgeSpec)
        count = len(learner.models or ()) or (_MULTICLASS_EXPERTS if of_many else _EXPERTS)
        factors.append(Factor(f"{at}.models", count, f"are {count} experts"))
        experts = learner.models or ()
        us = sum(_own_learner(one, width, at, []) for one in experts) or rule_us * (
            _MULTICLASS_RULES if of_many else _EXPERT_RULES
        )
        if isinstance(learner, HedgeSpec) and learner.curved:
            us += 2 * _own_learner(_CURVED, width, at, [])
        return us
    if isinstance(learner, AutoSpec):
        return (_SCALED_US + _EXPERT_RULES * _RULE_US) * width + _MULTICLASS_RULES * rule_us
    return rule_us
