"""A replica and its snapshot in Redis: loaded when a model is opened, saved as it moves."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import hinged
from hinged_service.engine.damage import set_aside_for
from hinged_service.engine.replica import Replica
from hinged_service.engine.state_access import TAKEN_STATE
from hinged_service.errors import ModelGone, NotFound, ServiceError, SetAside
from hinged_service.model.index_entry import IndexEntry
from hinged_service.settings import SnapshotSettings
from hinged_service.store import checkpoints, followers, snapshot_reader, snapshot_writer
from hinged_service.store.connection import Connection
from hinged_service.store.keys import ModelKeys, StreamKeys
from hinged_service.store.log_types import CaughtUp
from hinged_service.store.snapshot import Loaded, Saved
from hinged_service.wire import codec
from hinged_service.wire.codec import DamagedState, OtherVersion
from hinged_service.wire.position import EntryId, Mark, Position, UpgradePoint
from hinged_service.wire.progress import OnProgress, no_progress

__all__ = [
    "FAR_BYTES",
    "SnapshotWriter",
    "folded_elsewhere",
    "load_replica",
    "replica_ahead",
    "small_replica",
]

logger = logging.getLogger(__name__)

FAR_BYTES = 2**20
"""Bytes of log behind which a replica goes on from the snapshot, if that has fewer."""
_PAUSE_S = 0.1
_OTHER_S = 5  # an upgrade may come any moment
_MANY_EVENTS, _MANY_BYTES = 16, 2**14  # of log to be folded again at the next use
_NAMES_PER_SCRIPT = 15_000  # one script that writes more would stall other clients over 75 ms


class _Owner(Protocol):
    """A model whose snapshots are saved."""

    def read_again(self, lost: Replica) -> None:
        """Read the log again, as `lost` is not of its past."""
        ...


class SnapshotWriter:
    """Saves a model's snapshots, one at a time, in tasks of their own.

    Parameters
    ----------
    owner
        Returns what reads the log again when that no longer contains the replica's position, or
        the model was handed over to another version; `None` if there is nothing any more.

    Attributes
    ----------
    kept
        Part of the log to keep behind the snapshots.

    """

    __slots__ = (
        *("_connection", "_default", "_keys", "_loop", "_name", "_not_before_s", "_owner"),
        *("__weakref__", "_settings", "_stopped", "_task", "kept"),
    )

    def __init__(
        self,
        connection: Connection,
        settings: SnapshotSettings,
        name: str,
        keys: ModelKeys,
        owner: Callable[[], _Owner | None],
    ) -> None:
        self._connection = connection
        self._settings = settings
        self._name = name
        self._keys = keys
        self._owner = owner
        self._task: asyncio.Task[None] | None = None
        self._not_before_s = 0.0
        self._stopped = False
        self._default = followers.Retention(None, settings.retention_bytes)
        self.kept = self._default
        self._loop = asyncio.get_running_loop()

    @property
    def busy(self) -> bool:
        """True while a snapshot is being saved."""
        return self._task is not None

    def keep(self, asked: followers.Retention) -> None:
        """Keep that much of the log; as the settings have it if no model of the stream does."""
        self.kept = self._default if asked == (None, None) else asked

    def stop(self) -> None:
        """Take no further snapshot: the replica is outdated."""
        self._stopped = True

    def save_if_due(self, replica: Replica) -> None:
        """Start saving a snapshot if one is due and none is being saved."""
        now_s = self._loop.time()
        if self._stopped or self._task is not None or now_s < self._not_before_s:
            return
        if replica.is_due(now_s, self._settings, self.kept):
            self._task = self._loop.create_task(self._save(replica))

    def save_before_leaving(self, replica: Replica) -> bool:
        """Start saving a model to be dropped, if its log is long; return whether that was begun."""
        events, size = replica.unsaved()
        if events < _MANY_EVENTS and size < _MANY_BYTES:
            return False
        if self._stopped or self._loop.time() < self._not_before_s:
            return False
        if replica.state is TAKEN_STATE or replica.is_saved():
            return False
        self._task = self._loop.create_task(self._save(replica))
        return True

    async def save(self, replica: Replica) -> None:
        """Save a snapshot of what is not saved yet, after the one under way."""
        if self._task is not None:
            await asyncio.wait([self._task])
        if not (self._stopped or replica.is_saved()):
            self._task = self._loop.create_task(self._save(replica))
            await asyncio.wait([self._task])

    async def _save(self, replica: Replica) -> None:
        changes, key = self._connection.observer.changes, ("snapshot", self._keys.uid)
        try:
            await replica.at_rest(None)
            whole = replica.needs_full or replica.changed_names() > _NAMES_PER_SCRIPT
            saved = await self._save_once(replica, full=whole)
            if saved == "full" and not self._stopped:
                saved = await self._save_once(replica, full=True)
            if saved in ("later", "incomplete"):
                self._not_before_s = self._loop.time() + _PAUSE_S
            if saved in ("lost", "other"):
                self._report_loss(replica)
            changes.leave(key, logger, "model %s: snapshots are saved again", self._name)
        except ServiceError:  # the names stay marked; the next append or read logs it
            self._not_before_s = self._loop.time() + _PAUSE_S
        except Exception as error:  # noqa: BLE001 - logged there; the next one may go well
            self._not_before_s = self._loop.time() + _PAUSE_S
            changes.enter(
                key,
                logger,
                "model %s: no snapshot can be saved: %s",
                self._name,
                type(error).__name__,
                level=logging.ERROR,
                exc_info=True,
                extra={"model": self._name, "position": str(replica.position)},
            )
        finally:
            self._task = None

    def _report_loss(self, replica: Replica) -> None:
        owner = self._owner()
        if owner is not None:
            owner.read_again(replica)

    async def _save_once(self, replica: Replica, full: bool) -> Saved:
        tracing = self._connection.observer.tracing
        if tracing is None:
            return await self._saved(replica, full)
        with tracing.span("snapshot", self._name, root=True) as span:
            span.set_attribute("hinged.position", str(replica.position))
            return await self._saved(replica, full)

    async def _saved(self, replica: Replica, full: bool) -> Saved:
        quick = replica.saves_quickly(full)
        snapshot = await replica.look(
            functools.partial(replica.take_snapshot, self.kept, full), lambda: quick
        )
        saved: Saved | None = None
        try:
            if full:
                chunk = self._settings.snapshot_chunk
                stored = await snapshot_writer.save_full(
                    self._connection, self._keys, snapshot, chunk, lambda: not self._stopped
                )
            else:
                stored = await snapshot_writer.save_changes(
                    self._connection, self._keys, snapshot, replica.base, small=quick
                )
            saved = stored.became
            if stored.kept is not None:
                self.keep(stored.kept)
        finally:
            await replica.at_rest(None)
            replica.settle(snapshot, saved, full)
        return saved


def small_replica(
    entry: IndexEntry, loaded: Loaded, kind: type[Replica] = Replica
) -> Replica | None:
    """Return the replica of a small model's snapshot; `None` if `load_replica` has to make it.

    That imports parts of River in a thread, starts from checkpoints, and deals with damage.
    """
    if not entry.fold.needs_no_import or (loaded.state is None and entry.origin is not None):
        return None
    try:
        return kind(entry.uid, entry.fold, loaded)
    except (DamagedState, hinged.InvalidState):
        return None


async def replica_ahead(
    connection: Connection,
    settings: SnapshotSettings,
    entry: IndexEntry,
    replica: Replica,
    reply: CaughtUp,
) -> Replica | None:
    """Return a replica of the stored snapshot, if `reply` does not reach it: to go on from there.

    So one that was not asked for long is up to date soon, though it read nothing meanwhile.
    `None` if `replica` gets there as soon by folding, or is watched: then it folds every entry.
    """
    if (
        EntryId.of(reply.stored or "0") <= reply.entries[-1].position.order
        or replica.watchers
        or replica.taken
        or replica.state.stored_bytes() > FAR_BYTES
    ):
        return None
    try:
        ahead = await load_replica(connection, settings, entry, type(replica))
    except SetAside:  # the log has all of it
        return None
    return ahead if ahead.position.order > replica.position.order else None


async def load_replica(
    connection: Connection,
    settings: SnapshotSettings,
    entry: IndexEntry,
    kind: type[Replica] = Replica,
    on_progress: OnProgress = no_progress,
) -> Replica:
    """Return a model's replica as its snapshot has it, or from its base if that is damaged.

    It is of the `kind`; `on_progress` reports the weights that are read.

    Raises
    ------
    ModelGone
        The model does not follow its stream.
    SetAside
        Workers of another version fold the model, or its state is lost.
    Unavailable
        Redis does not answer.

    """
    if entry.base is None:
        raise ModelGone("The model was not registered. Create it again.")
    keys = StreamKeys(entry.stream)
    chunk = settings.snapshot_chunk
    try:
        loaded = await snapshot_reader.load_snapshot(
            connection,
            keys.model(entry.uid),
            entry.base,
            chunk,
            settings.hold_ms,
            codec.fold_tag(),
            on_progress,
        )
        if loaded.state is not None or entry.origin is None:
            # in a thread: it may import parts of River, and the other models must go on meanwhile
            return await asyncio.to_thread(kind, entry.uid, entry.fold, loaded)
        at = loaded.mark, loaded.barrier
        return await at_origin(connection, keys, entry, *at, chunk, kind, on_progress)
    except OtherVersion as error:
        raise folded_elsewhere(str(error)) from None
    except (DamagedState, hinged.InvalidState) as error:
        connection.observer.changes.enter(
            ("damaged", entry.uid),
            logger,
            "model %s: %s; folding the log from the model's base instead",
            entry.uid,
            error,
            level=logging.ERROR,
        )
    try:
        barrier = await followers.upgrade_point(connection, keys.model(entry.uid))
    except DamagedState as error:
        raise set_aside_for(error) from error
    if barrier is not None and barrier.start != Position.parse(entry.base).id:
        raise SetAside(
            "The model's snapshot is damaged, and more than one version learned the events "
            "before it. Let this version learn the log again: hinged upgrade MODEL.",
            retry_after_s=_OTHER_S,
        )
    return await at_origin(connection, keys, entry, None, barrier, chunk, kind, on_progress)


def folded_elsewhere(tag: str) -> SetAside:
    """Return why a model that workers of another fold tag fold cannot be served here."""
    return SetAside(
        f"The model is folded by {tag}, and this worker is {codec.fold_tag()}: their arithmetic "
        "may differ. Ask a worker of that version; when none is left, let this version go on: "
        "hinged upgrade MODEL (or --all).",
        retry_after_s=_OTHER_S,
    )


async def at_origin(
    connection: Connection,
    keys: StreamKeys,
    entry: IndexEntry,
    mark: Mark | None,
    barrier: UpgradePoint | None,
    chunk: int,
    kind: type[Replica] = Replica,
    on_progress: OnProgress = no_progress,
) -> Replica:
    """Return a model's replica as it was at its base: fresh, or as its checkpoint has it.

    `mark` and `barrier` are those of the log until there and the last upgrade.

    Raises
    ------
    SetAside
        The checkpoint is gone or cannot be used.
    ModelGone, Unavailable
        The model was deleted, and the checkpoint with it; Redis does not answer.

    """
    base = Position.parse(entry.base or "")
    loaded = Loaded(base, None, {}, mark, barrier)
    if entry.origin is not None:
        try:
            found = await checkpoints.read(connection, keys, entry.origin, chunk, on_progress)
        except (DamagedState, OtherVersion, NotFound) as error:
            # a deletion takes the model off its stream before it takes the checkpoint
            await followers.snapshot_position(connection, keys.model(entry.uid))
            raise SetAside(
                f"The checkpoint that the model starts with cannot be used: {error}.",
                retry_after_s=60,
            ) from error
        state = None if found.state is None else replace(found.state, marks=[])
        loaded = Loaded(base, state, found.vectors, mark, barrier)
    try:
        return await asyncio.to_thread(kind, entry.uid, entry.fold, loaded, complete=False)
    except hinged.InvalidState as error:
        raise SetAside(
            f"The checkpoint that the model starts with is of another kind of model: {error}.",
            retry_after_s=60,
        ) from error
