"""Answers of a model to the events that it learns, recorded before it learns them.

An answer is no part of the state: once its event is learned, only the fold from an earlier state
gives it again. So a checkpoint is kept, from which the answers of an entry can be made again.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import replace

import hinged
from hinged_service.engine.catch_up import LogFollower
from hinged_service.engine.model_checkpoints import ModelCheckpoints
from hinged_service.engine.replica import Replica
from hinged_service.engine.snapshots import SnapshotWriter, load_replica
from hinged_service.engine.status import ModelStatus, Status
from hinged_service.errors import NotFound, SetAside
from hinged_service.model.predictor import Prediction
from hinged_service.model.state import ModelState
from hinged_service.store import prediction_notes
from hinged_service.store.checkpoints import Checkpoint
from hinged_service.store.prediction_notes import Note
from hinged_service.store.snapshot import Loaded
from hinged_service.wire.position import EntryId, Position

__all__ = ["Answers", "PriorAnswers"]

_MOST_ENTRIES = 16

Answers = dict[int, Prediction]
"""The answers of one log entry, by the number of the event in it."""


class _Recorder:
    """The answers to the last entries, by entry; with `only`, those to that one alone."""

    def __init__(self, only: str = "") -> None:
        self.entries: dict[str, Answers] = {}
        self._only = only

    def __call__(self, entry: str, number: int, answer: Prediction) -> None:
        if self._only and entry != self._only:
            return
        if entry not in self.entries and len(self.entries) >= _MOST_ENTRIES:  # those of others
            del self.entries[next(iter(self.entries))]
        self.entries.setdefault(entry, {})[number] = answer


class PriorAnswers:
    """The answers of a live model, and the notes of those that are not written yet."""

    def __init__(self, follower: LogFollower, checkpoints: ModelCheckpoints) -> None:
        self._follower = follower
        self._checkpoints = checkpoints
        self._recorder = _Recorder()

    def record(self, state: ModelState) -> None:
        """Record the answers of the model from now on; `state` is its present one."""
        if state.on_answer is not self._recorder:
            state.set_on_answer(self._recorder)

    def take(self, entry: str) -> Answers:
        """Return the recorded answers of an entry, and forget those of all entries."""
        found = self._recorder.entries.pop(entry, {})
        self._recorder.entries.clear()
        return found

    async def noted(self, source: str) -> Note | None:
        """Return the batch of a source whose predictions are not written yet."""
        return await prediction_notes.find(
            self._follower.connection, self._follower.keys.on, source
        )

    async def written(self, source: str, entry: str) -> None:
        """Note that the predictions of a source's batch are written."""
        await prediction_notes.end(self._follower.connection, self._follower.keys.on, source, entry)

    async def keep_base(self, stem: str) -> None:
        """Keep the present state for `again`, instead of earlier ones of that stem."""
        made = await self._checkpoints.make(f"{stem}-{secrets.token_hex(4)}")
        await self.drop_bases(stem, made.uid)

    async def drop_bases(self, stem: str, but: str = "") -> None:
        """Drop the states of a stem."""
        for one in await self._bases(stem):
            if one.uid != but:
                await self._checkpoints.drop(one.uid, one.name)

    async def _bases(self, stem: str) -> list[Checkpoint]:
        listed = await self._checkpoints.listed()
        return [one for one in listed if (one.name or "").startswith(f"{stem}-")]

    async def again(self, note: Note, stem: str) -> Answers | None:
        """Return the answers of a noted batch, from a state that was kept, or stored, before it.

        `None` if there is no such state, or the log does not lead from there to the batch.
        """
        if note.uid != self._follower.entry.uid:
            return None
        order = EntryId.of(note.position.id)
        for find in (self._from_base, self._from_snapshot):
            replica = await find(stem, order)
            found = None if replica is None else await self._folded(replica, note.position)
            if found is not None:
                return found
        return None

    async def _from_base(self, stem: str, before: EntryId) -> Replica | None:
        """Return a replica at the newest state of a stem that was kept before an entry."""
        entry = self._follower.entry
        for base in reversed(await self._bases(stem)):
            at = Position.parse(base.position or "")
            if at.order < before:
                try:
                    found = await self._checkpoints.read(base)
                    state = None if found.state is None else replace(found.state, marks=[])
                    loaded = Loaded(at, state, found.vectors)
                    return await asyncio.to_thread(Replica, entry.uid, entry.fold, loaded)
                except (NotFound, SetAside, hinged.InvalidState):
                    return None
        return None

    async def _from_snapshot(self, stem: str, before: EntryId) -> Replica | None:
        """Return a replica at the stored snapshot if that is before an entry."""
        follower = self._follower
        replica = await load_replica(follower.connection, follower.settings, follower.entry)
        return replica if replica.position.order < before else None

    async def _folded(self, replica: Replica, to: Position) -> Answers | None:
        """Return the answers of the entry `to`, to which a replica is folded."""
        follower, recorder = self._follower, _Recorder(to.id)
        replica.state.set_on_answer(recorder)
        connection, settings, keys = follower.connection, follower.settings, follower.keys
        status = ModelStatus()
        status.change(Status.CATCHING_UP)
        snapshots = SnapshotWriter(connection, settings, follower.name, keys, lambda: None)
        snapshots.stop()
        other = LogFollower(
            connection, settings, follower.name, follower.entry, keys, replica, status, snapshots
        )
        folded = await other.fold_through(to)
        if folded is None or other.replica is not replica:
            return None
        return recorder.entries.get(to.id, {})
