"""Whether a value is of a kind: type annotations, looked at when a state is read.

`float` takes an `int` too, both take numpy's numbers, and a container must be
of its very class: `defaultdict[Any, float]` takes no `dict`.
"""

from __future__ import annotations

import types
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Union, get_args, get_origin

import numpy as np

from hinged_service.river_support.state.callables import product

__all__ = ["fits"]


def fits(value: Any, kind: Any) -> bool:
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
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return any(fits(value, one) for one in get_args(kind))
    if origin is None:
        return _is(value, kind)
    if type(value) is not origin:
        return False
    args = get_args(kind)
    if origin is defaultdict and not _makes(value, args[1]):
        return False
    if issubclass(origin, dict):
        return _all(value, args[0]) and _all(value.values(), args[-1])
    if origin is tuple and args[-1] is not Ellipsis:
        return len(value) == len(args) and all(map(fits, value, args))
    return _all(value, args[0])


def _is(value: Any, kind: type) -> bool:
    found = type(value)
    if kind is float:
        return found in (float, int) or issubclass(found, (np.floating, np.integer))
    if kind is int:
        return found is int or issubclass(found, np.integer)
    if kind is bool:
        return found in (bool, np.bool_)
    return isinstance(value, kind)


def _all(values: Iterable[Any], kind: Any) -> bool:
    if kind is Any:
        return True
    if kind is float and set(map(type, values)) <= {float, int}:
        return True
    return all(fits(value, kind) for value in values)


def _makes(value: defaultdict[Any, Any], kind: Any) -> bool:
    return value.default_factory is not None and all(
        fits(made, kind) for made in product(value.default_factory)
    )
