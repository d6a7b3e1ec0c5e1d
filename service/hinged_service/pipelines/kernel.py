"""Random cosine features."""

from __future__ import annotations

import hashlib
import math
from functools import lru_cache
from statistics import NormalDist
from typing import Literal

from pydantic import Field

import hinged
from hinged_service.learners import Strict
from hinged_service.pipelines.stage import Origins, Stage
from hinged_service.pipelines.values import MAX_WIDTH, Features, floats

__all__ = ["RBFSamplerSpec"]


class RBFSamplerSpec(Strict):
    """Turn each feature into `n_components` random cosines, named like `age_0`.

    The formula of `river.feature_extraction.RBFSampler`, but the random numbers are a
    hash of seed and feature name. River draws them when it first sees a name, also in a
    prediction, so that its features depend on the order of events. An event that would
    give more than 10,000 features is refused.
    """

    type: Literal["RBFSampler"]
    gamma: float = Field(1.0, gt=0, le=1e6, description="The kernel is exp(-gamma distance^2).")
    n_components: int = Field(100, ge=1, le=1_000, description="Cosines per feature.")
    seed: int = Field(0, ge=0, lt=2**32, description="Another seed, other cosines.")

    def build(self, max_features: int) -> RBFSampler:
        """Return the stage."""
        return RBFSampler(self)


class RBFSampler(Stage):
    """Has no state."""

    numbers_suffice = False

    def __init__(self, spec: RBFSamplerSpec) -> None:
        super().__init__()
        self._spec = spec
        chances = _chances(f"offsets {spec.seed}", spec.n_components)
        self._offsets = [2.0 * math.pi * chance for chance in chances]

    def transform(self, x: Features) -> dict[str, float]:
        """Return the cosines."""
        spec, offsets = self._spec, self._offsets
        numbers = floats(x, "RBFSampler")
        if len(numbers) * spec.n_components > MAX_WIDTH:
            raise hinged.InvalidEvent(
                "x",
                f"gives {len(numbers) * spec.n_components} features at RBFSampler, more than "
                f"{MAX_WIDTH}: put Select before it, or use fewer components",
            )
        return {
            f"{name}_{j}": math.cos(value * weight + offsets[j])
            for name, value in numbers.items()
            for j, weight in enumerate(_weights(spec.seed, name, spec.gamma, spec.n_components))
        }

    def origins(self, x: Features) -> Origins:
        """Return the feature that each cosine is of."""
        self.transform(x)
        return {f"{name}_{j}": (name,) for name in x for j in range(self._spec.n_components)}


@lru_cache(maxsize=1_024)
def _weights(seed: int, name: str, gamma: float, n: int) -> tuple[float, ...]:
    normal = NormalDist(0.0, 1.0).inv_cdf
    scale = math.sqrt(2.0 * gamma)
    return tuple(scale * normal(chance) for chance in _chances(f"weights {seed} {name}", n))


def _chances(text: str, n: int) -> list[float]:
    """Return n numbers between 0 and 1, both excluded, that are a hash of `text`."""
    digest = hashlib.shake_256(text.encode("utf-8", "surrogatepass")).digest(8 * n)
    parts = (int.from_bytes(digest[i : i + 8], "big") for i in range(0, 8 * n, 8))
    return [((part >> 12) + 0.5) / 2**52 for part in parts]
