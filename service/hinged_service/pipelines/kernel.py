"""Random cosine features."""

from __future__ import annotations

import hashlib
import math
from functools import lru_cache
from statistics import NormalDist
from typing import ClassVar, Literal

from pydantic import Field

import hinged
from hinged_service.pipelines.stage import Origins, Stage, StepSpec
from hinged_service.pipelines.values import MAX_WIDTH, Features, floats

__all__ = ["RBFSamplerSpec"]


class RBFSampler(Stage):
    """Has no state."""

    numbers_suffice = False
    _spec: RBFSamplerSpec

    def transform(self, x: Features) -> dict[str, float]:
        seed, gamma, n = self._spec.seed, self._spec.gamma, self._spec.n_components
        numbers = floats(x, "RBFSampler")
        if len(numbers) * n > MAX_WIDTH:
            raise hinged.InvalidEvent(
                "x",
                f"gives {len(numbers) * n} features at RBFSampler, more than {MAX_WIDTH}: put "
                "Select before it, or use fewer components",
            )
        cos = math.cos
        return {
            given: cos(value * weight + offset)
            for name, value in numbers.items()
            for given, weight, offset in _cosines(seed, name, gamma, n)
        }

    def origins(self, x: Features) -> Origins:
        """Return the feature that each cosine is of."""
        self.transform(x)
        return {f"{name}_{j}": (name,) for name in x for j in range(self._spec.n_components)}


@lru_cache(maxsize=1_024)  # a memory of what a pure function gives, no part of any model
def _cosines(seed: int, name: str, gamma: float, n: int) -> tuple[tuple[str, float, float], ...]:
    """Return name, frequency and phase of each cosine of a feature."""
    normal = NormalDist(0.0, 1.0).inv_cdf
    scale = math.sqrt(2.0 * gamma)
    chances = zip(
        _chances(f"weights {seed} {name}", n), _chances(f"offsets {seed}", n), strict=True
    )
    return tuple(
        (f"{name}_{j}", scale * normal(weight), 2.0 * math.pi * offset)
        for j, (weight, offset) in enumerate(chances)
    )


def _chances(text: str, n: int) -> list[float]:
    """Return n numbers between 0 and 1, both excluded, that are a hash of `text`."""
    digest = hashlib.shake_256(text.encode("utf-8", "surrogatepass")).digest(8 * n)
    parts = (int.from_bytes(digest[i : i + 8], "big") for i in range(0, 8 * n, 8))
    return [((part >> 12) + 0.5) / 2**52 for part in parts]


class RBFSamplerSpec(StepSpec):
    """Turn each feature into `n_components` random cosines, named like `age_0`.

    Cosine j of a feature of value v is cos(w v + b), w normal with variance 2 gamma and b
    even between 0 and 2 pi; b is the same for cosine j of all features. The products of the
    cosines of two events x and z, summed up and divided by n_components / 2, are about

        exp(-gamma (x_1 - z_1)^2) + exp(-gamma (x_2 - z_2)^2) + ...

    over the features that both events have: a sum of kernels of one dimension, not the
    Gaussian kernel exp(-gamma |x - z|^2) of the whole event, which is their product. So a
    linear learner behind it finds any curve in each feature by itself, but nothing that
    lies in two features together, such as XOR.

    The formula of `river.feature_extraction.RBFSampler`, but the random numbers are a
    hash of seed and feature name. River draws them when it first sees a name, also in a
    prediction, so that its features depend on the order of events. An event that would
    give more than 10,000 features is refused.
    """

    stage: ClassVar = RBFSampler
    type: Literal["RBFSampler"]
    gamma: float = Field(
        1.0, gt=0, le=1e6, description="The kernel of one feature is exp(-gamma difference^2)."
    )
    n_components: int = Field(100, ge=1, le=1_000, description="Cosines per feature.")
    seed: int = Field(0, ge=0, lt=2**32, description="Another seed, other cosines.")
