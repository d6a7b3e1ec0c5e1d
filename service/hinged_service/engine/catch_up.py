"""Replication of a model from its log: catch-up, restored states, rebuilding.

The file is long: all steps of one replica along its log.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from time import perf_counter
from typing import Any, ClassVar, NoReturn

from hinged_service.engine.entry_in_parts import EntryInParts
from hinged_service.engine.long_work import TURN_S, Pace, in_parts, in_thread
from hinged_service.engine.replica import Replica
from hinged_service.engine.snapshots import (
    FAR_BYTES,
    SnapshotWriter,
    folded_elsewhere,
    load_replica,
    replica_ahead,
)
from hinged_service.engine.status import ModelStatus, Status
from hinged_service.errors import Detail, ModelGone, NotFound, SetAside
from hinged_service.model.index_entry import IndexEntry
from hinged_service.model.results import Result
from hinged_service.settings import Settings
from hinged_service.store import checkpoints, followers
from hinged_service.store.connection import Connection
from hinged_service.store.keys import ModelKeys
from hinged_service.store.log import EventLog
from hinged_service.store.log_types import Appended, CaughtUp, Entry
from hinged_service.store.snapshot import Loaded
from hinged_service.store.transport.shared_connection import UNSEEN, Pulse, Seen
from hinged_service.wire.codec import DamagedState, OtherVersion
from hinged_service.wire.events import Event
from hinged_service.wire.position import Position
from hinged_service.wire.progress import OnProgress, no_progress

__all__ = ["REBUILDS", "LogFollower"]

logger = logging.getLogger(__name__)

REBUILDS = 3
"""Rebuilds of a replica before its model is given up."""
_LEFT_OUT = 100
_DAMAGED_S = 5
_PAUSE_S = 0.001
_ANOTHER_PAST = "The log does not hold the model's position: it was trimmed or set back"


class _ReloadSnapshot(Exception):
    """The next entries go only on top of the stored snapshot; the text has the reason."""


class LogFollower:
    """The replica of a model, and its way along the log: one step at a time.

    `GroupCommit` is the only caller of its steps, so that no two overlap. The other parts of a
    live model find connection, settings and status here.

    Attributes
    ----------
    replica
        The current replica; another one after a rebuild.
    status
        The model's status: live once the end of the log was seen.
    seen
        Up to when, on the loop's clock, the replica surely has all of the log.
    in_trouble
        True from the start or a rebuild until the end of the log was seen.
    pace
        How much the model does within one turn of the loop.
    worked_until_s
        When long work of folding ended the last time, on the loop's clock.
    keys, log
        The model's keys; the log of its stream.
    replica_kind
        The class of its replicas.

    """

    replica_kind: ClassVar[type[Replica]] = Replica

    __slots__ = (
        *("_left_out", "_loop", "_read_ahead", "_snapshots", "connection", "entry", "in_trouble"),
        *("keys", "log", "name", "observer", "pace", "replica", "seen", "settings", "status"),
        *("worked_until_s",),
    )

    def __init__(
        self,
        connection: Connection,
        settings: Settings,
        name: str,
        entry: IndexEntry,
        keys: ModelKeys,
        replica: Replica,
        status: ModelStatus,
        snapshots: SnapshotWriter,
    ) -> None:
        self.connection = connection
        self.settings = settings
        self.name = name
        self.entry = entry
        self.replica = replica
        self.status = status
        self.keys = keys
        self.log = EventLog(connection, self.keys)
        self.observer = connection.observer
        self.seen = UNSEEN
        self.in_trouble = True
        self.pace = Pace(entry.fold)
        self.worked_until_s = -1e9
        self._snapshots = snapshots
        self._left_out: list[str] = []
        self._read_ahead: tuple[str, Loaded] | None = None
        self._loop = asyncio.get_running_loop()

    @contextlib.contextmanager
    def restoring(self, checkpoint: str, state: Loaded) -> Iterator[None]:
        """Load the state of the checkpoint of that uid for the command that restores it."""
        self._read_ahead = checkpoint, state
        try:
            yield
        finally:
            self._read_ahead = None

    async def fold_through(self, own: Position | None) -> list[Result] | None:
        """Catch up to `own`, or to the log's end; return the outcomes of the entry `own`."""
        rebuilds = 0
        jumps, most = own is None, self.settings.reply_bytes
        outcomes: list[Result] | None = None
        while own is None or self.replica.position.order < own.order:
            reply = await self._read(min(most, FAR_BYTES) if jumps else most)
            if reply.kind == "lost":
                rebuilds += 1
                await self.rebuild(rebuilds)
                continue
            if jumps and reply.more and reply.entries:
                jumps = False
                ahead = await replica_ahead(
                    self.connection, self.settings, self.entry, self.replica, reply
                )
                if ahead is not None:
                    self.replica = ahead
                    continue
            saved = self.replica.mark_at(reply.stored or "", reply.entries)
            try:
                outcomes = await self._fold(reply.entries, own) or outcomes
                self._check_awaited(reply.more)
            except _ReloadSnapshot as error:
                rebuilds += 1
                await self.rebuild(rebuilds, str(error))
                continue
            if reply.stored is not None:
                await self.replica.at_rest(None)
                self.replica.note_stored(reply.stored, saved)
            if not reply.more:
                self.seen = reply.seen
                if self.in_trouble:
                    self.end_trouble()
                break
            self._snapshots.save_if_due(self.replica)
        return outcomes

    async def _read(self, size: int) -> CaughtUp:
        """Return the next entries, up to `size` bytes, or raise as `give_up`."""
        reply = await self.log.catch_up(self.replica.position, size)
        if reply.kind not in ("ok", "lost"):
            await self.give_up(reply)
        if reply.left_out:
            await self.leave_out(reply.left_out)
        return reply

    async def fold_between(self, reply: Appended) -> bool:
        """Fold the entries of others; `False` if the snapshot was loaded instead."""
        if reply.left_out:
            await self.leave_out(reply.left_out)
        try:
            await self._fold(reply.entries)
            self._check_awaited(reply.more)
        except _ReloadSnapshot as error:
            await self.rebuild(1, str(error))
            return False
        return True

    async def _fold(
        self, entries: Sequence[Entry], own: Position | None = None
    ) -> list[Result] | None:
        found = None
        began_s = self._loop.time()
        for entry in entries:
            if entry.command is not None:
                command = self.replica.command_in(entry) or {}
                if _is_upgrade(command) and not self.replica.passes(entry, command):
                    raise _ReloadSnapshot("An upgrade went on from another snapshot")
                if (uid := _to_restore(command)) is not None:
                    found_state = await self._restored(uid, entry.position)
                    restore = functools.partial(self.replica.restored, found_state)
                    state = await in_thread(restore)
                    await self.replica.at_rest(None)
                    self.replica.fold_restore(entry, state)
                    continue
            outcomes = await self.apply(entry)
            if entry.position == own:
                found = outcomes
            began_s = await self._let_others_in(began_s)
        return found

    async def apply(
        self, entry: Entry, events: Sequence[Event | None] | None = None
    ) -> list[Result]:
        """Apply the next entry as `Replica.fold_entry` does; in the thread if that takes long.

        It waits for the long work under way on the model.
        """
        replica = self.replica
        size = len(entry.payload or b"") + len(entry.joined or b"")
        count = entry.events_so_far - replica.log_events
        if size <= self.pace.few and count <= self.pace.most_events:
            await replica.at_rest(None)
            began_s = perf_counter()
            outcomes = replica.fold_entry(entry, events)
            if perf_counter() - began_s > TURN_S:
                self.pace.note(size, perf_counter() - began_s)
            return outcomes
        async with replica.take(changes=True) as state:
            parts = EntryInParts(replica, state, entry, events)
            took_s = await in_parts(parts.step)
        outcomes = parts.end()  # at once: no reader may see the state without its position
        self.pace.note(size, took_s)
        self.worked_until_s = self._loop.time()
        return outcomes

    async def _let_others_in(self, began_s: float) -> float:
        """Pause if a turn of folding was long; return when the present turn began.

        A call to another model takes several rounds of the loop, and each waits for a turn.
        """
        if self._loop.time() - began_s < TURN_S:
            return began_s
        self._snapshots.save_if_due(self.replica)  # now: the thread may have the state again soon
        await asyncio.sleep(_PAUSE_S)
        return self._loop.time()

    def _check_awaited(self, more: bool) -> None:
        """Raise unless the log has the upgrade under which the snapshot was loaded."""
        if self.replica.awaited_upgrade is not None and not more:
            raise _ReloadSnapshot("A failover of Redis lost an upgrade")

    async def _restored(self, uid: str, at: Position) -> Loaded | None:
        """Return the state that the entry at a position restores, `None` if there never was one.

        A checkpoint can be dropped as soon as the model's snapshot is past the command.
        """
        ahead, self._read_ahead = self._read_ahead, None
        if ahead is not None and ahead[0] == uid:
            return ahead[1]
        found = await self.read_checkpoint(uid)
        if found is None:
            stored = await followers.snapshot_position(self.connection, self.keys)
            if stored.order >= at.order:
                raise _ReloadSnapshot("A checkpoint that the model restored was deleted since")
        return found

    async def read_checkpoint(
        self, uid: str, on_progress: OnProgress = no_progress
    ) -> Loaded | None:
        """Return the state of a checkpoint, `None` if there is none."""
        try:
            return await checkpoints.read(
                self.connection, self.keys.on, uid, self.settings.snapshot_chunk, on_progress
            )
        except NotFound:
            return None
        except (DamagedState, OtherVersion) as error:
            raise SetAside(f"A restored checkpoint cannot be read: {error}.") from error

    async def rebuild(self, times: int, why: str = _ANOTHER_PAST) -> None:
        """Load the snapshot instead of the replica, for the `times`-th time in the present step.

        Raises
        ------
        SetAside
            It was done `REBUILDS` times already; or as `load_replica` does, like its other errors.

        """
        if times > REBUILDS:
            await followers.end_hold(self.connection, self.keys)
            raise SetAside(
                f"{why}, and the model's snapshot cannot replace it. If there is a checkpoint, "
                f"continue from it with POST /v1/models/{self.name}/repair?checkpoint=NAME; else "
                "delete the model and create it again.",
                retry_after_s=60,
            )
        self.in_trouble = True
        self.seen = Seen(Pulse(self.seen.pulse.at_s))
        self.observer.changes.enter(
            ("rebuilt", self.entry.uid),
            logger,
            "model %s: %s; loading the snapshot",
            self.name,
            why,
            extra=self.context,
        )
        if times > 1:  # others trim faster than this worker loads: have them wait for it
            await followers.hold_snapshot(self.connection, self.keys, self.settings.hold_ms)
        watchers = self.replica.watchers
        self.replica = await load_replica(
            self.connection, self.settings, self.entry, self.replica_kind
        )
        self.replica.watchers = watchers

    async def give_up(self, reply: CaughtUp | Appended) -> NoReturn:
        """Raise the error for a reply by which the model cannot go on here.

        Raises
        ------
        ModelGone, SetAside
            It was deleted; others fold it, or the log is damaged.

        """
        if reply.kind == "damaged":
            await self.stop_at(reply.damaged)
        if reply.kind == "other":
            raise folded_elsewhere(reply.fold)
        raise ModelGone

    async def leave_out(self, entries: Sequence[str]) -> None:
        """Report entries that do not follow from the one before: no worker folds them."""
        new = [one for one in entries if one not in self._left_out]
        if not new:
            return
        self._left_out += new[:_LEFT_OUT]
        self.observer.left_out(len(new))
        logger.error(
            "model %s: %d entries of the log do not follow from the one before and are left out: "
            "%s; POST /v1/models/%s/repair removes them",
            self.name,
            len(new),
            ", ".join(new[:_LEFT_OUT]),
            self.name,
            extra=self.context,
        )
        await self.log.note_damage("", new)

    async def stop_at(self, entry_id: str) -> NoReturn:
        """Note the entry that this worker cannot read past: none appends then, until a repair.

        Raises
        ------
        SetAside
            Always.

        """
        await self.log.note_damage(entry_id, ())
        raise SetAside(
            "The log is damaged: an entry does not follow from the one before, and none after "
            f"it does: see errors. POST /v1/models/{self.name}/repair skips it.",
            [Detail("log", f"entry {entry_id} does not follow from the one before")],
            retry_after_s=_DAMAGED_S,
        )

    async def is_past(self, position: Position) -> bool:
        """Return whether the log holds `position`; one before its start counts as held."""
        if position == self.replica.position:
            return True
        log = self.keys.on.log
        entry = await self.connection.entry(log, position.id)
        if entry is not None:
            return entry[b"chain"].decode() == position.chain
        first = await self.connection.first_id(log)
        return first is not None and Position(first, "").order > position.order

    def end_trouble(self) -> None:
        """Note that the end of the log was seen for the first time since a rebuild."""
        self.in_trouble = False
        self.status.change(Status.LIVE)
        changes = self.observer.changes
        for trouble in ("rebuilt", "damaged"):
            changes.leave((trouble, self.entry.uid), logger)
        changes.leave(
            ("aside", self.entry.uid),
            logger,
            "model %s is served again",
            self.name,
            extra=self.context,
        )

    async def traced(self, name: str, done: Awaitable[Any], events: int | None = None) -> Any:
        """Wait for work on the model, under a span if there are any."""
        tracing = self.observer.tracing
        if tracing is None:
            return await done
        with tracing.span(name, self.name, events) as span:
            try:
                return await done
            finally:
                span.set_attribute("hinged.position", str(self.replica.position))

    @property
    def context(self) -> dict[str, str]:
        """Model and position, for a line of the worker's log."""
        return {"model": self.name, "position": str(self.replica.position)}


def _is_upgrade(command: Mapping[str, Any]) -> bool:
    """Return whether a command lets another fold tag go on with the model."""
    return (
        command.get("do") == "upgrade"
        and isinstance(command.get("fold"), str)
        and isinstance(command.get("from"), str)
    )


def _to_restore(command: Mapping[str, Any]) -> str | None:
    """Return the uid of the checkpoint that a command restores."""
    uid = command.get("checkpoint")
    return uid if command.get("do") == "restore" and isinstance(uid, str) else None
