"""Means: the classes of a learner by the mean of each feature, over a spread that they share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from hinged.kernel.pure.storage import Features, Numbers, put_all

if TYPE_CHECKING:
    from hinged.kernel.pure.classes import ClassWeights

__all__ = ["add_to_means", "mean_scores", "precisions"]

Label = TypeVar("Label")


def precisions(parts: Mapping[Label, ClassWeights], x: Numbers) -> Features:
    """Return 1 / variance of each feature of an event, within the classes."""
    seen = 1.0
    for part in parts.values():
        seen += part.intercept
    found: Features = {}
    for name in x:
        spread = 1.0
        for part in parts.values():
            spread += part.auxiliary.lookup(name, 0.0)
        found[name] = seen / spread if spread > 0.0 else 0.0
    return found


def mean_scores(parts: Mapping[Label, ClassWeights], x: Numbers) -> dict[Label, float]:
    """Return how near an event of finite numbers is to the means of each class.

    A score may be beyond the floats.
    """
    precision = precisions(parts, x)
    scores: dict[Label, float] = {}
    for label, part in parts.items():
        score, seen = 0.0, part.intercept + 1.0
        for name, value in x.items():
            mean = part.weights.lookup(name, 0.0) / seen
            score += mean * (value - 0.5 * mean) * precision[name]
        scores[label] = score
    return scores


def add_to_means(part: ClassWeights, x: Numbers, w: float) -> bool:
    """Count an event of weight `w` to its class, unless a number would not be finite."""
    before = part.intercept + 1.0
    after = before + w
    sums: Features = {}
    spreads: Features = {}
    for name, value in x.items():
        old = part.weights.lookup(name, 0.0)
        new = old + w * value
        off = w * (value - old / before) * (value - new / after)
        sums[name], spreads[name] = new, part.auxiliary.lookup(name, 0.0) + off
    if not put_all(((part.weights, sums), (part.auxiliary, spreads)), after):
        return False
    part.intercept += w
    return True
