"""The largest of many weights."""

from __future__ import annotations

import heapq
from typing import Any

__all__ = ["largest"]


def largest(shown: dict[str, Any], top: int | None) -> dict[str, Any]:
    """Return weights as `shown_weights` returns them, the largest magnitude first.

    `top` is the number to keep of each vector; `None` keeps all.
    """
    cut: dict[str, Any] = _cut(shown, top)
    return cut


def _cut(value: Any, top: int | None) -> Any:
    if isinstance(value, list):
        return [_cut(part, top) for part in value]
    if not isinstance(value, dict):
        return value
    parts = {name: _cut(part, top) for name, part in value.items() if name != "weights"}
    if "weights" not in value:
        return parts
    pairs = value["weights"].items()
    found = sorted(pairs, key=_rank) if top is None else heapq.nsmallest(top, pairs, key=_rank)
    return {"weights": dict(found), **parts}


def _rank(item: tuple[str, float]) -> tuple[float, str]:
    return -abs(item[1]), item[0]
