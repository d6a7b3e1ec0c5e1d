"""Keeping and dropping features by name."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from hinged_service.pipelines.stage import NOTHING, Scaling, Stage, StepSpec
from hinged_service.pipelines.values import Features, Value

__all__ = ["DiscardSpec", "Name", "SelectSpec", "Separator"]

Name = Annotated[str, Field(max_length=256)]
Separator = Annotated[str, Field(min_length=1, max_length=16)]
"""The text between the parts of a name that a stage makes."""
Keys = Annotated[tuple[Name, ...], Field(max_length=10_000)]


class Select(Stage):
    """A stage without state."""

    gives_numbers = False
    added = ()
    _spec: SelectSpec

    def transform(self, x: Features) -> dict[str, Value]:
        return {name: x[name] for name in self._spec.keys if name in x}

    def scaling(self, name: str) -> Scaling:
        return Scaling() if name in self._spec.keys else NOTHING


class Discard(Stage):
    """A stage without state."""

    gives_numbers = False
    added = ()
    _spec: DiscardSpec

    def __init__(self, spec: DiscardSpec, max_features: int) -> None:
        super().__init__(spec, max_features)
        self._keys = frozenset(spec.keys)

    def transform(self, x: Features) -> dict[str, Value]:
        dropped = self._keys
        return {name: value for name, value in x.items() if name not in dropped}

    def scaling(self, name: str) -> Scaling:
        return NOTHING if name in self._keys else Scaling()


class SelectSpec(StepSpec):
    """Keep the named features, in this order, with any values.

    As `river.compose.Select`, but a feature that an event does not have is left
    out instead of failing.
    """

    stage: ClassVar = Select
    type: Literal["Select"]
    keys: Keys = Field(min_length=1, description="The features to keep.")


class DiscardSpec(StepSpec):
    """Drop the named features, with any values; without names pass everything on."""

    stage: ClassVar = Discard
    type: Literal["Discard"]
    keys: Keys = Field(description="The features to drop.")
