"""Specs named for the class that they describe, whose fields are its parameters."""

from __future__ import annotations

import abc
from typing import Annotated, Any

from pydantic import Field

from hinged_service.wire.strict_model import StrictModel

__all__ = ["Classes", "RiverSpec", "arguments", "class_name"]

Classes = Annotated[
    int,
    Field(
        ge=1, le=1_000, description="Largest number of classes. An event of one more is refused."
    ),
]


class RiverSpec(StrictModel):
    """A spec of an object of River's."""

    @abc.abstractmethod
    def river(self) -> object:
        """Return the fresh River object."""


def class_name(spec: StrictModel) -> str:
    """Return the name of the class that a spec describes."""
    return type(spec).__name__.removesuffix("Spec")


def arguments(spec: StrictModel, *left_out: str) -> dict[str, Any]:
    """Return the fields of a spec as arguments of a constructor, with River's objects built."""
    return {
        name: value.river() if isinstance(value, RiverSpec) else value
        for name, value in vars(spec).items()
        if name not in ("type", *left_out)
    }
