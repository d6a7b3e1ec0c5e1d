"""The functions that may stand in a stored object: a closed list of names."""

from __future__ import annotations

import copy
import functools
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

from river import feature_extraction, naive_bayes, stats, utils

__all__ = ["CALLABLES", "METHODS", "NAMES", "method_name", "product"]

_RIVER: tuple[Any, ...] = (
    stats.AbsMax,
    stats.EWMean,
    stats.EWVar,
    stats.IQR,
    stats.Max,
    stats.Mean,
    stats.Min,
    stats.Quantile,
    stats.RollingAbsMax,
    stats.RollingMax,
    stats.RollingMin,
    stats.Var,
    utils.Rolling,
)

CALLABLES: dict[str, Callable[..., Any]] = {
    "bool": bool,
    "int": int,
    "float": float,
    "list": list,
    "set": set,
    "dict": dict,
    "Counter": Counter,
    "defaultdict": defaultdict,
    "deepcopy": copy.deepcopy,
    "GaussianNB._make_gaussian": naive_bayes.GaussianNB._make_gaussian,
    **{kind.__name__: kind for kind in _RIVER},
}
"""What a default factory may call, by its stored name."""

NAMES = {function: name for name, function in CALLABLES.items()}

METHODS: dict[str, type] = {"_random_weights": feature_extraction.RBFSampler}
"""The bound methods that may be a default factory, with the class of their object."""


def method_name(function: Any) -> str | None:
    """Return the stored name of a bound method, `None` if it has none."""
    name = getattr(function, "__name__", "")
    owner = METHODS.get(name)
    known = owner is not None and type(getattr(function, "__self__", None)) is owner
    return name if known else None


def product(factory: Callable[[], Any]) -> tuple[Any, ...]:
    """Return what a default factory makes, or nothing if to make it would change something.

    Raises whatever the factory raises.
    """
    if method_name(factory) is not None:
        return ()
    if isinstance(factory, functools.partial) and factory.func is copy.deepcopy:
        (prototype,) = factory.args
        if not factory.keywords:
            return (prototype,)
    return (factory(),)
