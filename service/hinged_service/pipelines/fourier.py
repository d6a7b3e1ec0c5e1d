"""Random cosines of the whole event."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

import hinged
from hinged_service.pipelines.selection import Name
from hinged_service.pipelines.stage import Origins, Stage, StepSpec
from hinged_service.pipelines.state_checks import count
from hinged_service.pipelines.values import MAX_WIDTH, Features, Numbers, floats

__all__ = ["FourierFeaturesSpec"]

MAX_PRODUCTS = 10 * MAX_WIDTH
"""The most products of features and components of one event."""


class FourierFeatures(Stage):
    """`hinged.FourierFeatures`, whose state is the width of the widest event."""

    learns = True
    numbers_suffice = False
    _spec: FourierFeaturesSpec

    def __init__(self, spec: FourierFeaturesSpec, max_features: int) -> None:
        super().__init__(spec, max_features)
        self._cosines = hinged.FourierFeatures(spec.n_components, spec.bend, spec.seed, spec.prefix)

    def transform(self, x: Features) -> dict[Any, float]:
        return self._cosines.transform_one(self._narrow(x))

    def learn_transform(self, x: Features) -> dict[Any, float]:
        numbers = self._narrow(x)
        self._cosines.learn_one(numbers)
        return self._cosines.transform_one(numbers)

    def _narrow(self, x: Features) -> Numbers:
        """Return the numbers of an event that is not too wide, or raise `InvalidEvent`."""
        numbers = floats(x, "FourierFeatures")
        if len(numbers) * self._spec.n_components > MAX_PRODUCTS:
            raise hinged.InvalidEvent(
                "x",
                f"has {len(numbers)} features at FourierFeatures, which is {MAX_PRODUCTS} at most "
                "times the components: put Select before it, or use fewer components",
            )
        return numbers

    def origins(self, x: Features) -> Origins:
        """Return all features for each cosine."""
        return dict.fromkeys(self._cosines.names, tuple(x))

    def get_state(self) -> int:
        """Return the most features that a learned event had."""
        return self._cosines.widest

    def set_state(self, data: Any) -> None:
        """Restore the state that `get_state` returned."""
        self._cosines.widest = count(data, "the width of FourierFeatures")


class FourierFeaturesSpec(StepSpec):
    """Replace the features by `n_components` random cosines of the whole event: `cos_0` and so on.

    Cosine j of an event x is sqrt(2 / n_components) cos(w . x + b), w normal with variance 2
    gamma for each feature and b even between 0 and 2 pi. The products of the cosines of two
    events x and z sum up to about exp(-gamma |x - z|^2), the Gaussian kernel of the whole
    event. So a linear learner behind it learns curves in several features together, such as
    XOR; RBFSampler learns curves in each feature by itself.

    gamma is `bend` divided by the most features other than 0 that any learned event had. The
    features should be scaled: put AutoScaler before, or use `"scale": "auto"`. For few
    and dense features: an event of more than 100,000 / `n_components` is refused. A feature that
    is absent counts as 0. Explanations share a cosine equally between all features.

    The random numbers are a hash of seed and feature name. `hinged.FourierFeatures` in a process.
    """

    stage: ClassVar = FourierFeatures
    type: Literal["FourierFeatures"]
    n_components: int = Field(100, ge=1, le=1_000, description="Cosines.")
    bend: float = Field(
        2.0, gt=0, le=1e6, description="Curvature: gamma times the number of features."
    )
    seed: int = Field(0, ge=0, lt=2**32, description="Seed of the cosines.")
    prefix: Name = Field("cos", description="The first part of the cosines' names.")
