"""Names of models, streams and aliases."""

from __future__ import annotations

__all__ = ["NAME_PATTERN"]

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.\-]{0,127}$"
"""Names of models, aliases, streams and checkpoints: letters, digits, `_`, `.` and `-`."""
