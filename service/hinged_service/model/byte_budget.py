"""The bytes that a model may take by what it learns by name."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping

import hinged
from hinged.vector import VALUE_BYTES
from hinged_service.model.spec import ModelSpec
from hinged_service.pipelines import Pipeline
from hinged_service.river_support.learners import Features, Label, Learner, RiverMulticlass
from hinged_service.wire.events import Event, Value
from hinged_service.wire.faults import MAX_NAME

__all__ = ["ByteBudget"]

_NAME_BYTES = VALUE_BYTES + 4 * MAX_NAME


class ByteBudget:
    """The room of a learner for new names, beside its pipeline, within `max_bytes` of the spec.

    What it admits follows from their states and the event alone, so it is equal on all workers.

    Attributes
    ----------
    spare
        Bytes that the learner surely has left: never more than it really has.
    per_name
        Bytes of the longest name that the learner may come to know.

    """

    __slots__ = ("_learner", "_learners", "_most", "_multiclass", "_pipeline", "per_name", "spare")

    def __init__(self, spec: ModelSpec, learner: Learner, pipeline: Pipeline | None) -> None:
        self.spare = 0.0
        self.per_name = learner.numbers_per_name * _NAME_BYTES
        self._learner = learner
        self._pipeline = pipeline
        self._multiclass = spec.multiclass
        self._most = spec.bytes_bound
        half = spec.bytes_bound // 2
        self._learners = half if pipeline is not None and pipeline.learns else spec.bytes_bound

    def check(self, x: Features, y: Label, learns: bool) -> None:
        """Raise `InvalidEvent` if an event might store more than there is room for.

        As long as there is plenty of room, the longest names that there may be are counted, and
        the state is not looked at.
        """
        learner, need = self._learner, self.most_bytes(x)
        if need <= self.spare:
            self.spare -= need
            return
        free = self._learners - learner.stored_bytes()
        more = learner.growth_bytes(x, y, free) if learns else 0
        if 0 < more > free:
            raise hinged.InvalidEvent("x", self._no_room(more, free))
        self.spare = free - need

    def most_bytes(self, x: Features) -> float:
        """Return what learning an event stores at most, if all of its names are new."""
        if isinstance(self._learner, RiverMulticlass):  # a new class has all names seen so far
            return math.inf
        names = len(x) * _NAME_BYTES
        if self._pipeline is not None and self._pipeline.added is None:
            names = len(x) * VALUE_BYTES + 4 * sum(map(len, x))
        return names * self._learner.numbers_per_name

    def with_added(self, x: Features) -> Features:
        """Return the features with those that a pipeline which takes them at once may add."""
        added = None if self._pipeline is None else self._pipeline.added
        return {**dict.fromkeys(added, 0.0), **x} if added else x

    def without_room(
        self,
        events: Iterable[Event],
        faulty: set[int],
        target: Callable[[object], Label | None],
        transformed: Callable[[Mapping[str, Value]], Features],
    ) -> Iterator[tuple[int, str]]:
        """Yield by index why there is no room for the names of an event, after those before it.

        `target` and `transformed` are the learner's of a label and of features.
        """
        learner = self._learner
        free = self._learners - learner.stored_bytes()
        by_class = isinstance(
            learner,
            (
                hinged.MulticlassLinearClassifier,
                hinged.MulticlassQuadratic,
                hinged.MulticlassHedge,
                hinged.Auto,
            ),
        )
        if not (self._multiclass or self._pipeline):
            features = (event.x for event in events if not event.is_label)
            names = dict.fromkeys(itertools.chain.from_iterable(features), 0.0)
            if learner.growth_bytes(names, True) <= free:
                return
        taken: dict[object, set[str]] = {}
        for i, event in enumerate(events):
            y = target(event.y)
            if y is None or i in faulty or event.is_label or event.w == 0.0:
                continue
            x = transformed(event.x)
            before = taken.setdefault(y if by_class else None, set())
            new = {name: value for name, value in x.items() if name not in before}
            more = learner.growth_bytes(new, y, free)
            if 0 < more > free:
                yield i, self._no_room(more, free)
            else:
                before.update(new)
                free -= more

    def _no_room(self, more: int, free: int) -> str:
        return (
            f"may store {more} bytes or more of new names, but {max(0, free)} of max_bytes "
            f"{self._most} are left: send fewer new names, or make a model with a larger max_bytes "
            "or a FeatureHasher"
        )

    def stored_bytes(self) -> int:
        """Return the bytes of all that was learned by name."""
        pipeline = 0 if self._pipeline is None else self._pipeline.stored_bytes()
        return self._learner.stored_bytes() + pipeline
