"""The public names for operators who serve River pipelines of their own."""

from __future__ import annotations

from hinged_service.river_support.custom.model import CustomModel

__all__ = ["CustomModel"]
