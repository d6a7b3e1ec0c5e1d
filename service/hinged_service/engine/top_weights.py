"""The largest of many weights."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable
from typing import Any

import msgspec

__all__ = ["largest", "weights_bytes"]

_NUMBER_BYTES = 26
_SORTED_AT_ONCE = 4_096


def largest(weights: dict[str, Any], top: int | None, skip: int = 0) -> dict[str, Any]:
    """Return weights as `weights_of` returns them, the largest magnitude first.

    `top` is the number to keep of each vector after the `skip` largest; `None` keeps all.
    """
    cut: dict[str, Any] = _cut(weights, top, skip)
    return cut


def weights_bytes(weights: Any) -> int:
    """Return the most bytes of JSON of weights as `weights_of` returns them."""
    if isinstance(weights, list):
        return sum(map(weights_bytes, weights))
    if not isinstance(weights, dict):
        return _NUMBER_BYTES
    names_bytes = len(msgspec.json.encode(list(weights)))
    if any(isinstance(part, (dict, list)) for part in weights.values()):
        return names_bytes + sum(map(weights_bytes, weights.values()))
    return names_bytes + _NUMBER_BYTES * len(weights)


def _cut(value: Any, top: int | None, skip: int) -> Any:
    if isinstance(value, list):
        return [_cut(part, top, skip) for part in value]
    if not isinstance(value, dict):
        return value
    parts = {name: _cut(part, top, skip) for name, part in value.items() if name != "weights"}
    if "weights" not in value:
        return parts
    weights = value["weights"]
    last = len(weights) if top is None else min(skip + top, len(weights))
    return {
        "weights": dict(itertools.islice(_ranked(weights, last), min(skip, last), last)),
        **parts,
    }


def _ranked(weights: dict[str, float], last: int) -> Iterable[tuple[str, float]]:
    """Return the items by rank, the first `last` at least.

    No step is long: one sort of all would not let other threads run until its end.
    """
    if last <= _SORTED_AT_ONCE:
        return heapq.nsmallest(last, weights.items(), key=_rank)
    items = iter(weights.items())
    runs = []
    while run := list(itertools.islice(items, _SORTED_AT_ONCE)):
        runs.append(sorted(run, key=_rank))
    return heapq.merge(*runs, key=_rank)


def _rank(item: tuple[str, float]) -> tuple[float, str]:
    return -abs(item[1]), item[0]
