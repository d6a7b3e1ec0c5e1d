"""The common base of all parts of a spec, and the reasons why one, or a setting, is refused."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from hinged_service.wire.faults import abbreviated

__all__ = ["StrictModel", "reason_of", "setting_faults"]


class StrictModel(BaseModel):
    """A part of a spec: no unknown fields, no conversions, no changes."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def reason_of(fault: Any) -> str:
    """Return the reason of one of pydantic's `errors()`: that of a validator unchanged."""
    about = fault.get("ctx", {})
    match fault["type"]:
        case "value_error":
            return str(about["error"])
        case "missing" | "union_tag_not_found":
            return "is missing"
        case "extra_forbidden":
            return "is not a field here"
        case "union_tag_invalid":
            return f"must be one of {about['expected_tags']}, not {abbreviated(about['tag'])}"
        case "too_short":
            return f"must have at least {about['min_length']} entries"
        case "too_long":
            return f"must have at most {about['max_length']} entries"
    return str(fault["msg"])


def setting_faults(error: ValidationError) -> list[str]:
    """Return the faults of settings, each under its environment variable."""
    return [
        f"HINGED_{'_'.join(map(str, fault['loc'])).upper()}={fault['input']!r}: {reason_of(fault)}"
        for fault in error.errors()
    ]
