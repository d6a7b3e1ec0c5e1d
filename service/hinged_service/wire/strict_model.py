"""The common base of all parts of a spec."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

__all__ = ["StrictModel"]


class StrictModel(BaseModel):
    """A part of a spec: no unknown fields, no conversions, no changes."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
