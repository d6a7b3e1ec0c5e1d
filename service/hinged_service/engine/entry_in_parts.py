"""Entries of the log folded in parts, by long work."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

from hinged_service.engine.replica import Replica
from hinged_service.model.results import Late, Result
from hinged_service.model.state import ModelState
from hinged_service.store.log_types import Entry
from hinged_service.wire.events import Event

__all__ = ["EntryInParts"]

_STEP_S = 0.002


class EntryInParts:
    """An entry that long work folds in parts into the state that it took of a replica.

    `events` are those of the entry if they are decoded already.
    """

    def __init__(
        self,
        replica: Replica,
        state: ModelState,
        entry: Entry,
        events: Sequence[Event | None] | None,
    ) -> None:
        self._replica = replica
        self._state = state
        self._entry = entry
        self._known = events
        self._events: Sequence[Event | None] | None = None
        self._late: dict[int, Late] | None = None
        self._results: list[Result] = []
        self._size = 1
        self._detected = state.detected

    def step(self) -> bool:
        """Fold some of the events; tell whether any are left."""
        entry, first, began_s = self._entry, len(self._results), perf_counter()
        if self._events is None:
            self._events, self._late = self._replica.decoded(entry, self._known)
            return bool(self._events)
        some = self._events[first : first + self._size]
        self._results += self._state.learn_all(
            some, entry.skip, entry.position.id, self._late, first
        )
        if perf_counter() - began_s < _STEP_S:
            self._size *= 2
        return len(self._results) < len(self._events)

    def end(self) -> list[Result]:
        """Stand at the entry, whose state was given back, and return the results of its events."""
        events = self._events or ()
        self._replica.end(self._entry, events, self._results, None, self._detected)
        return self._results
