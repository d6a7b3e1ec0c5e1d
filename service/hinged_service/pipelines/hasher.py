"""The hashing trick: any features into a fixed number of buckets."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

import hinged
from hinged_service.pipelines.stage import Origins, Stage, StepSpec
from hinged_service.pipelines.values import Features, clipped, refuse_missing
from hinged_service.river_support.lazy import preprocessing

__all__ = ["FeatureHasherSpec"]


class FeatureHasher(Stage):
    """A stage without state."""

    def __init__(self, spec: FeatureHasherSpec, max_features: int) -> None:
        super().__init__(spec, max_features)
        self._hasher: Any = preprocessing.FeatureHasher(
            spec.n_features, spec.seed, spec.alternate_sign
        )

    def transform(self, x: Features) -> dict[str, float]:
        """Return the buckets that `x` falls into, in the order it does."""
        refuse_missing(x, "FeatureHasher")
        try:
            buckets = self._hasher.transform_one(x if type(x) is dict else dict(x))
        except UnicodeEncodeError:
            raise hinged.InvalidEvent("x", "has text that is not Unicode") from None
        return clipped({str(bucket): float(value) for bucket, value in buckets.items()})

    def origins(self, x: Features) -> Origins:
        """Return all features of `x` that fall into each bucket."""
        found: dict[str, list[str]] = {}
        for name, value in x.items():
            (bucket,) = self.transform({name: value})
            found.setdefault(bucket, []).append(name)
        return {bucket: tuple(names) for bucket, names in found.items()}


class FeatureHasherSpec(StepSpec):
    """Add each feature up in one of `n_features` buckets: numbers by name, text by name and value.

    `river.preprocessing.FeatureHasher` itself (MurmurHash3), its buckets named `"0"`,
    `"1"`, ...; true counts as 1 and false as 0. Features collide by chance, the more the
    fewer buckets there are; `"a": "x"` always falls where a number named `a=x` does.
    """

    stage: ClassVar = FeatureHasher
    type: Literal["FeatureHasher"]
    n_features: int = Field(1_048_576, ge=1, le=1_048_576, description="The number of buckets.")
    seed: int = Field(0, ge=0, lt=2**32, description="Seed of the hash.")
    alternate_sign: bool = Field(
        True, description="Negate half of the features, so that collisions cancel out."
    )
