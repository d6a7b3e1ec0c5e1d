"""One model in one worker's memory: its state, where it stands, and what is not saved yet.

The file is long: all that moves a replica, whose parts must not be seen apart.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

import hinged
from hinged_service.engine.retention import LogMarks
from hinged_service.engine.state_access import TAKEN_STATE, StateAccess
from hinged_service.model.results import Detection, Late, Result
from hinged_service.model.spec import ModelSpec
from hinged_service.model.state import ModelState
from hinged_service.model.state_codec import restore_state, state_scalars
from hinged_service.settings import SnapshotSettings
from hinged_service.store.followers import Retention
from hinged_service.store.log_types import Entry
from hinged_service.store.snapshot import Loaded, Saved, Snapshot
from hinged_service.wire import codec
from hinged_service.wire.copies import copied
from hinged_service.wire.decoding import completed, parse_joined, parse_log
from hinged_service.wire.events import Event, Joined
from hinged_service.wire.faults import DECODE_ERRORS
from hinged_service.wire.position import EntryId, Mark, Position, UpgradePoint

__all__ = ["AppliedEntry", "Replica", "Watcher"]

_OF_ONE_KIND = (
    *("learner", "steps", "labels", "class_weight"),
    *("calibrate", "metrics", "drift", "max_features"),
)
"""The parts of a spec that models must share for the state of one to be that of the other."""

logger = logging.getLogger(__name__)

_LEAST_S = 1.0
"""Least age of what is saved for its bytes, in seconds: it bounds the snapshots of a busy model."""
_FEW_NAMES = 2_000
_FEW_BYTES = 2**18
_PARTS_BYTES, _VECTOR_BYTES, _MARK_BYTES = 3_300, 350, 200
"""Bytes of a parked replica, and beside each of its vectors and marks."""


class AppliedEntry(NamedTuple):
    """Result of one applied entry: its events, their results, its command for this model if any.

    `detections` are the drifts that its events showed.
    """

    entry: Entry
    events: Sequence[Event | None]
    results: Sequence[Result]
    command: Mapping[str, Any] | None
    detections: Sequence[Detection]


Watcher = Callable[[AppliedEntry], None]


class Replica(StateAccess):
    """A model's state at a position of its log.

    It does no I/O: entries go in, snapshots come out. When the log turns out
    not to hold its position, it is thrown away and another one is loaded. All but its `state` is
    the loop's alone; `StateAccess` decides who may touch it.

    Parameters
    ----------
    loaded
        The snapshot to start from.
    complete
        True if the stored snapshot may be updated by what changes from here on;
        false if it is damaged and must be replaced whole.

    Attributes
    ----------
    state, taken
        The model's state, as in `StateAccess`.
    position
        The last entry applied.
    base
        The entry id since which the set of changed names is complete.
    stored
        The entry id of the snapshot in Redis, as last read.
    log_bytes, log_events
        Payload bytes and events that the log took up to the position.
    takes_gathered
        As of the state.
    watchers
        Called with every entry that is applied.
    awaited_upgrade
        The pending upgrade: set until its log entry has been applied.
    unsaved_since_s
        When, on the loop's clock, the oldest change that no snapshot holds was seen.

    Raises
    ------
    hinged.InvalidState
        If the snapshot is not one of such a model.

    """

    __slots__ = (
        *("_commanded", "_complete", "_loaded_at", "_marks", "_saved", "_spec"),
        *("awaited_upgrade", "base", "log_bytes", "log_events", "position", "stored"),
        *("takes_gathered", "uid", "unsaved_since_s", "watchers"),
    )

    def __init__(self, uid: str, spec: ModelSpec, loaded: Loaded, complete: bool = True) -> None:
        self.uid = uid
        super().__init__(ModelState(spec))
        self.takes_gathered = self.state.takes_gathered  # also while the state is away
        self._spec = spec
        self._marks = LogMarks()
        if loaded.state is not None:
            restore_state(self.state, loaded.state.scalars, loaded.vectors)
            self._marks = LogMarks(loaded.state.marks)
        self.state.learner.track()
        self.position = loaded.position
        self.stored = loaded.position.id
        self.base = loaded.position.id
        self._loaded_at = loaded.position.id
        self.awaited_upgrade: UpgradePoint | None = None
        if loaded.barrier is not None and EntryId.of(loaded.barrier.id) > loaded.position.order:
            self.awaited_upgrade = loaded.barrier
        self.watchers: tuple[Watcher, ...] = ()
        self._complete = complete
        mark = loaded.mark or self._marks.last or Mark("0-0", 0, 0)
        self.log_bytes, self.log_events = mark.bytes, mark.events
        self._saved = mark
        self.unsaved_since_s: float | None = None
        self._commanded: EntryId | None = None

    def parked_bytes(self) -> int | None:
        """Return the bytes that it takes at most.

        `None` if these are many or not counted, or if others watch what it learns.
        """
        state = self.state
        if (
            state is TAKEN_STATE
            or self.watchers
            or state.on_answer is not None
            or not (self.takes_gathered and self._spec.needs_no_import)
        ):
            return None
        vectors = sum(_VECTOR_BYTES + one.taken_bytes() for one in state.vectors().values())
        marks = len(self._marks.all) * _MARK_BYTES
        size = _PARTS_BYTES + vectors + state.history.bytes + marks
        return size if size <= _FEW_BYTES else None

    def fold_entry(
        self, entry: Entry, events: Sequence[Event | None] | None = None
    ) -> list[Result]:
        """Apply the entry right after `position`, whose events may be decoded already.

        Return the result of each of its events, `None` for those that did not count.
        """
        state, detected = self.state, self.state.detected
        late = None
        if events is None or entry.joined is not None:
            events, late = self.decoded(entry, events)
        results: list[Result] = []
        command = None
        if events:
            results = state.learn_all(events, entry.skip, entry.position.id, late)
        elif entry.command is not None:
            command = self.command_in(entry)
            if command is not None:
                state.obey(command, entry.position.id)
                self._note_command(entry)
        self.end(entry, events, results, command, detected)
        return results

    def own_entry(
        self,
        position: Position,
        payload: bytes,
        events: Sequence[Event],
        skip: frozenset[int],
        joined: bytes | None,
    ) -> Entry:
        """Return the next entry, which is this worker's; its parts are as in `Entry`."""
        size = self.log_bytes + len(payload) + len(joined or b"")
        count = self.log_events + len(events) - len(skip)
        return Entry(position, payload, skip, size, count, None, joined)

    def decoded(
        self, entry: Entry, events: Sequence[Event | None] | None
    ) -> tuple[Sequence[Event | None], dict[int, Late] | None]:
        """Return an entry's events, and what is stored of the predictions they are labels of."""
        if events is None and entry.payload is not None:
            events = parse_log(entry.payload, self.takes_gathered)
        events = events or ()
        if entry.joined is None:
            return events, None
        joined = parse_joined(entry.joined)
        late = {n: self._late(prediction) for n, prediction in joined.items()}
        return completed(events, joined), late

    def _late(self, prediction: Joined) -> Late:
        served = prediction.served
        at_ms = None if prediction.default else prediction.at
        return Late(at_ms, self.uid in served, served.get(self.uid))

    def end(
        self,
        entry: Entry,
        events: Sequence[Event | None],
        results: Sequence[Result],
        command: Mapping[str, Any] | None,
        detected: int,
    ) -> None:
        """Stand at the entry that was applied, and call the watchers."""
        state = self.state
        if state.replaced:  # what is tracked from here on is complete since this entry
            state.replaced = False
            state.learner.track()
            self.base = entry.position.id
        self.position = entry.position
        self.log_bytes, self.log_events = entry.bytes_so_far, entry.events_so_far
        if self.watchers:
            new = state.detected - detected
            found = state.detections[-new:] if new else ()
            applied = AppliedEntry(entry, events, results, command, found)
            for watcher in self.watchers:
                watcher(applied)

    def command_in(self, entry: Entry) -> dict[str, Any] | None:
        """Return the command of an entry for this model, `None` if there is none."""
        try:
            command = msgspec.json.decode(entry.command or b"null")
        except DECODE_ERRORS:
            return None
        return command if isinstance(command, dict) and command.get("model") == self.uid else None

    def passes(self, entry: Entry, command: Mapping[str, Any]) -> bool:
        """Return whether an upgrade in the log went on from the very snapshot that was loaded.

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

    def _note_command(self, entry: Entry) -> None:
        """Note the last command, until a stored snapshot is past it."""
        if entry.position.order > EntryId.of(self.stored):
            self._commanded = entry.position.order

    def fits(self, spec: ModelSpec) -> bool:
        """Return whether the state of a model of that spec may be this model's."""
        return all(getattr(self._spec, part) == getattr(spec, part) for part in _OF_ONE_KIND)

    def restored(self, checkpoint: Loaded | None) -> ModelState | None:
        """Return the state of a checkpoint; `None` if there is none, or one of another kind."""
        stored = None if checkpoint is None else checkpoint.state
        if checkpoint is None or stored is None:
            return None
        state = ModelState(self._spec)
        try:
            restore_state(state, stored.scalars, checkpoint.vectors)
        except hinged.InvalidState:
            logger.warning("model %s: a command restores the state of another kind", self.uid)
            return None
        state.replaced = True
        return state

    def fold_restore(self, entry: Entry, state: ModelState | None) -> None:
        """Apply a command that restores the state of a checkpoint, as `restored` made it.

        Without a state the command is counted and nothing else changes.
        """
        command = self.command_in(entry)
        if state is None:
            self.state.rejected += 1
        else:
            state.set_on_answer(self.state.on_answer)
            self.state = state
            state.note({"do": "restore"}, entry.position.id)
        self._note_command(entry)
        self.end(entry, (), (), command, self.state.detected)

    def mark_at(self, entry_id: str, ahead: Sequence[Entry]) -> Mark:
        """Return what the log had taken at one of the entries ahead; if it is none, up to here."""
        for entry in ahead:
            if entry.position.id == entry_id:
                return Mark(entry_id, entry.bytes_so_far, entry.events_so_far)
        return self._here()

    def note_stored(self, stored: str, saved: Mark) -> None:
        """Take note of the snapshot position that a reply from Redis showed.

        `saved` is what the log had taken there, if that was read.
        """
        if stored != self.stored:
            self.stored = stored
            self._saved = saved
            self.unsaved_since_s = None
            if self._commanded is not None and EntryId.of(stored) >= self._commanded:
                self._commanded = None
        if self._complete and EntryId.of(stored) >= self.position.order:
            self.unsaved_since_s = None
            for vector in self.state.vectors().values():
                vector.take_changed()
            self.base = self.position.id

    def is_saved(self) -> bool:
        """Return whether the stored snapshot is as far as this replica, and sound."""
        stored, position = self.stored, self.position
        return self._complete and (stored == position.id or EntryId.of(stored) >= position.order)

    def is_due(self, now_s: float, settings: SnapshotSettings, kept: Retention) -> bool:
        """Return whether a snapshot should be taken now; not while long work has the state.

        One costs as much as to fold dozens of events, so it waits for many of them: the less of
        the log it would save to fold again, the older that may be. A command does not wait: a
        checkpoint that it restores is kept until then. Nor does what replaces a damaged snapshot.
        Many changed names do not either, while the model has more than it changes each second:
        else one snapshot of all of them each second writes less.
        """
        if self.state is TAKEN_STATE or (self._complete and self.stored == self.position.id):
            return False
        if self.unsaved_since_s is None:
            self.unsaved_since_s = now_s
        age_s = now_s - self.unsaved_since_s
        events, size = self.log_events - self._saved.events, self.log_bytes - self._saved.bytes
        due = (
            events >= settings.snapshot_every_events
            or age_s * 1000 >= settings.snapshot_every_ms
            or (
                age_s >= _LEAST_S
                and (
                    self._commanded is not None
                    or not self._complete
                    or age_s * size >= settings.snapshot_every_byte_s
                    or (kept.bytes is not None and size >= kept.bytes)
                    or (kept.events is not None and events >= kept.events)
                )
            )
            or settings.snapshot_every_names <= self.changed_names() <= age_s * self._names()
        )
        return due and not self.is_saved()

    def unsaved(self) -> tuple[int, int]:
        """Return the events and the bytes of log that no snapshot holds, as last read."""
        return self.log_events - self._saved.events, self.log_bytes - self._saved.bytes

    def unsaved_s(self, now_s: float) -> float:
        """Return the age in seconds of the oldest change that no snapshot holds, 0 if none."""
        since_s = self.unsaved_since_s
        return 0.0 if since_s is None or self.is_saved() else now_s - since_s

    def changed_names(self) -> int:
        """Return how many stored values would have to be written."""
        count = 0
        for vector in self.state.vectors().values():
            count += vector.changed_count()
        return count

    def _names(self) -> int:
        return sum(map(len, self.state.vectors().values()))

    def saves_quickly(self, full: bool) -> bool:
        """Return whether a snapshot of the state is taken within a moment."""
        state = self.state
        if state.metrics is not None or not isinstance(state.learner, hinged.LinearClassifier):
            return False
        if full or state.pipeline is not None:
            return state.stored_bytes() <= _FEW_BYTES
        return self.changed_names() <= _FEW_NAMES

    def take_snapshot(
        self, kept: Retention, full: bool, state: ModelState | None = None
    ) -> Snapshot:
        """Return the state as it is now, to be saved; `kept` is what of the log to keep.

        `state` is that of this replica if long work has taken it.

        A full one has all names, not only those changed since `base`, and still those removed:
        if it cannot be saved, they remain to be removed.
        """
        state = state or self.state
        vectors = state.vectors()
        changed: dict[str, dict[Any, float | None]] = {}
        for name, vector in vectors.items():
            names, view = vector.take_changed(), vector.view()
            changed[name] = copied(view) if full else {}
            changed[name] |= {n: view.get(n) for n in names}
        return self._snapshot(state, changed, self._marks.oldest_wanted(self._here(), kept))

    def whole_state(self, state: ModelState) -> Snapshot:
        """Return the state of this replica, which was taken, to be kept elsewhere."""
        vectors = state.vectors().items()
        copies = {name: copied(vector.view()) for name, vector in vectors}
        return self._snapshot(state, copies, "0-0")

    def _snapshot(
        self, state: ModelState, vectors: Mapping[str, Mapping[Any, float | None]], wanted: str
    ) -> Snapshot:
        return Snapshot(
            position=self.position,
            scalars=state_scalars(state),
            vectors=vectors,
            sizes={name: len(vector) for name, vector in state.vectors().items()},
            marks=self._marks.up_to(self._here()),
            wanted=wanted,
        )

    def _here(self) -> Mark:
        return Mark(self.position.id, self.log_bytes, self.log_events)

    def settle(self, snapshot: Snapshot, saved: Saved | None, full: bool) -> None:
        """Note the fate of a snapshot of this replica; `None` if it is unknown."""
        if saved == "ok" and full:
            self._complete = True
        if saved in ("ok", "stored") and self._complete:
            if EntryId.of(self.base) < snapshot.position.order:
                self.base = snapshot.position.id
            if saved == "ok" or EntryId.of(self.stored) < snapshot.position.order:
                self.note_stored(snapshot.position.id, snapshot.marks[-1])
            return
        for name, vector in self.state.vectors().items():
            vector.put_back_changed(snapshot.vectors.get(name, ()))

    @property
    def needs_full(self) -> bool:
        """True if the stored snapshot must be replaced whole."""
        return not self._complete
