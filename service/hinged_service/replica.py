"""One model in one worker's memory: its fold, where it stands, and what is not saved yet."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from hinged_service.codec import Position
from hinged_service.events import Event, parse_log
from hinged_service.fold import Fold, Result
from hinged_service.spec import ModelSpec
from hinged_service.store.logs import Entry
from hinged_service.store.models import Loaded, Saved, Snapshot

__all__ = ["Replica"]

_MARKS_PER_RETENTION = 16


class Replica:
    """A model's state at a position of its log.

    It does no I/O: entries go in, snapshots come out. When the log turns out
    not to hold its position, it is thrown away and another one is loaded.

    Parameters
    ----------
    spec
        The model's spec.
    loaded
        The snapshot to start from.
    now_s
        The time on some monotonic clock, in seconds.
    complete
        Whether the stored snapshot may be updated by what changes from here on;
        `False` if it is damaged and must be replaced whole.

    Attributes
    ----------
    fold
        The state.
    position
        The last entry folded in.
    base
        The entry id since which the set of changed names is complete.
    stored
        The entry id of the snapshot in Redis, as far as known.

    Raises
    ------
    hinged.InvalidState
        If the snapshot is not one of such a model.

    """

    def __init__(
        self, spec: ModelSpec, loaded: Loaded, now_s: float, complete: bool = True
    ) -> None:
        self.fold = Fold(spec)
        self._marks: list[tuple[str, int]] = []
        if loaded.state is not None:
            self.fold.restore(loaded.state.scalars, loaded.vectors)
            self._marks = loaded.state.marks
        self.fold.learner.track()
        self.position = loaded.position
        self.stored = loaded.position.id
        self.base = loaded.position.id
        self._complete = complete
        self._log_bytes = self._marks[-1][1] if self._marks else 0
        self._unsaved_events = 0
        self._unsaved_since_s = now_s

    def fold_entry(self, entry: Entry, events: Sequence[Event] | None = None) -> list[Result]:
        """Fold the next entry of the log in.

        Parameters
        ----------
        entry
            The entry right after `position`.
        events
            Its payload as already decoded, if this worker sent it.

        Returns
        -------
        What became of each of its events, `None` for those that did not count.

        """
        outcomes: list[Result] = []
        if events is not None:
            outcomes = self.fold.learn_all(events, entry.skip)
        elif entry.payload is not None:
            outcomes = self.fold.learn_all(parse_log(entry.payload), entry.skip)
        self._unsaved_events += len(outcomes)
        self.position = entry.position
        self._log_bytes = entry.bytes_so_far
        return outcomes

    def own_entry(self, position: Position, payload: bytes, skip: frozenset[int]) -> Entry:
        """Return this worker's own entry, appended right after `position`."""
        return Entry(position, payload, skip, self._log_bytes + len(payload))

    def note_stored(self, stored: str, now_s: float) -> None:
        """Take note of the snapshot position that a reply from Redis showed."""
        if stored != self.stored:
            self.stored = stored
            self._unsaved_since_s = now_s
            self._unsaved_events = 0
        if _order(stored) >= self.position.order:
            self._unsaved_since_s = now_s
            if self._complete:
                for vector in self.fold.vectors().values():
                    vector.take_changed()
                self.base = self.position.id

    def is_saved(self) -> bool:
        """Tell whether the stored snapshot is as far as this replica, and sound."""
        return self._complete and _order(self.stored) >= self.position.order

    def is_due(self, now_s: float, every_events: int, every_names: int, every_s: float) -> bool:
        """Tell whether a snapshot should be taken now."""
        if self.is_saved():
            return False
        return (
            self._unsaved_events >= every_events
            or now_s - self._unsaved_since_s >= every_s
            or self.changed_names() >= every_names
        )

    def changed_names(self) -> int:
        """Return how many stored values would have to be written."""
        return sum(v.changed_count() for v in self.fold.vectors().values())

    def take_snapshot(self, retention_bytes: int, full: bool) -> Snapshot:
        """Return the state as it is now, to be saved.

        Parameters
        ----------
        retention_bytes
            How much of the log is to be kept behind the snapshot.
        full
            All names, not only those changed since `base`; also then with those removed, for
            it may not be saved, and then they are still to be removed.

        """
        vectors = self.fold.vectors()
        changed: dict[str, dict[Any, float | None]] = {}
        for name, vector in vectors.items():
            names, view = vector.take_changed(), vector.view()
            changed[name] = dict(view) if full else {}
            changed[name] |= {n: view.get(n) for n in names}
        self._unsaved_events = 0
        wanted = self._wanted(retention_bytes)
        return Snapshot(
            position=self.position,
            scalars=self.fold.scalars(),
            vectors=changed,
            sizes={name: len(vector) for name, vector in vectors.items()},
            marks=[*self._marks, (self.position.id, self._log_bytes)],
            wanted=wanted,
        )

    def _wanted(self, retention_bytes: int) -> str:
        if retention_bytes == 0:
            return self.position.id
        last = self._marks[-1][1] if self._marks else None
        if last is None or self._log_bytes - last >= retention_bytes // _MARKS_PER_RETENTION:
            self._marks.append((self.position.id, self._log_bytes))
        index = bisect_right(self._marks, self._log_bytes - retention_bytes, key=lambda m: m[1])
        if index == 0:
            return "0-0"
        del self._marks[: index - 1]
        return self._marks[0][0]

    def settle(self, snapshot: Snapshot, saved: Saved | None, full: bool, now_s: float) -> None:
        """Take note of what became of a snapshot of this replica; `None` means unknown."""
        if saved == "ok" and full:
            self._complete = True
        if saved in ("ok", "stored") and self._complete:
            if _order(self.base) < snapshot.position.order:
                self.base = snapshot.position.id
            if saved == "ok":
                self.note_stored(snapshot.position.id, now_s)
            return
        for name, vector in self.fold.vectors().items():
            vector.put_back_changed(snapshot.vectors.get(name, ()))

    @property
    def needs_full(self) -> bool:
        """Whether the stored snapshot must be replaced whole."""
        return not self._complete


def _order(entry_id: str) -> tuple[int, int]:
    ms, _, seq = entry_id.partition("-")
    return int(ms), int(seq)
