"""Learners of a model: their interface, and River's classifiers behind it, with their specs."""

from __future__ import annotations

from hinged_service.river_support.learners.binary import RiverBinary
from hinged_service.river_support.learners.interface import (
    Features,
    Label,
    Learner,
    MulticlassLearner,
)
from hinged_service.river_support.learners.multiclass import RiverMulticlass
from hinged_service.river_support.learners.specs import RiverLearner

__all__ = [
    "Features",
    "Label",
    "Learner",
    "MulticlassLearner",
    "RiverBinary",
    "RiverLearner",
    "RiverMulticlass",
]
