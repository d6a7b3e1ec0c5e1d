"""The stored form of hinged's own learners: their parameters and their state."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Set
from typing import Any

import hinged

__all__ = ["COMPOSITE", "LEARNERS", "fits", "names", "parameters"]

COMPOSITE: dict[type, int] = {
    hinged.Curved: 2,
    hinged.Quadratic: 2,
    hinged.Hedge: 3,
    hinged.OneVsRest: 3,
    hinged.MulticlassQuadratic: 4,
    hinged.MulticlassHedge: 5,
    hinged.Calibrated: 6,
}
"""The learners made of others, which must be whole before these are: in which turn each is."""

LEARNERS: dict[str, type[hinged.LinearClassifier]] = {
    name: kind
    for name, kind in ((name, getattr(hinged, name)) for name in hinged.__all__)
    if inspect.isclass(kind)
    and issubclass(kind, hinged.LinearClassifier)
    and kind
    not in (
        hinged.BinaryLinearClassifier,
        hinged.LinearClassifier,
        hinged.MulticlassLinearClassifier,
    )
}
"""The learners that are stored, by name."""


_LATER = frozenset(
    [
        "curved",
        "forgetting",
        "initial_intercept",
        "initial_intercepts",
        "initial_weights",
        "label_at_zero",
        "project",
    ]
)
"""Parameters that learners stored before lack; they mean the defaults then."""


def fits(kind: type, stored: Set[str]) -> bool:
    """Return whether stored parameters are those of a class, of this version or one before."""
    return names(kind) - _LATER <= stored <= names(kind)


def names(kind: type) -> Set[str]:
    """Return the names of the parameters of a class of learners."""
    return dict.fromkeys(inspect.signature(kind).parameters).keys()


def parameters(learner: hinged.LinearClassifier) -> Mapping[str, Any]:
    """Return the constructor's arguments that make such a learner, as they stand now."""
    return {name: getattr(learner, name) for name in names(type(learner))}
