"""Models that the index lost, found again by the copies on their streams."""

from __future__ import annotations

import logging

from hinged_service.errors import SetAside
from hinged_service.model.index_entry import IndexEntry
from hinged_service.store import followers, index, log
from hinged_service.store.connection import Connection
from hinged_service.store.keys import StreamKeys
from hinged_service.wire.codec import DamagedState

__all__ = ["put_back", "recovered", "unlisted", "unused"]

logger = logging.getLogger(__name__)


async def recovered(connection: Connection, name: str) -> IndexEntry | None:
    """Put a model back into the index if it has none of that name, but its stream has the model.

    Only the stream of the model's own name is looked at; sweeps find the other models of a stream.

    Returns
    -------
    Its index entry; `None` if there is nothing to find again.

    """
    keys = StreamKeys(name)
    for uid, (noted, text) in (await followers.noted_entries(connection, keys)).items():
        if noted == name and uid in await followers.snapshot_positions(connection, keys):
            return await put_back(connection, name, text)
    return None


async def put_back(connection: Connection, name: str, text: str) -> IndexEntry | None:
    """Put a noted entry back into the index; `None` if the name is taken or it cannot be read."""
    try:
        entry = IndexEntry.loads(text)
    except ValueError:
        return None
    if not await index.enter(connection, name, entry, 0):
        return None
    logger.error(
        "model %s was lost from the index of Redis; its stream %s has it, and it is back",
        name,
        entry.stream,
        extra={"model": name},
    )
    return entry


async def unused(connection: Connection, stream: str) -> bool:
    """Return whether a stream holds nothing: it never got an event or command, and has no state."""
    keys = StreamKeys(stream)
    try:
        mark = (await log.end(connection, keys)).mark
    except DamagedState:
        return False
    return not (mark.bytes or mark.events or await connection.hlen(keys.checkpoints))


async def unlisted(connection: Connection, stream: str) -> set[str]:
    """Return the uids of the followers of a stream that the index knows nothing of.

    Raises
    ------
    SetAside
        The index has entries that cannot be read here: they may be theirs.

    """
    keys = StreamKeys(stream)
    following = await followers.snapshot_positions(connection, keys)
    if not following:
        return set()
    found = await index.index(connection)
    unknown = following.keys() - {entry.uid for entry in found.models.values()}
    if unknown and found.unreadable:
        raise SetAside(
            f"The stream {stream!r} has a model that may belong to an unreadable index entry.",
            retry_after_s=60,
        )
    # one that was just deleted is in neither
    return unknown & (await followers.snapshot_positions(connection, keys)).keys()
