"""Rows of two inputs: one set that a line separates, one that none does."""

from __future__ import annotations

__all__ = ["AND", "XOR", "Rows"]

Rows = list[tuple[dict[str, float], bool]]
AND: Rows = [({"a": a, "b": b}, a == b == 1.0) for a in (0.0, 1.0) for b in (0.0, 1.0)]
XOR: Rows = [(x, x["a"] != x["b"]) for x, _ in AND]
