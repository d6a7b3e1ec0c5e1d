"""The common base of all parts of a spec, and the reasons why one is refused."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

__all__ = ["StrictModel", "reason_of"]


class StrictModel(BaseModel):
    """A part of a spec: no unknown fields, no conversions, no changes."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def reason_of(fault: Any) -> str:
    """Return the reason of one of pydantic's `errors()`: that of a validator as it was raised."""
    reason = fault["ctx"]["error"] if fault["type"] == "value_error" else fault["msg"]
    return str(reason)
