"""River's own classifiers as learners of a model: their specs, and how a fold drives them."""

from __future__ import annotations

from hinged_service.river_support.learners.binary import RiverBinary
from hinged_service.river_support.learners.multiclass import RiverMulticlass, RiverVotes
from hinged_service.river_support.learners.specs import RiverLearner

__all__ = ["RiverBinary", "RiverLearner", "RiverMulticlass", "RiverVotes"]
