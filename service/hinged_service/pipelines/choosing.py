"""Keeping and dropping features by name."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from hinged_service.pipelines.stage import Origins, Stage, same_names
from hinged_service.pipelines.values import Features, Value
from hinged_service.wire.strict import StrictModel

__all__ = ["DiscardSpec", "Name", "SelectSpec", "Separator"]

Name = Annotated[str, Field(max_length=256)]
Separator = Annotated[str, Field(min_length=1, max_length=16)]
"""What stands between the parts of a name that a stage makes."""
Keys = Annotated[tuple[Name, ...], Field(max_length=10_000)]


class SelectSpec(StrictModel):
    """Keep the named features, in this order, whatever their values.

    As `river.compose.Select`, but a feature that an event does not have is left
    out instead of failing.
    """

    type: Literal["Select"]
    keys: Keys = Field(min_length=1, description="The features to keep.")

    def build(self, max_features: int) -> Select:
        """Return the stage."""
        return Select(self.keys)


class DiscardSpec(StrictModel):
    """Drop the named features, whatever their values; without names it passes everything on."""

    type: Literal["Discard"]
    keys: Keys = Field(description="The features to drop.")

    def build(self, max_features: int) -> Discard:
        """Return the stage."""
        return Discard(self.keys)


class Select(Stage):
    """Has no state."""

    gives_numbers = False

    def __init__(self, keys: tuple[str, ...]) -> None:
        super().__init__()
        self._keys = tuple(dict.fromkeys(keys))

    def transform(self, x: Features) -> dict[str, Value]:
        """Return the features to keep."""
        return {name: x[name] for name in self._keys if name in x}

    def origins(self, x: Features) -> Origins:
        """Return each feature as its own origin."""
        return same_names(self.transform(x))


class Discard(Stage):
    """Has no state."""

    gives_numbers = False

    def __init__(self, keys: tuple[str, ...]) -> None:
        super().__init__()
        self._keys = frozenset(keys)

    def transform(self, x: Features) -> dict[str, Value]:
        """Return the other features."""
        dropped = self._keys
        return {name: value for name, value in x.items() if name not in dropped}

    def origins(self, x: Features) -> Origins:
        """Return each feature as its own origin."""
        return same_names(self.transform(x))
