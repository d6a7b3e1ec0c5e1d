"""Initial weights in a spec: random, or by name."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

import hinged
from hinged_service.river_support.learners.parameters import RiverSpec
from hinged_service.wire.faults import MAX_NAME

__all__ = ["Finite", "InitialWeights", "RandomWeightsSpec"]

Finite = Annotated[float, Field(allow_inf_nan=False)]


class RandomWeightsSpec(RiverSpec):
    """Random initial weights, uniform between -scale and scale, from the seed and the name."""

    type: Literal["random"]
    seed: int = Field(0, ge=-(2**63), lt=2**63, description="Seed of the weights.")
    scale: Annotated[float, Field(gt=0, le=1e100)] = Field(1.0, description="Their bound.")

    def river(self) -> hinged.RandomWeights:
        """Return the weights by name."""
        return hinged.RandomWeights(self.seed, self.scale)


_FeatureName = Annotated[str, Field(max_length=MAX_NAME)]
_NamedWeights = Annotated[dict[_FeatureName, Finite], Field(max_length=1_000)]


def _kind(value: object) -> str:
    """Return which of the two a value is meant to be; a feature may be named `type` too."""
    named = isinstance(value, dict) and isinstance(value.get("type"), str)
    return "random" if named or isinstance(value, RandomWeightsSpec) else "given"


InitialWeights = Annotated[
    Annotated[RandomWeightsSpec, Tag("random")] | Annotated[_NamedWeights, Tag("given")],
    Discriminator(_kind),
]
