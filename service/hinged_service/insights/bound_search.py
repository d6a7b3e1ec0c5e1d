"""The search for linear functions that bound the updates of a window: the lower, the better."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import hinged
from hinged import bounds

__all__ = ["Bound", "Covered", "Row", "general_bound", "linear_of", "norm", "zero_bounds"]

_CELLS = 5_000_000
_VISITS = 300_000
_TOLERANCE = 1e-6

Covered = hinged.Perceptron | hinged.AveragedPerceptron | hinged.PocketPerceptron
"""The learners that the theorems are about."""

Row = tuple[Mapping[Any, float], bool]
Linear = tuple[Mapping[Any, float], float]


class Bound(NamedTuple):
    """A bound on the updates of a window.

    Parameters
    ----------
    value
        The bound.
    norm, intercept
        Norm of the linear function u that gives it, its intercept included, and that
        intercept.
    loss
        Sum of the hinge losses of u over the events that the bound is about.

    """

    value: float
    norm: float
    intercept: float
    loss: float


def norm(weights: Mapping[Any, float], constant: float) -> float:
    """Return the Euclidean norm of weights, or features, and a constant."""
    return math.hypot(*weights.values(), constant)


def linear_of(learner: hinged.BinaryLinearClassifier) -> Linear:
    """Return the weights and the intercept that learn, be they or not those that predict."""
    return dict(learner.get_state()["vectors"]["weights"].view()), learner.intercept


def general_bound(start: Covered, updates: list[Row], now: Linear, deadline_s: float) -> Bound:
    """Return the least bound found from any start, over the events that were updates."""
    weights, intercept = linear_of(start)
    fit = start.fit_intercept
    gamma = start.margin if isinstance(start, hinged.Perceptron) else 0.0
    rate = cast("float", start.learning_rate)
    constant = 1.0 if fit else 0.0
    radius = max((norm(x, constant) for x, _ in updates), default=0.0)
    q = rate * (radius * radius + 2.0 * gamma / rate)
    tried: list[Linear] = [({}, 0.0)]
    for u, b in _candidates(updates, now, fit, deadline_s):
        tried.append((u, b))
        if q > 0.0:
            names = {**u, **weights}
            shifted = {n: u.get(n, 0.0) + weights.get(n, 0.0) / q for n in names}
            tried.append((shifted, b + intercept / q))
    values = [bounds.general(start, updates, u, b) for u, b in tried]
    value = min(values)
    return _bound(value, tried[values.index(value)], updates)


def zero_bounds(rows: list[Row], now: Linear, fit: bool, deadline_s: float) -> dict[str, Bound]:
    """Return the bounds that hold from zero weights, over all events."""
    found: dict[str, Bound] = {}
    for u, b in _candidates(rows, now, fit, deadline_s):
        for name, rule in (("hinge", bounds.hinge), ("sharp", bounds.sharp)):
            value = rule(rows, u, b, fit_intercept=fit)
            if name not in found or value < found[name].value:
                found[name] = _bound(value, (u, b), rows)
        value = bounds.separable(rows, u, b, fit_intercept=fit)
        if math.isfinite(value) and ("separable" not in found or value < found["separable"].value):
            found["separable"] = _bound(value, (u, b), rows)
    return found


def _candidates(rows: list[Row], now: Linear, fit: bool, deadline_s: float) -> list[Linear]:
    """Return linear functions whose bound may be low: of today's weights, and the best of all."""
    multiple = bounds.best_multiple(rows, now[0], now[1], fit_intercept=fit)
    found: list[Linear] = [(multiple.weights, multiple.intercept)]
    names = len({name for x, _ in rows for name in x}) + 1
    if rows and len(rows) * names <= _CELLS and time.monotonic() < deadline_s:
        passes = max(1, _VISITS // len(rows))
        best = bounds.minimiser(
            rows,
            fit_intercept=fit,
            tolerance=_TOLERANCE,
            max_passes=passes,
            enough=lambda: time.monotonic() > deadline_s,
        )
        found.append((best.weights, best.intercept))
    return found


def _bound(value: float, u: Linear, rows: list[Row]) -> Bound:
    weights, intercept = u

    def loss(x: Mapping[Any, float], y: bool) -> float:
        score = intercept + math.fsum(weights.get(n, 0.0) * v for n, v in x.items())
        return max(0.0, 1.0 - (score if y else -score))

    total = math.fsum(loss(x, y) for x, y in rows)
    return Bound(value, norm(weights, intercept), intercept, total)
