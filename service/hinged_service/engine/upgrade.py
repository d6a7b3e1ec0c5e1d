"""A model handed over to this version of the service, from its stored snapshot on."""

from __future__ import annotations

import asyncio
import logging
import secrets
from typing import NamedTuple

import hinged
from hinged_service.engine.replica import Replica
from hinged_service.engine.snapshots import at_origin
from hinged_service.errors import Conflict, ModelGone, Unavailable
from hinged_service.model.index_entry import IndexEntry
from hinged_service.settings import SnapshotSettings
from hinged_service.store import followers, snapshot_reader, upgrades
from hinged_service.store.connection import Connection
from hinged_service.store.keys import ModelKeys, StreamKeys
from hinged_service.store.upgrades import Upgrade
from hinged_service.wire import codec
from hinged_service.wire.codec import DamagedState, OtherVersion
from hinged_service.wire.position import Position
from hinged_service.wire.progress import OnProgress, no_progress

__all__ = ["Handover", "take_over"]

logger = logging.getLogger(__name__)

_ATTEMPTS = 20
_PAUSE_S = 0.05


class Handover(NamedTuple):
    """Fold tag of a model, and the one before, empty if none is stored.

    This version goes on from the position, or did so before.
    """

    position: Position
    fold: str
    before: str


async def take_over(
    connection: Connection,
    settings: SnapshotSettings,
    entry: IndexEntry,
    on_progress: OnProgress = no_progress,
) -> Handover:
    """Let workers of this process's fold tag go on with a model; the same again changes nothing.

    `on_progress` reports the weights that are read.

    They go on from the stored snapshot. If they cannot read it, the log is folded again from
    the model's base, as long as it reaches back so far.

    Raises
    ------
    Conflict
        Neither can be done; nothing was changed.
    ModelGone
        The model does not follow its stream.
    SetAside
        The model cannot be used here for another reason.
    Unavailable
        Redis does not answer, or the snapshot kept moving.

    """
    if entry.base is None:
        raise ModelGone("The model was not registered. Create it again.")
    keys = StreamKeys(entry.stream).model(entry.uid)
    origin = f"upgrade-{secrets.token_hex(8)}"
    for attempt in range(_ATTEMPTS):
        if attempt:
            await asyncio.sleep(_PAUSE_S)
            await followers.hold_snapshot(connection, keys, settings.hold_ms)
        wanted = await _wanted(connection, settings, keys, entry, on_progress)
        if isinstance(wanted, Handover):
            return wanted
        became = await upgrades.upgrade(connection, keys, f"{origin}:{attempt}", wanted)
        if became == "gone":
            raise ModelGone
        if became == "lost":
            raise Conflict(
                "Nothing was changed: the log does not reach back to a state from which this "
                "version could continue. Keep the previous version, or delete the model and create "
                "it again."
            )
        if became == "ok":
            tag = codec.fold_tag()
            logger.info("model %s: folded by %s from %s on", entry.uid, tag, wanted.start.id)
            return Handover(wanted.start, tag, wanted.fold)
    raise Unavailable("The model's snapshot kept moving. Try again.", retry_after_s=1)


async def _wanted(
    connection: Connection,
    settings: SnapshotSettings,
    keys: ModelKeys,
    entry: IndexEntry,
    on_progress: OnProgress,
) -> Upgrade | Handover:
    """Return the upgrade to do, or the one that is in force already."""
    seen, stored_tag = await upgrades.seen(connection, keys)
    if seen is None:
        raise ModelGone
    tag, base = codec.fold_tag(), Position.parse(entry.base or "")
    chunk = settings.snapshot_chunk
    try:
        loaded = await snapshot_reader.load_snapshot(
            connection, keys, entry.base or "", chunk, settings.hold_ms, on_progress=on_progress
        )
        if loaded.state is None:
            await at_origin(connection, keys.on, entry, None, None, chunk, on_progress=on_progress)
        else:
            await asyncio.to_thread(Replica, entry.uid, entry.spec, loaded)
    except (DamagedState, OtherVersion, hinged.InvalidState) as error:
        last = await followers.upgrade_point(connection, keys)
        ours = stored_tag in ("", tag) and not isinstance(error, OtherVersion)
        if ours and (last is None or last.start == base.id):
            return Handover(base, tag, tag)  # it makes its snapshot again by itself
        await at_origin(connection, keys.on, entry, None, None, chunk, on_progress=on_progress)
        logger.warning("model %s: %s; its log is folded again from its base", entry.uid, error)
        return Upgrade(seen, stored_tag, base, fresh=True, state=None)
    if loaded.fold == tag or (loaded.fold == "" and loaded.state is None):
        return Handover(loaded.position, tag, tag)
    return Upgrade(seen, stored_tag, loaded.position, fresh=False, state=loaded.state)
