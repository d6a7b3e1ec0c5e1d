"""Entries of the log folded in parts, by long work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hinged_service.engine.long_work import portions
from hinged_service.engine.replica import Replica
from hinged_service.model.results import Late, Result
from hinged_service.model.state import ModelState
from hinged_service.store.log_types import Entry
from hinged_service.wire.events import Event

__all__ = ["EntryInParts"]


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
        self._decoded = events
        self._events: Sequence[Event | None] | None = None
        self._late: dict[int, Late] | None = None
        self._results: list[Result] = []
        self._portions: Iterator[tuple[int, Sequence[Event | None]]] = iter(())
        self._detected = state.detected

    def step(self) -> bool:
        """Fold some of the events; return whether any are left."""
        entry = self._entry
        if self._events is None:
            self._events, self._late = self._replica.decoded(entry, self._decoded)
            self._portions = portions(self._events)
            return bool(self._events)
        for first, some in self._portions:
            self._results += self._state.learn_all(
                some, entry.skip, entry.position.id, self._late, first
            )
            return True
        return False

    def end(self) -> list[Result]:
        """Stand at the entry, whose state was returned, and return the results of its events."""
        events = self._events or ()
        self._replica.end(self._entry, events, self._results, None, self._detected)
        return self._results
