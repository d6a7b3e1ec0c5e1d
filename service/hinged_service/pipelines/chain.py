"""Stages one after the other, and side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hinged_service.pipelines.byte_limit import ByteLimit
from hinged_service.pipelines.stage import Origins, Stage
from hinged_service.pipelines.state_checks import items
from hinged_service.pipelines.values import Features, Numbers, Value

__all__ = ["Chain", "Union"]


class Chain(Stage):
    """Stages one after the other, as in River's pipelines: each learns its own input."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self.stages = tuple(stages)
        self.learns = any(stage.learns for stage in stages)
        self.gives_numbers = bool(stages) and stages[-1].gives_numbers
        self.numbers_suffice = all(stage.numbers_suffice for stage in stages)
        self.all_or_nothing = self._refuses_first()
        self.added = _added(stages)
        self._transforms = [stage.transform for stage in stages]
        self._learners = [stage.learn_transform for stage in stages]

    def _refuses_first(self) -> bool:
        """Return whether no stage can refuse an event after another one has learned from it."""
        for position, stage in enumerate(self.stages):
            if stage.learns:
                rest = self.stages[position + 1 :]
                safe = stage.gives_numbers and all(later.numbers_suffice for later in rest)
                return stage.all_or_nothing and (safe or not rest)
        return True

    def share(self, byte_limit: ByteLimit) -> None:
        """Let all stages keep within the limit together."""
        for stage in self.stages:
            stage.share(byte_limit)

    @property
    def ignored(self) -> int:
        """The number of features that stages did not learn."""
        return sum(stage.ignored for stage in self.stages)

    def transform(self, x: Features) -> Mapping[str, Value]:
        """Return the features that the last stage makes of `x`."""
        for transform in self._transforms:
            x = transform(x)
        return x

    def learn_transform(self, x: Features) -> Mapping[str, Value]:
        """Let each stage learn and transform in turn."""
        for learn_transform in self._learners:
            x = learn_transform(x)
        return x

    def progress(self, x: Numbers) -> tuple[Any, Any]:
        """Run each stage, in one pass if it predicts with and learns the same features."""
        asked: Any = x
        taught: Any = x
        for stage in self.stages:
            if asked is taught:
                asked, taught = stage.progress(asked)
            else:
                asked, taught = stage.transform(asked), stage.learn_transform(taught)
        return asked, taught

    def origins(self, x: Features) -> Origins:
        """Return the first features that the last ones come from."""
        found: Origins = {name: (name,) for name in x}
        for stage in self.stages:
            found = {
                name: tuple(dict.fromkeys(first for m in made_of for first in found.get(m, (m,))))
                for name, made_of in stage.origins(x).items()
            }
            x = stage.transform(x)
        return found

    def get_state(self) -> list[Any]:
        """Return `[class, ignored, state]` of each stage."""
        return [stage.dump() for stage in self.stages]

    def set_state(self, data: Any) -> None:
        """Restore the state that `get_state` returned."""
        entries = items(data, "the stages", len(self.stages))
        for stage, entry in zip(self.stages, entries, strict=True):
            stage.load(entry)


class Union(Stage):
    """Chains side by side; of a feature that several give, the first one's value counts."""

    def __init__(self, branches: Sequence[Chain]) -> None:
        self.branches = tuple(branches)
        self.learns = any(branch.learns for branch in branches)
        self.gives_numbers = all(branch.gives_numbers for branch in branches)
        self.numbers_suffice = all(branch.numbers_suffice for branch in branches)
        self.all_or_nothing = not self.learns
        self.added = _added(branches)

    def share(self, byte_limit: ByteLimit) -> None:
        """Let all branches keep within the limit together."""
        for branch in self.branches:
            branch.share(byte_limit)

    @property
    def ignored(self) -> int:
        """The number of features that branches did not learn."""
        return sum(branch.ignored for branch in self.branches)

    def transform(self, x: Features) -> dict[str, Value]:
        """Return the features of all branches, in River's order: the last one's first."""
        made: dict[str, Value] = {}
        for branch in reversed(self.branches):
            made.update(branch.transform(x))
        return made

    def learn_transform(self, x: Features) -> dict[str, Value]:
        """Let each branch learn and transform."""
        made: dict[str, Value] = {}
        for branch in reversed(self.branches):
            made.update(branch.learn_transform(x))
        return made

    def origins(self, x: Features) -> Origins:
        """Return the origins that the branches name."""
        found: Origins = {}
        for branch in reversed(self.branches):
            found.update(branch.origins(x))
        return found

    def get_state(self) -> list[Any]:
        """Return the state of each branch."""
        return [branch.get_state() for branch in self.branches]

    def set_state(self, data: Any) -> None:
        """Restore the state that `get_state` returned."""
        states = items(data, "the branches", len(self.branches))
        for branch, state in zip(self.branches, states, strict=True):
            branch.set_state(state)


def _added(stages: Sequence[Stage]) -> tuple[str, ...] | None:
    """Return the features that several stages add, `None` if one of them replaces features."""
    names: dict[str, None] = {}
    for stage in stages:
        if stage.added is None:
            return None
        names.update(dict.fromkeys(stage.added))
    return tuple(names)
