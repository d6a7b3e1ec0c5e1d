"""Classes: the weights of each class, and an ordinary event of a learner of several in one call."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeVar, get_args

from hinged.kernel.pure.steps import logistic_step
from hinged.kernel.pure.storage import Event, Features, Numbers, Storage, put_all

__all__ = [
    "CLASS_RULES",
    "ClassRule",
    "ClassWeights",
    "add_to_classes",
    "averaged_scores",
    "class_at_once",
    "class_rule",
    "class_scores",
    "finite_scores",
    "learn_class",
    "revived_class",
    "scores_at_once",
]

if TYPE_CHECKING:
    from hinged.accounting import Fields
    from hinged.events import Label as ClassLabel
    from hinged.multiclass import MulticlassClassifier

Label = TypeVar("Label", bound=Hashable)

ClassRule = Literal[
    "", "perceptron", "aggressive", "arow", "logistic", "averaged", "means", "squares", "pool"
]
"""How the classes of a learner are scored and move, if the compiled version knows: by
`averaged_scores`, `mean_scores`, as the learner of squares or a `MulticlassHedge`; the others by
`class_scores`."""
CLASS_RULES: tuple[ClassRule, ...] = get_args(ClassRule)


class ClassWeights:
    """The linear function of one class, and the other numbers of its rule."""

    __slots__ = ("auxiliary", "auxiliary_intercept", "intercept", "weights")

    weights: Storage
    intercept: float
    auxiliary: Storage
    auxiliary_intercept: float

    def __reduce__(self) -> tuple[object, ...]:
        return revived_class, (
            self.weights,
            self.auxiliary,
            self.intercept,
            self.auxiliary_intercept,
        )


def revived_class(
    weights: Storage, auxiliary: Storage, intercept: float, auxiliary_intercept: float
) -> ClassWeights:
    """Return a class's part of the version in use, compiled or not, from a pickle of either."""
    from hinged import kernel  # it imports this module

    part = kernel.ClassWeights()
    part.weights, part.auxiliary = weights, auxiliary
    part.intercept, part.auxiliary_intercept = intercept, auxiliary_intercept
    return part


def class_scores(
    parts: Mapping[Label, ClassWeights], x: Event, auxiliary: bool = False
) -> dict[Label, float]:
    """Return `w . x + b` by class, of the second vectors if `auxiliary`.

    It raises `TypeError` as `hinged.arithmetic.dot` does.
    """
    if auxiliary:
        return {y: p.auxiliary.dot(x) + p.auxiliary_intercept for y, p in parts.items()}
    return {y: p.weights.dot(x) + p.intercept for y, p in parts.items()}


def averaged_scores(
    parts: Mapping[Label, ClassWeights],
    x: Event,
    events: int,
    raw: Mapping[Label, float] | None = None,
) -> dict[Label, float]:
    """Return by class `w . x + b`, or its part of `raw`, less its lag: see `AveragedPerceptron`.

    It raises `TypeError` as `hinged.arithmetic.dot` does.
    """
    scores = class_scores(parts, x) if raw is None else raw
    sums = class_scores(parts, x, auxiliary=True)
    return {y: score - sums[y] / events for y, score in scores.items()}


def finite_scores(scores: Mapping[Label, float]) -> bool:
    """Return whether all values are finite."""
    return all(map(math.isfinite, scores.values()))


def class_rule(learner: object) -> int:
    """Return the number of the rule that the very class of a learner says it has."""
    return CLASS_RULES.index(vars(type(learner)).get("_CLASS_RULE", ""))


def class_at_once(learner: MulticlassClassifier, x: Event) -> ClassLabel | None:
    """Return the class of an ordinary event, or `None`."""
    return None


def scores_at_once(learner: MulticlassClassifier, x: Event) -> dict[ClassLabel, float] | None:
    """Return the scores of an ordinary event, or `None`."""
    return None


def learn_class(learner: MulticlassClassifier, x: Event, y: Hashable, w: float) -> Fields | None:
    """Let a learner of known scores learn an ordinary event, or change nothing: return `None`."""
    return None


def add_to_classes(
    parts: Sequence[ClassWeights],
    slopes: Sequence[float],
    x: Numbers,
    rate: float,
    constant: float,
) -> bool:
    """Take AdaGrad's step by a slope of each class, or none if a number would not be finite.

    Weights and intercepts are the first vectors and numbers of a class, their squares the second.
    """
    vectors: list[tuple[Storage, Features]] = []
    intercepts: list[tuple[ClassWeights, float, float]] = []
    for part, slope in zip(parts, slopes, strict=True):
        weight_of, square_of = part.weights.lookup, part.auxiliary.lookup
        weights: Features = {}
        squares: Features = {}
        for name, value in x.items():
            weights[name], squares[name] = logistic_step(
                rate, None, slope * float(value), weight_of(name, 0.0), square_of(name, 0.0)
            )
        vectors += (part.weights, weights), (part.auxiliary, squares)
        own = part.intercept, part.auxiliary_intercept
        intercepts.append((part, *logistic_step(rate, None, slope * constant, *own)))
    if not put_all(vectors, *(number for _, *moved in intercepts for number in moved)):
        return False
    for part, intercept, square in intercepts:
        part.intercept, part.auxiliary_intercept = intercept, square
    return True
