"""Scaling events to norm 1."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

from pydantic import Field

from hinged_service.pipelines.stage import Stage, StepSpec
from hinged_service.pipelines.values import Features, floats

__all__ = ["NormalizerSpec"]


class Normalizer(Stage):
    """A stage without state."""

    _spec: NormalizerSpec

    added = ()

    def transform(self, x: Features) -> dict[str, float]:
        """Return `x` divided by its norm."""
        numbers = floats(x, "Normalizer")
        values = numbers.values()
        norm = math.fsum(map(abs, values)) if self._spec.order == 1 else math.hypot(*values)
        if not norm:
            return dict(numbers)
        return {name: value / norm for name, value in numbers.items()}


class NormalizerSpec(StepSpec):
    """Divide each event by its norm.

    As `river.preprocessing.Normalizer`, but the norm is summed exactly, in any
    order (River's comes from BLAS, whose sums differ between processors), and an
    event of zeros stays as it is.
    """

    stage: ClassVar = Normalizer
    type: Literal["Normalizer"]
    order: Literal[1, 2] = Field(2, description="Sum of absolute values, or Euclidean norm.")
