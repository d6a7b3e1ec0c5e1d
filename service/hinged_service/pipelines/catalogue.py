"""The transformers that a spec may name, and no others."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from hinged_service.pipelines.auto_scaler import AutoScalerSpec
from hinged_service.pipelines.categories import OneHotEncoderSpec
from hinged_service.pipelines.chain import Chain, Union
from hinged_service.pipelines.fourier import FourierFeaturesSpec
from hinged_service.pipelines.hasher import FeatureHasherSpec
from hinged_service.pipelines.imputers import StatImputerSpec
from hinged_service.pipelines.kernel import RBFSamplerSpec
from hinged_service.pipelines.normalizer import NormalizerSpec
from hinged_service.pipelines.polynomial import PolynomialExtenderSpec
from hinged_service.pipelines.robust_scaler import RobustScalerSpec
from hinged_service.pipelines.scalers import MaxAbsScalerSpec, MinMaxScalerSpec, StandardScalerSpec
from hinged_service.pipelines.selection import DiscardSpec, SelectSpec
from hinged_service.pipelines.stage import StepSpec
from hinged_service.pipelines.text import BagOfWordsSpec, TFIDFSpec

__all__ = ["Step", "Steps", "UnionSpec"]

MAX_STAGES = 64
MAX_DEPTH = 4


class UnionSpec(StepSpec):
    """Give the same event to several branches, and merge their features.

    River's `+`, `river.compose.TransformerUnion`: of a feature that several
    branches give, the first one's value counts. BagOfWords and TFIDF have a `prefix`, and
    OneHotEncoder has a `separator`, to keep their names apart.
    """

    type: Literal["Union"]
    branches: tuple[Annotated[tuple[Step, ...], Field(min_length=1, max_length=32)], ...] = Field(
        min_length=1, max_length=32, description="Lists of transformers, each run in turn."
    )

    def build(self, max_features: int) -> Union:
        """Return the fresh stage."""
        return Union([Chain([step.build(max_features) for step in b]) for b in self.branches])


Step = Annotated[
    AutoScalerSpec
    | StandardScalerSpec
    | MinMaxScalerSpec
    | MaxAbsScalerSpec
    | RobustScalerSpec
    | NormalizerSpec
    | OneHotEncoderSpec
    | FeatureHasherSpec
    | StatImputerSpec
    | BagOfWordsSpec
    | TFIDFSpec
    | PolynomialExtenderSpec
    | RBFSamplerSpec
    | FourierFeaturesSpec
    | SelectSpec
    | DiscardSpec
    | UnionSpec,
    Field(discriminator="type"),
]

UnionSpec.model_rebuild()


def _bounded(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    stages, depth = _size(steps)
    if stages > MAX_STAGES:
        raise ValueError(f"a pipeline has {MAX_STAGES} transformers at most, this one {stages}")
    if depth > MAX_DEPTH:
        raise ValueError(f"unions are nested {MAX_DEPTH - 1} deep at most")
    return steps


def _size(steps: tuple[Step, ...]) -> tuple[int, int]:
    sizes = [_size(b) for step in steps if isinstance(step, UnionSpec) for b in step.branches]
    deepest = max((depth for _, depth in sizes), default=0)
    return len(steps) + sum(stages for stages, _ in sizes), deepest + 1


Steps = Annotated[tuple[Step, ...], Field(max_length=32), AfterValidator(_bounded)]
"""The pipeline of a spec: transformers, each run on what the one before it gives."""
