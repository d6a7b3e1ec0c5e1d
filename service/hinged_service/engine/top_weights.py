"""The largest of many weights."""

from __future__ import annotations

import heapq
from typing import Any

import msgspec

__all__ = ["largest", "weights_bytes"]

_NUMBER_BYTES = 26


def largest(shown: dict[str, Any], top: int | None, skip: int = 0) -> dict[str, Any]:
    """Return weights as `shown_weights` returns them, the largest magnitude first.

    `top` is the number to keep of each vector after the `skip` largest; `None` keeps all.
    """
    cut: dict[str, Any] = _cut(shown, top, skip)
    return cut


def weights_bytes(shown: Any) -> int:
    """Return how many bytes of JSON weights as `shown_weights` returns them may have."""
    if isinstance(shown, list):
        return sum(map(weights_bytes, shown))
    if not isinstance(shown, dict):
        return _NUMBER_BYTES
    names_bytes = len(msgspec.json.encode(list(shown)))
    if any(isinstance(part, (dict, list)) for part in shown.values()):
        return names_bytes + sum(map(weights_bytes, shown.values()))
    return names_bytes + _NUMBER_BYTES * len(shown)


def _cut(value: Any, top: int | None, skip: int) -> Any:
    if isinstance(value, list):
        return [_cut(part, top, skip) for part in value]
    if not isinstance(value, dict):
        return value
    parts = {name: _cut(part, top, skip) for name, part in value.items() if name != "weights"}
    if "weights" not in value:
        return parts
    pairs = value["weights"].items()
    if top is None:
        found = sorted(pairs, key=_rank)
    else:
        found = heapq.nsmallest(skip + top, pairs, key=_rank)
    return {"weights": dict(found[skip:]), **parts}


def _rank(item: tuple[str, float]) -> tuple[float, str]:
    return -abs(item[1]), item[0]
