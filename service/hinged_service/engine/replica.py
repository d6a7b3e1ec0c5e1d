"""One model in one worker's memory: its fold, where it stands, and what is not saved yet."""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

import hinged
from hinged_service.model.spec import ModelSpec
from hinged_service.model.state import Detection, Late, ModelState, Result
from hinged_service.model.state_codec import restore_state, state_scalars
from hinged_service.store.followers import Retention
from hinged_service.store.log_types import Entry
from hinged_service.store.snapshot import Loaded, Saved, Snapshot
from hinged_service.wire import codec
from hinged_service.wire.codec import Mark, Position, UpgradePoint
from hinged_service.wire.decoding import completed, parse_joined, parse_log
from hinged_service.wire.events import Event, Joined
from hinged_service.wire.faults import DECODE_ERRORS
from hinged_service.wire.position import EntryId

__all__ = ["AppliedEntry", "Replica", "Watcher"]

logger = logging.getLogger(__name__)

_MARKS_PER_RETENTION = 16


class AppliedEntry(NamedTuple):
    """Result of one applied entry, for those who watch the replica.

    Parameters
    ----------
    entry
        The entry.
    events
        Its decoded events.
    results
        What each of them did.
    command
        What it commanded this model, if it did.
    detections
        Drifts that its events showed.

    """

    entry: Entry
    events: Sequence[Event | None]
    results: Sequence[Result]
    command: Mapping[str, Any] | None
    detections: Sequence[Detection]


Watcher = Callable[[AppliedEntry], None]


class Replica:
    """A model's state at a position of its log.

    It does no I/O: entries go in, snapshots come out. When the log turns out
    not to hold its position, it is thrown away and another one is loaded.

    Parameters
    ----------
    uid, spec
        The model's uid and spec.
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
    watchers
        Called with everything that is folded in.
    between
        Whether it is in the middle of an entry: no state to be shown or saved.
    awaits
        The model's last upgrade, as long as its entry is not folded in.

    Raises
    ------
    hinged.InvalidState
        If the snapshot is not one of such a model.

    """

    def __init__(
        self, uid: str, spec: ModelSpec, loaded: Loaded, now_s: float, complete: bool = True
    ) -> None:
        self.uid = uid
        self.fold = ModelState(spec)
        self._spec = spec
        self._marks: list[Mark] = []
        if loaded.state is not None:
            restore_state(self.fold, loaded.state.scalars, loaded.vectors)
            self._marks = loaded.state.marks
        self.fold.learner.track()
        self.position = loaded.position
        self.stored = loaded.position.id
        self.base = loaded.position.id
        self._loaded_at = loaded.position.id
        self.awaited_upgrade: UpgradePoint | None = None
        if loaded.barrier is not None and EntryId.of(loaded.barrier.id) > loaded.position.order:
            self.awaited_upgrade = loaded.barrier
        self.watchers: list[Watcher] = []
        self.mid_entry = False
        self._complete = complete
        mark = loaded.mark or (self._marks[-1] if self._marks else Mark("0-0", 0, 0))
        self.log_bytes, self.log_events = mark.bytes, mark.events
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
        fold, detected = self.fold, self.fold.detected
        decoded, late = self._decoded(entry, events)
        results: list[Result] = []
        command = None
        if decoded:
            results = fold.learn_all(decoded, entry.skip, entry.position.id, late)
        elif entry.command is not None:
            command = self.command_in(entry)
            if command is not None:
                fold.obey(command)
        self._end(entry, decoded, results, command, detected)
        return results

    def fold_in_parts(self, entry: Entry, size: int) -> Iterator[None]:
        """Fold the next entry of the log in, with a pause after every `size` events.

        Until the last of them it is `mid_entry`; if the iteration is not gone on with, for good.
        """
        detected = self.fold.detected
        decoded, late = self._decoded(entry, None)
        if not decoded:
            self.fold_entry(entry)
            return
        results: list[Result] = []
        self.mid_entry = True
        for first in range(0, len(decoded), size):
            part = decoded[first : first + size]
            results += self.fold.learn_all(part, entry.skip, entry.position.id, late, first)
            yield
        self._end(entry, decoded, results, None, detected)
        self.mid_entry = False

    def _decoded(
        self, entry: Entry, events: Sequence[Event | None] | None
    ) -> tuple[Sequence[Event | None], dict[int, Late] | None]:
        """Return an entry's events, and what is known of the predictions they are labels of."""
        decoded: Sequence[Event | None] = ()
        if events is not None:
            decoded = events
        elif entry.payload is not None:
            decoded = parse_log(entry.payload)
        if entry.joined is None:
            return decoded, None
        joined = parse_joined(entry.joined)
        late = {n: self._late(prediction) for n, prediction in joined.items()}
        return completed(decoded, joined), late

    def _end(
        self,
        entry: Entry,
        decoded: Sequence[Event | None],
        results: Sequence[Result],
        command: Mapping[str, Any] | None,
        detected: int,
    ) -> None:
        """Stand at the entry that was folded in, and tell the watchers."""
        self._unsaved_events += len(results)
        self._stand_at(entry)
        if self.watchers:
            new = self.fold.detected - detected
            found = self.fold.detections[-new:] if new else []
            self._tell(AppliedEntry(entry, decoded, results, command, found))

    def _late(self, prediction: Joined) -> Late:
        served = prediction.served
        at_ms = None if prediction.default else prediction.at
        return Late(at_ms, self.uid in served, served.get(self.uid))

    def _tell(self, folded: AppliedEntry) -> None:
        for watcher in tuple(self.watchers):
            watcher(folded)

    def _stand_at(self, entry: Entry) -> None:
        if self.fold.replaced:  # what is tracked from here on is complete since this entry
            self.fold.replaced = False
            self.fold.learner.track()
            self.base = entry.position.id
        self.position = entry.position
        self.log_bytes, self.log_events = entry.bytes_so_far, entry.events_so_far

    def command_in(self, entry: Entry) -> dict[str, Any] | None:
        """Return what an entry commands this model, `None` if nothing."""
        try:
            command = msgspec.json.decode(entry.command or b"null")
        except DECODE_ERRORS:
            return None
        return command if isinstance(command, dict) and command.get("model") == self.uid else None

    def passes(self, entry: Entry, command: Mapping[str, Any]) -> bool:
        """Tell whether an upgrade in the log went on from the very snapshot that was loaded.

        If it did not, this state is of another line of folds than the one that goes on.
        An upgrade before the one awaited decides nothing any more.
        """
        awaited = self.awaited_upgrade
        if awaited is None:
            return False
        if entry.position.id != awaited.id:
            return entry.position.order < EntryId.of(awaited.id)
        self.awaited_upgrade = None
        return (command["from"], command["fold"]) == (self._loaded_at, codec.fold_tag())

    def fits(self, spec: ModelSpec) -> bool:
        """Tell whether the state of a model of that spec may be this model's."""
        return all(
            getattr(self._spec, part) == getattr(spec, part)
            for part in ("learner", "pipeline", "labels", "metrics", "drift", "max_features")
        )

    def fold_restore(self, entry: Entry, state: Loaded | None) -> None:
        """Fold a command in that restores the state of a checkpoint.

        Parameters
        ----------
        entry
            The entry right after `position`.
        state
            The checkpoint's; `None` if there is no such checkpoint or it is of another
            kind of model: then the command is counted and nothing else changes.

        """
        fold = ModelState(self._spec)
        try:
            stored = None if state is None else state.state
            if state is not None and stored is not None:
                restore_state(fold, stored.scalars, state.vectors)
                fold.replaced = True
                self.fold = fold
        except hinged.InvalidState:
            logger.warning("model %s: a command restores the state of another kind", self.uid)
        if self.fold is not fold:
            self.fold.rejected += 1
        self._stand_at(entry)
        if self.watchers:
            self._tell(AppliedEntry(entry, (), (), self.command_in(entry), ()))

    def entry_of_batch(
        self,
        position: Position,
        payload: bytes,
        skip: frozenset[int],
        count: int,
        joined: bytes | None,
    ) -> Entry:
        """Return this worker's own entry of `count` events, appended right after `position`."""
        counted = count - len(skip)
        size = len(payload) + len(joined or b"")
        return Entry(
            position,
            payload,
            skip,
            self.log_bytes + size,
            self.log_events + counted,
            joined=joined,
        )

    def note_stored(self, stored: str, now_s: float) -> None:
        """Take note of the snapshot position that a reply from Redis showed."""
        if stored != self.stored:
            self.stored = stored
            self._unsaved_since_s = now_s
            self._unsaved_events = 0
        if EntryId.of(stored) >= self.position.order:
            self._unsaved_since_s = now_s
            if self._complete:
                for vector in self.fold.vectors().values():
                    vector.take_changed()
                self.base = self.position.id

    def is_saved(self) -> bool:
        """Tell whether the stored snapshot is as far as this replica, and sound."""
        return self._complete and EntryId.of(self.stored) >= self.position.order

    def is_due(self, now_s: float, every_events: int, every_names: int, every_s: float) -> bool:
        """Tell whether a snapshot should be taken now."""
        due = (
            self._unsaved_events >= every_events
            or now_s - self._unsaved_since_s >= every_s
            or self.changed_names() >= every_names
        )
        return due and not (self.mid_entry or self.is_saved())

    def unsaved_s(self, now_s: float) -> float:
        """Return the age in seconds of the oldest change that no snapshot holds, 0 if none."""
        return 0.0 if self.is_saved() else max(0.0, now_s - self._unsaved_since_s)

    def changed_names(self) -> int:
        """Return how many stored values would have to be written."""
        return sum(v.changed_count() for v in self.fold.vectors().values())

    def take_snapshot(self, kept: Retention, full: bool) -> Snapshot:
        """Return the state as it is now, to be saved.

        Parameters
        ----------
        kept
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
        return self._snapshot(changed, self._wanted(kept))

    def whole_state(self) -> Snapshot:
        """Return the state as it is now, to be kept elsewhere."""
        vectors = self.fold.vectors().items()
        return self._snapshot({name: dict(vector.view()) for name, vector in vectors}, "0-0")

    def _snapshot(self, vectors: Mapping[str, Mapping[Any, float | None]], wanted: str) -> Snapshot:
        return Snapshot(
            position=self.position,
            scalars=state_scalars(self.fold),
            vectors=vectors,
            sizes={name: len(vector) for name, vector in self.fold.vectors().items()},
            marks=[*self._marks, Mark(self.position.id, self.log_bytes, self.log_events)],
            wanted=wanted,
        )

    def _wanted(self, kept: Retention) -> str:
        """Return the oldest entry id that is to be kept: the later one of both limits."""
        if 0 in kept:
            return self.position.id
        here = Mark(self.position.id, self.log_bytes, self.log_events)
        last = self._marks[-1] if self._marks else None
        if last is None or any(
            now - then >= limit // _MARKS_PER_RETENTION
            for now, then, limit in (
                (here.bytes, last.bytes, kept.bytes),
                (here.events, last.events, kept.events),
            )
            if limit is not None
        ):
            self._marks.append(here)
        index = 0
        if kept.bytes is not None:
            index = bisect_right(self._marks, here.bytes - kept.bytes, key=lambda m: m.bytes)
        if kept.events is not None:
            past = bisect_right(self._marks, here.events - kept.events, key=lambda m: m.events)
            index = max(index, past)
        if index == 0:
            return "0-0"
        del self._marks[: index - 1]
        return self._marks[0].id

    def settle(self, snapshot: Snapshot, saved: Saved | None, full: bool, now_s: float) -> None:
        """Take note of what became of a snapshot of this replica; `None` means unknown."""
        if saved == "ok" and full:
            self._complete = True
        if saved in ("ok", "stored") and self._complete:
            if EntryId.of(self.base) < snapshot.position.order:
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
