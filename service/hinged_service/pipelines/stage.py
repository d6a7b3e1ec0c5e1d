"""Base class of the stages of a pipeline: pure when it transforms, checked when restored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import hinged
from hinged_service.pipelines.values import Features, Numbers, Value

__all__ = ["Origins", "Stage", "same_names"]

Origins = dict[str, tuple[str, ...]]
"""For each feature that a stage gives: the names of those it was made from."""


class Stage(ABC):
    """One transformer of a pipeline.

    Attributes
    ----------
    learns
        Whether events change it.
    gives_numbers
        Whether it gives floats of at most 1e100 and nothing else.
    numbers_suffice
        Whether it never refuses an event of numbers only, and gives numbers only then.
    all_or_nothing
        Whether `learn_transform` refuses an event before anything has changed.

    """

    learns: bool = False
    gives_numbers: bool = True
    numbers_suffice: bool = True
    all_or_nothing: bool = True

    def __init__(self) -> None:
        self._ignored = 0

    @property
    def ignored(self) -> int:
        """How many features it did not learn because it has as many as it may."""
        return self._ignored

    def restore(self, ignored: int, state: Any) -> None:
        """Take over a number of ignored features and what `get_state` gave."""
        self._ignored = ignored
        self.set_state(state)

    @abstractmethod
    def transform(self, x: Features) -> Mapping[str, Value]:
        """Return the features made from `x`; nothing changes.

        Raises
        ------
        hinged.InvalidEvent
            Naming a feature that it does not take. Whether it does depends on the
            names and the types of the values, so what `transform` took is taken
            after learning it too.

        """

    def learn_transform(self, x: Features) -> Mapping[str, Value]:
        """Learn `x`, then return the features made from it."""
        return self.transform(x)

    def progress(self, x: Numbers) -> tuple[Mapping[str, Value], Mapping[str, Value]]:
        """Return what `transform` gives, learn `x`, and return what `learn_transform` gives.

        For floats of at most 1e100, where `numbers_suffice`. A stage that does both in one
        pass does not check them again.
        """
        made = self.transform(x)
        return made, self.learn_transform(x) if self.learns else made

    @abstractmethod
    def origins(self, x: Features) -> Origins:
        """Return, for each feature that `transform(x)` gives, what it was made from."""

    def get_state(self) -> Any:
        """Return what was learned as JSON-like data, lists where an order counts."""
        return None

    def set_state(self, data: Any) -> None:
        """Take over what `get_state` gave; the stage is of no use if that fails.

        Raises
        ------
        hinged.InvalidState
            If it is not the state of such a stage.

        """
        if data is not None:
            raise hinged.InvalidState(f"{type(self).__name__} has no state")


def same_names(x: Features) -> Origins:
    """Return the origins of a stage that gives each feature under its own name."""
    return {name: (name,) for name in x}
