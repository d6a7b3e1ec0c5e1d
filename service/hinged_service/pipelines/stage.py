"""Base class of the stages of a pipeline: pure when it transforms, checked when restored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import hinged
from hinged_service.pipelines.byte_limit import ByteLimit
from hinged_service.pipelines.state_checks import count, items
from hinged_service.pipelines.values import MAX_VALUE, Features, Numbers, Value
from hinged_service.wire.strict_model import StrictModel

__all__ = ["NOTHING", "Origins", "Scaling", "Stage", "StepSpec"]

Origins = dict[str, tuple[str, ...]]
"""For each feature that a stage gives: the names of those it was made from."""


class Scaling(NamedTuple):
    """The scaling of one feature: `(value - centre) / divisor`, cut to `least` and `most`."""

    centre: float = 0.0
    divisor: float = 1.0
    least: float = -MAX_VALUE
    most: float = MAX_VALUE


NOTHING = Scaling(0.0, 1.0, 0.0, 0.0)
"""The scaling that makes 0 of every value."""


class Stage(ABC):
    """One transformer of a pipeline.

    Parameters
    ----------
    spec
        Its parameters.
    max_features
        The most names, words or categories that it keeps.

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
    added
        The features that it may add to those of the event; `None` if it gives others.

    """

    learns: bool = False
    gives_numbers: bool = True
    numbers_suffice: bool = True
    all_or_nothing: bool = True
    added: tuple[str, ...] | None = None

    _spec: StepSpec

    def __init__(self, spec: StepSpec, max_features: int) -> None:
        self._spec = spec
        self._max_features = max_features
        self._ignored = 0
        self._byte_limit = ByteLimit(None)

    def share(self, byte_limit: ByteLimit) -> None:
        """Keep within a limit that other stages share, from before the first event."""
        self._byte_limit = byte_limit

    @property
    def ignored(self) -> int:
        """The number of features not learned because it has as many as it may."""
        return self._ignored

    def restore(self, ignored: int, state: Any) -> None:
        """Restore a number of ignored features and the state that `get_state` returned."""
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
        """Return the results of `transform`, and, after learning `x`, of `learn_transform`.

        For floats of at most 1e100, where `numbers_suffice`. A stage that does both in one
        pass does not check them again.
        """
        made = self.transform(x)
        return made, self.learn_transform(x) if self.learns else made

    def origins(self, x: Features) -> Origins:
        """Return the origins in `x` of each feature of `transform(x)`."""
        return {name: (name,) for name in self.transform(x)}

    def scaling(self, name: str) -> Scaling | None:
        """Return the scaling of a number of that name; `None` if there is none."""
        return None

    def get_state(self) -> Any:
        """Return the learned state as JSON-like data, lists where an order counts."""
        return None

    def set_state(self, data: Any) -> None:
        """Restore the state that `get_state` returned; do not use the stage if that fails.

        Raises
        ------
        hinged.InvalidState
            If it is not the state of such a stage.

        """
        if data is not None:
            raise hinged.InvalidState(f"{type(self).__name__} has no state")

    def dump(self) -> list[Any]:
        """Return `[class, ignored, state]`."""
        return [type(self).__name__, self.ignored, self.get_state()]

    def load(self, data: Any) -> None:
        """Restore the state that `dump` returned, as `set_state` does."""
        kind, ignored, state = items(data, "a stage", 3)
        if kind != type(self).__name__:
            raise hinged.InvalidState(f"a stage is no {type(self).__name__}")
        self._ignored = count(ignored, "the features ignored")
        self.set_state(state)


class StepSpec(StrictModel):
    """Base of the specs of transformers."""

    stage: ClassVar[type[Stage]]

    def build(self, max_features: int) -> Stage:
        """Return the fresh stage."""
        return self.stage(self, max_features)
