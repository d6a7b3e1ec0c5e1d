"""Kinds of values: type annotations that a stored state is checked against.

`float` takes an `int` too, both take numpy's numbers, and a container must be
of its very class: `defaultdict[Any, float]` takes no `dict`. A counter counts
numbers.
"""

from __future__ import annotations

import math
import types
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any, Union, get_args, get_origin

import numpy as np

from hinged_service.river_support.state.callables import product

__all__ = ["fits"]


_COUNT = float | bool
"""A new counter keeps a first `True` as it is."""


def fits(value: object, kind: object) -> bool:
    """Return whether a value is of a kind, the contents of containers included.

    Parameters
    ----------
    value
        Anything.
    kind
        A class, `None`, `Any`, a union, or a container of kinds as in
        `dict[Any, float]`, `list[int]`, `tuple[int, ...]`.

    """
    if kind is Any:
        return True
    if kind is None or kind is types.NoneType:
        return value is None
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return any(fits(value, one) for one in args)
    if isinstance(kind, type) and origin is None:
        return _is(value, kind)
    if type(value) is not origin:
        return False
    held: Any = value
    if isinstance(held, defaultdict) and not _makes(held, args[1]):
        return False
    if isinstance(held, Counter):
        counts = held.values()
        return _all(held, args[0]) and _all(counts, _COUNT) and all(map(math.isfinite, counts))
    if isinstance(held, dict):
        return _all(held, args[0]) and _all(held.values(), args[-1])
    if isinstance(held, tuple) and args[-1] is not Ellipsis:
        return len(held) == len(args) and all(map(fits, held, args))
    return _all(held, args[0])


def _is(value: object, kind: type) -> bool:
    found = type(value)
    if kind is float:
        return found in (float, int) or issubclass(found, (np.floating, np.integer))
    if kind is int:
        return found is int or issubclass(found, np.integer)
    if kind is bool:
        return found in (bool, np.bool_)
    return isinstance(value, kind)


def _all(values: Iterable[Any], kind: object) -> bool:
    if kind is Any:
        return True
    if kind is float and set(map(type, values)) <= {float, int}:
        return True
    return all(fits(value, kind) for value in values)


def _makes(value: defaultdict[Any, Any], kind: object) -> bool:
    return value.default_factory is not None and all(
        fits(made, kind) for made in product(value.default_factory)
    )
