"""River's classes that are stored, and hinged's transformers: their attributes, and their kinds.

There is one module per subpackage of River, imported when the first object of it is written or
read, as the subpackage takes long to import.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

from hinged_service.river_support.lazy import imported
from hinged_service.river_support.state.catalogue.entry import Entry
from hinged_service.river_support.state.naming import stored_name

__all__ = ["Entry", "class_of", "classes", "entry_of"]

_SUBPACKAGES = frozenset(
    (
        "compose",
        "drift",
        "ensemble",
        "feature_extraction",
        "hinged",
        "linear_model",
        "metrics",
        "multiclass",
        "naive_bayes",
        "optim",
        "preprocessing",
        "proba",
        "stats",
        "tree",
        "utils",
    )
)
"""The packages whose classes are stored: some of River, and hinged. Only these are imported."""


def entry_of(kind: type) -> Entry | None:
    """Return how the objects of a class are stored; `None` if they are not, or not as River's."""
    root, _, module = kind.__module__.partition(".")
    subpackage = "hinged" if root == "hinged" else module.partition(".")[0]
    if root not in ("hinged", "river") or subpackage not in _SUBPACKAGES:
        return None
    return _entries(subpackage).get(kind)


def class_of(name: str) -> type | None:
    """Return the class of River that a stored name means; `None` for any other text."""
    subpackage = name.partition(".")[0]
    return _named(subpackage).get(name) if subpackage in _SUBPACKAGES else None


def classes() -> Iterator[type]:
    """Yield every class of River whose objects are stored."""
    for subpackage in sorted(_SUBPACKAGES):
        yield from _entries(subpackage)


@functools.cache
def _entries(subpackage: str) -> dict[type, Entry]:
    entries: dict[type, Entry] = imported(f"{__name__}.{subpackage}").CLASSES
    return entries


@functools.cache
def _named(subpackage: str) -> dict[str, type]:
    return {stored_name(kind): kind for kind in _entries(subpackage)}
