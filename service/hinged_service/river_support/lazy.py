"""River's subpackages, each imported when something of it is first used.

Most of them bring SciPy along, many scikit-learn and pandas too: a second or two and 150 MB,
which a worker whose models are all hinged's own learners does without.

Building the state of a model, or reading a stored one, imports what it needs: in a thread, not in
an event loop, or all other models of the worker would stand still meanwhile.
"""

from __future__ import annotations

import importlib
import threading
from types import ModuleType
from typing import TYPE_CHECKING

__all__ = [
    "compose",
    "drift",
    "ensemble",
    "feature_extraction",
    "imported",
    "linear_model",
    "metrics",
    "multiclass",
    "naive_bayes",
    "optim",
    "preprocessing",
    "stats",
    "tree",
    "utils",
]

_one_at_a_time = threading.RLock()
"""River's modules import one another in circles: two threads that go round from different ends
would see modules that are half there."""


def imported(module: str) -> ModuleType:
    """Return a module of River's, or one that imports some; only names written in code go in."""
    with _one_at_a_time:
        return importlib.import_module(module)


class _Subpackage:
    """A subpackage by its name, with the attributes of the module."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> object:
        value: object = getattr(imported(self._name), attribute)
        setattr(self, attribute, value)
        return value


if TYPE_CHECKING:
    from river import (
        compose,
        drift,
        ensemble,
        feature_extraction,
        linear_model,
        metrics,
        multiclass,
        naive_bayes,
        optim,
        preprocessing,
        stats,
        tree,
        utils,
    )
else:
    compose = _Subpackage("river.compose")
    drift = _Subpackage("river.drift")
    ensemble = _Subpackage("river.ensemble")
    feature_extraction = _Subpackage("river.feature_extraction")
    linear_model = _Subpackage("river.linear_model")
    metrics = _Subpackage("river.metrics")
    multiclass = _Subpackage("river.multiclass")
    naive_bayes = _Subpackage("river.naive_bayes")
    optim = _Subpackage("river.optim")
    preprocessing = _Subpackage("river.preprocessing")
    stats = _Subpackage("river.stats")
    tree = _Subpackage("river.tree")
    utils = _Subpackage("river.utils")
