"""Common parts of the tests of rules: the events of AND, and learning of a row of events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["AND", "learned"]

AND = [({"x1": a, "x2": b}, a == b == 1) for a in (0, 1) for b in (0, 1)]


def learned(model: Any, events: Iterable[tuple[Any, ...]]) -> Any:
    for event in events:
        model.learn_one(*event)
    return model
