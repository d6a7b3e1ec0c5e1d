"""Learning rules of River classifiers, with equal results on every processor.

River takes norms with `numpy.linalg.norm`, whose sum comes from a BLAS that
picks its code by the processor: workers with and without AVX-512 would differ in
the last digit, and then in everything. So the two rules that need a norm are
written out here with `math.fsum`, and so are the wrappers, which call them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from river import base

from hinged_service.river_support.lazy import utils
from hinged_service.river_support.learners.interface import Label

if TYPE_CHECKING:
    from river.ensemble import BaggingClassifier
    from river.linear_model import ALMAClassifier, PAClassifier
    from river.multiclass import OneVsOneClassifier, OneVsRestClassifier

__all__ = ["teach"]


def teach(model: base.Classifier, x: dict[Any, Any], y: Label, w: float | None) -> None:
    """Let a classifier learn one event; the weight is `None` for a classifier that has none."""
    kind = type(model)
    rule = _RULES.get((kind.__module__, kind.__name__))
    if rule is not None:
        rule(model, x, y, w)
    elif w is None:
        model.learn_one(x, y)
    else:
        model.learn_one(x, y, w=w)  # type: ignore[call-arg]


def _passive_aggressive(model: PAClassifier, x: dict[Any, Any], y: bool, w: float | None) -> None:
    loss = model.loss(y, utils.math.dot(x, model.weights) + model.intercept)
    norm2 = math.fsum(value * value for value in x.values())
    if model.mode == 2:
        tau = loss / (norm2 + 0.5 / model.C)
    else:
        tau = min(model.C, loss / norm2) if norm2 > 0.0 else 0.0
    step = tau if y else -tau
    for name, value in x.items():
        model.weights[name] += step * value
    if model.learn_intercept:
        model.intercept += step


def _large_margin(model: ALMAClassifier, x: dict[Any, Any], y: bool, w: float | None) -> None:
    root = math.sqrt(model.k)
    sign = 1.0 if y else -1.0
    if sign * utils.math.dot(x, model.w) >= (1.0 - model.alpha) * model.B / root:
        return
    step = sign * model.C / root
    for name, value in x.items():
        model.w[name] += step * value
    norm = math.sqrt(math.fsum(value * value for value in model.w.values()))
    for name in x:
        model.w[name] /= max(1.0, norm)
    model.k += 1


def _one_vs_rest(model: OneVsRestClassifier, x: dict[Any, Any], y: Label, w: float | None) -> None:
    if y not in model.classifiers:
        model.classifiers[y] = model.classifier.clone()
    for label, classifier in model.classifiers.items():
        teach(classifier, x, y == label, w)


def _one_vs_one(model: OneVsOneClassifier, x: dict[Any, Any], y: Label, w: float | None) -> None:
    model.classes.add(y)
    for c in model.classes - {y}:
        pair = (c, y) if c < y else (y, c)
        teach(model.classifiers[pair], x, c < y, w)


def _bagging(model: BaggingClassifier, x: dict[Any, Any], y: Label, w: float | None) -> None:
    for classifier in model.models:
        for _ in range(utils.random.poisson(1, vars(model)["_rng"])):
            teach(classifier, x, y, w)


_RULES: dict[tuple[str, str], Callable[..., None]] = {
    ("river.linear_model.pa", "PAClassifier"): _passive_aggressive,
    ("river.linear_model.alma", "ALMAClassifier"): _large_margin,
    ("river.multiclass.ovr", "OneVsRestClassifier"): _one_vs_rest,
    ("river.multiclass.ovo", "OneVsOneClassifier"): _one_vs_one,
    ("river.ensemble.bagging", "BaggingClassifier"): _bagging,
}
"""Rules by the names of classes, none of which is imported to be compared with."""
