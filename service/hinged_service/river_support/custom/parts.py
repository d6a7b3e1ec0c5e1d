"""The estimators of a classifier, and those that differ between two states."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Any, NamedTuple

from river import base

from hinged_service.river_support import state
from hinged_service.river_support.state.naming import full_name

__all__ = ["Part", "Parts", "changed", "from_json", "parts_of"]


class Part(NamedTuple):
    """An estimator in a classifier."""

    depth: int
    """Number of estimators around it."""
    type: str
    """Name of its class."""
    digest: str
    """Digest of its state."""


Parts = list[Part]
"""A classifier and its parts, each before its own parts."""


def parts_of(classifier: object) -> Parts:
    """Return the parts of a classifier.

    Raises
    ------
    river_state.Unencodable
        Naming the type that has no stored form.

    """
    return [
        Part(depth, full_name(type(part)), state.digest(part))
        for depth, part in _walk(classifier, 0, set())
    ]


def _walk(value: object, depth: int, seen: set[int]) -> Iterator[tuple[int, object]]:
    inside: Iterable[object] = ()
    if isinstance(value, base.Estimator):
        if id(value) in seen:
            return
        seen.add(id(value))
        yield depth, value
        inside, depth = vars(value).values(), depth + 1
    elif isinstance(value, Mapping):
        inside = list(value.values())
    elif isinstance(value, (list, tuple)):
        inside = value
    for part in inside:
        yield from _walk(part, depth, seen)


def changed(before: Parts, after: Parts) -> list[str]:
    """Return the innermost types that differ, each with its container; none if all are equal.

    Examples
    --------
    >>> parts = [Part(0, "river.Pipeline", "a"), Part(1, "river.Scaler", "b")]
    >>> changed(parts, [Part(0, "river.Pipeline", "c"), Part(1, "river.Scaler", "d")])
    ['river.Scaler in Pipeline']

    """
    if [part[:2] for part in before] != [part[:2] for part in after]:
        return [before[0].type]
    differs = [a.digest != b.digest for a, b in zip(before, after, strict=True)]
    found = set()
    path: list[Part] = []
    for number, part in enumerate(before):
        path[part.depth :] = [part]
        inside = takewhile(
            lambda n: before[n].depth > path[-1].depth, range(number + 1, len(before))
        )
        if differs[number] and not any(differs[n] for n in inside):
            outer = (one.type.rpartition(".")[2] for one in reversed(path[:-1]))
            found.add(" in ".join((part.type, *outer)))
    return sorted(found)


def from_json(found: list[list[Any]]) -> Parts:
    """Return the parts that another process wrote as JSON."""
    return [Part(*part) for part in found]
