"""Custom models: as the operator's code declares them, and as they are served once checked."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from river import base

from hinged_service.river_support.lazy import compose

__all__ = ["CustomModel", "Sample", "Served", "last_step", "takes_weights"]

Sample = Sequence[tuple[Mapping[str, Any], Any]]
"""Events: features as they are posted, and the label."""


@dataclass(frozen=True)
class CustomModel:
    """A classifier of the operator's own.

    Parameters
    ----------
    build
        Makes the untrained classifier, the same one every time: a River pipeline, or
        any classifier of River's or hinged's. All of its parts must be of types whose
        state hinged stores (`hinged_service.river_support.state`), and no prediction may
        change any.
    version
        1 to 64 characters. Give another one to every change of what `build` makes: it
        is part of the spec, so that another version is another model.
    sample
        Events like those that will come, to try it with when a worker starts: features
        and label, which is true or false unless the classifier is a multiclass one. The
        first 1,000 are used; left out, six made-up numbers are.

    Raises
    ------
    TypeError, ValueError
        Naming the parameter that is wrong.

    """

    build: Callable[[], Any]
    version: str
    sample: Sample = ()

    def __post_init__(self) -> None:
        if not callable(self.build):
            raise TypeError("build must be a function that returns the classifier")
        if not isinstance(self.version, str):
            raise TypeError(f"version must be text, not {self.version!r}")
        if not 1 <= len(self.version) <= 64:
            raise ValueError("version must have 1 to 64 characters")
        for pair in self.sample:
            if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], Mapping)):
                raise TypeError("sample must be pairs of features and label")


class Served(NamedTuple):
    """A custom model that this process serves.

    Parameters
    ----------
    name, version
        As declared.
    fresh
        The untrained classifier; only ever copied.
    built
        The digest of its state.
    multiclass
        Whether it distinguishes more than two labels.

    """

    name: str
    version: str
    fresh: Any
    built: str
    multiclass: bool


def last_step(classifier: object) -> object:
    """Return the classifier at the end of a pipeline."""
    while isinstance(classifier, compose.Pipeline):
        classifier = list(classifier.steps.values())[-1]
    return classifier


def takes_weights(classifier: object) -> bool:
    """Return whether a classifier, or the one at the end of a pipeline, learns sample weights."""
    last = cast("base.Classifier", last_step(classifier))
    return "w" in inspect.signature(last.learn_one).parameters
