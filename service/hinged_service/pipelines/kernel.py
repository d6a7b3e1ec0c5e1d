"""Random cosine features."""

from __future__ import annotations

import hashlib
import math
import struct
from array import array
from statistics import NormalDist
from typing import ClassVar, Literal

from pydantic import Field

import hinged
from hinged_service.pipelines.stage import Origins, Stage, StepSpec
from hinged_service.pipelines.values import MAX_WIDTH, Features, floats

__all__ = ["RBFSamplerSpec"]


_REMEMBERED = 1_000


class Frequencies(dict[str, "array[float]"]):
    """The frequencies of each name, a pure function; those of a few names are remembered.

    They take 80 kB and the names at most, and are no part of any state.
    """

    def __init__(self, spec: RBFSamplerSpec) -> None:
        super().__init__()
        self._spec = spec
        self._room = min(_REMEMBERED, MAX_WIDTH // spec.n_components)

    def __missing__(self, name: str) -> array[float]:
        if len(self) >= self._room:
            self.clear()
        spec, normal = self._spec, NormalDist(0.0, 1.0).inv_cdf
        scale = math.sqrt(2.0 * spec.gamma)
        chances = _chances(f"weights {spec.seed} {name}", spec.n_components)
        found = self[name] = array("d", (scale * normal(chance) for chance in chances))
        return found

    def __reduce__(self) -> tuple[type[Frequencies], tuple[RBFSamplerSpec]]:
        return type(self), (self._spec,)


class RBFSampler(Stage):
    """A stage without state."""

    numbers_suffice = False
    _spec: RBFSamplerSpec

    def __init__(self, spec: RBFSamplerSpec, max_features: int) -> None:
        super().__init__(spec, max_features)
        n = spec.n_components
        self._phases = array("d", (2.0 * math.pi * c for c in _chances(f"offsets {spec.seed}", n)))
        self._endings = [f"_{j}" for j in range(n)]
        self._frequencies = Frequencies(spec)

    def transform(self, x: Features) -> dict[str, float]:
        n, phases, endings = self._spec.n_components, self._phases, self._endings
        numbers = floats(x, "RBFSampler")
        if len(numbers) * n > MAX_WIDTH:
            raise hinged.InvalidEvent(
                "x",
                f"gives {len(numbers) * n} features at RBFSampler, more than {MAX_WIDTH}: put "
                "Select before it, or use fewer components",
            )
        cos = math.cos
        return {
            name + ending: cos(value * frequency + phase)
            for name, value in numbers.items()
            for ending, frequency, phase in zip(
                endings, self._frequencies[name], phases, strict=True
            )
        }

    def origins(self, x: Features) -> Origins:
        """Return the feature that each cosine is of."""
        self.transform(x)
        return {f"{name}_{j}": (name,) for name in x for j in range(self._spec.n_components)}


def _chances(text: str, n: int) -> list[float]:
    """Return n numbers between 0 and 1, both excluded, that are a hash of `text`."""
    digest = hashlib.shake_256(text.encode("utf-8", "surrogatepass")).digest(8 * n)
    return [((part >> 12) + 0.5) / 2**52 for part in struct.unpack(f">{n}Q", digest)]


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
    seed: int = Field(0, ge=0, lt=2**32, description="Seed of the cosines.")
