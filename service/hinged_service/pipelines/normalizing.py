"""Scaling events to norm 1."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from hinged_service.pipelines.stage import Origins, Stage, same_names
from hinged_service.pipelines.values import Features, floats
from hinged_service.wire.strict import StrictModel

__all__ = ["NormalizerSpec"]


class NormalizerSpec(StrictModel):
    """Divide each event by its norm.

    As `river.preprocessing.Normalizer`, but the norm is summed exactly, in any
    order (River's comes from BLAS, whose sums differ between processors), and an
    event of zeros stays as it is.
    """

    type: Literal["Normalizer"]
    order: Literal[1, 2] = Field(2, description="Sum of absolute values, or Euclidean norm.")

    def build(self, max_features: int) -> Normalizer:
        """Return the stage."""
        return Normalizer(self.order)


class Normalizer(Stage):
    """Has no state."""

    def __init__(self, order: int) -> None:
        super().__init__()
        self._order = order

    def transform(self, x: Features) -> dict[str, float]:
        """Return `x` divided by its norm."""
        numbers = floats(x, "Normalizer")
        values = numbers.values()
        norm = math.fsum(map(abs, values)) if self._order == 1 else math.hypot(*values)
        if not norm:
            return dict(numbers)
        return {name: value / norm for name, value in numbers.items()}

    def origins(self, x: Features) -> Origins:
        """Return each feature as its own origin, though all have a part in the norm."""
        return same_names(x)
