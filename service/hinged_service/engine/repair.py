"""Repair of a model whose log is damaged, from its snapshot and the sound entries."""

from __future__ import annotations

import asyncio
import logging
import secrets
from dataclasses import replace

import hinged
from hinged_service.engine.replica import Replica
from hinged_service.errors import Conflict, Unavailable
from hinged_service.model.index_entry import IndexEntry
from hinged_service.settings import SnapshotSettings
from hinged_service.store import (
    checkpoints,
    index,
    log,
    repairs,
    snapshot_reader,
    snapshot_writer,
    upgrades,
)
from hinged_service.store.connection import Connection
from hinged_service.store.followers import Retention
from hinged_service.store.keys import ModelKeys, StreamKeys
from hinged_service.store.repairs import LogRepair
from hinged_service.store.snapshot import Loaded
from hinged_service.store.upgrades import Upgrade
from hinged_service.wire import codec
from hinged_service.wire.codec import DamagedState, OtherVersion
from hinged_service.wire.progress import OnProgress, no_progress

__all__ = ["repair", "start_from_checkpoint"]

logger = logging.getLogger(__name__)

_ATTEMPTS = 20
_PAUSE_S = 0.1


async def repair(
    connection: Connection, settings: SnapshotSettings, entry: IndexEntry
) -> tuple[LogRepair, list[str]]:
    """Repair the log of a model and the records of its stream; sound parts stay as they are.

    A damaged prediction is removed: its event counts if it comes with its features. A source
    without its offset is read from its beginning: what was taken before counts again, unless it
    has an id.

    Where the content of an entry is lost, all models of the stream go on from their snapshots
    without it, on every worker.

    Returns
    -------
    The removed entries and those passed over; the uids of the models that go on from snapshots.

    Raises
    ------
    Conflict, ModelGone, Unavailable
        As for `repair_log`; Redis does not answer.

    """
    keys = StreamKeys(entry.stream)
    done = await repairs.repair_log(connection, keys.model(entry.uid))
    done.records.extend(await repairs.repair_records(connection, keys))
    if done.records:
        logger.warning(
            "stream %s: a repair removed what could not be read: %s",
            entry.stream,
            ", ".join(done.records),
        )
    if not (done.removed or done.passed_over):
        return done, [entry.uid]
    logger.warning(
        "stream %s: a repair removed the entries [%s] of the log and passes over [%s]",
        entry.stream,
        ", ".join(done.removed),
        ", ".join(done.passed_over),
    )
    found = (await index.index(connection)).models.values()
    uids = [e.uid for e in found if e.stream == entry.stream and e.base and not e.deleting]
    if done.passed_over:
        for one in found:
            if one.uid in uids:
                await _go_on_from_snapshot(connection, settings, keys.model(one.uid), one)
    return done, uids


async def start_from_checkpoint(
    connection: Connection,
    settings: SnapshotSettings,
    entry: IndexEntry,
    checkpoint: str,
    on_progress: OnProgress = no_progress,
) -> None:
    """Have a model whose snapshot is lost go on from a checkpoint, at the end of the log.

    The events between the two are not learned again. `on_progress` reports the weights that
    are read and written.

    Raises
    ------
    NotFound
        There is no such checkpoint.
    Conflict
        It cannot be read, or is of another kind of model.
    Unavailable
        Redis does not answer, or the log moved on at every attempt.

    """
    keys = StreamKeys(entry.stream).model(entry.uid)
    chunk = settings.snapshot_chunk
    found = await checkpoints.find(connection, keys.on, checkpoint)
    try:
        kept = await checkpoints.read(connection, keys.on, found.uid, chunk, on_progress)
        for _ in range(_ATTEMPTS):
            end = await log.end(connection, keys.on)
            state = None if kept.state is None else replace(kept.state, marks=[])
            loaded = Loaded(end.position, state, kept.vectors, end.mark)
            replica = await asyncio.to_thread(Replica, entry.uid, entry.spec, loaded)
            whole = replica.take_snapshot(Retention(None, settings.retention_bytes), full=True)
            stored = await snapshot_writer.save_full(
                connection, keys, whole, chunk, on_progress=on_progress
            )
            if stored.became == "ok":
                await _go_on_from_snapshot(connection, settings, keys, entry)
                return
            await asyncio.sleep(_PAUSE_S)
    except (DamagedState, OtherVersion, hinged.InvalidState) as error:
        raise Conflict(f"The checkpoint cannot be used: {error}. Choose another one.") from error
    raise Unavailable(
        "The log has new entries, or another version learns it. Try again.", retry_after_s=1
    )


async def _go_on_from_snapshot(
    connection: Connection, settings: SnapshotSettings, keys: ModelKeys, entry: IndexEntry
) -> None:
    """Have every worker load a model's snapshot and fold the log from there again.

    An entry of the log orders it, as for an upgrade: a replica may have folded what was lost.
    """
    for attempt in range(_ATTEMPTS):
        if attempt:
            await asyncio.sleep(_PAUSE_S)
        seen, stored_tag = await upgrades.seen(connection, keys)
        if seen is None or stored_tag not in ("", codec.fold_tag()):
            return  # it is gone; its own version sees to it
        loaded = await snapshot_reader.load_snapshot(
            connection, keys, entry.base or "", settings.snapshot_chunk, settings.hold_ms
        )
        origin = f"repair-{secrets.token_hex(8)}:{attempt}"
        wanted = Upgrade(seen, stored_tag, loaded.position, fresh=False, state=loaded.state)
        if await upgrades.upgrade(connection, keys, origin, wanted) in ("ok", "gone"):
            return
    raise Unavailable("The model's snapshot kept moving. Try again.", retry_after_s=1)
