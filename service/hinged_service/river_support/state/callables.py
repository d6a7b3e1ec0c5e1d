"""The functions that may stand in a stored object: a closed list of names."""

from __future__ import annotations

import copy
import functools
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

from hinged_service.river_support.lazy import naive_bayes, stats, utils
from hinged_service.river_support.state.naming import stored_name

__all__ = ["OWNER", "function_of", "is_method", "method_name", "product"]

_PYTHON: dict[str, Callable[..., Any]] = {
    "bool": bool,
    "int": int,
    "float": float,
    "list": list,
    "set": set,
    "dict": dict,
    "Counter": Counter,
    "defaultdict": defaultdict,
    "deepcopy": copy.deepcopy,
}
_STATISTICS = {"AbsMax", "EWMean", "EWVar", "IQR", "Max", "Mean", "Min", "Quantile", "Var"}
_STATISTICS |= {f"Rolling{name}" for name in ("AbsMax", "Max", "Min")}
OWNER = "__self__"
_GAUSSIAN = "_make_gaussian"
_METHODS = {"_random_weights": "feature_extraction.kernel_approx.RBFSampler"}
"""The bound methods that may be a default factory, with the class of their object."""


def function_of(name: str) -> Callable[..., Any] | None:
    """Return the function of a default factory by its stored name, `None` if it is not allowed.

    The stored name of each is its `__qualname__`.
    """
    function: Callable[..., Any] | None = _PYTHON.get(name)
    if name in _STATISTICS:
        function = getattr(stats, name)
    elif name == "Rolling":
        function = utils.Rolling
    elif name == f"GaussianNB.{_GAUSSIAN}":
        function = getattr(naive_bayes.GaussianNB, _GAUSSIAN)
    return function


def is_method(owner: object, name: str) -> bool:
    """Return whether an object's method of that name may be a default factory."""
    return name in _METHODS and stored_name(type(owner)) == _METHODS[name]


def method_name(function: object) -> str | None:
    """Return the stored name of a bound method, `None` if it has none."""
    name = getattr(function, "__name__", "")
    return name if is_method(getattr(function, OWNER, None), name) else None


def product(factory: Callable[[], Any]) -> tuple[Any, ...]:
    """Return the product of a default factory, or nothing if making it would change something.

    Raises the errors of the factory.
    """
    if method_name(factory) is not None:
        return ()
    if isinstance(factory, functools.partial) and factory.func is copy.deepcopy:
        (prototype,) = factory.args
        if not factory.keywords:
            return (prototype,)
    return (factory(),)
