"""Rules for storing the objects of one class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Entry", "all_of"]

Kinds = dict[str, Any]


def all_of(kind: object, names: str) -> Kinds:
    """Return the kinds of attributes of one kind, named in a text of words."""
    return dict.fromkeys(names.split(), kind)


@dataclass(frozen=True, slots=True)
class Entry:
    """Rules for storing the objects of one class.

    Parameters
    ----------
    kinds
        The attributes every object has, with their kinds (see `kinds.fits`).
    optional
        The attributes that some have.
    derived
        The attributes that are not stored: they follow from the others, or are of
        no consequence.
    parts
        Returns the attributes of an object as they are stored.
    finish
        Sets the derived attributes of an object that has all others, and raises
        `DamagedState` if these do not go together.

    """

    kinds: Kinds
    optional: Kinds = field(default_factory=dict)
    derived: frozenset[str] = frozenset()
    parts: Callable[[Any], dict[str, Any]] = vars
    finish: Callable[[Any], None] = lambda made: None
