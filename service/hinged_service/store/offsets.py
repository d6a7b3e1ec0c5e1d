"""Offsets of sources: how far each was taken, kept beside the log."""

from __future__ import annotations

import re

from hinged_service.store import replies
from hinged_service.store.connection import Connection
from hinged_service.store.keys import StreamKeys
from hinged_service.wire.codec import DamagedState

__all__ = ["UNREADABLE", "checked", "offset", "sources"]

UNREADABLE = "unreadable"
"""Prefix of the fields of a stream's meta that name predictions and offsets which are damaged."""

_OFFSET = re.compile(rb"(\d+(\.[0-9a-f]*)?|\d+-\d+(/\d*)?)?")
"""A number of records, perhaps with a digest of them, or an entry id, perhaps of the n-th inbox."""


async def offset(connection: Connection, keys: StreamKeys, source: str) -> str:
    """Return the offset of a source, empty if nothing of it was ever taken.

    Raises
    ------
    DamagedState, Unavailable
        It cannot be read, which is noted for a repair; Redis did not answer.

    """
    stored = await connection.hget_bytes(keys.offsets, source)
    return await checked(connection, keys, source, stored or b"")


async def checked(connection: Connection, keys: StreamKeys, source: str, stored: bytes) -> str:
    """Return an offset as it was stored; see `offset`."""
    if _OFFSET.fullmatch(stored):
        return replies.text(stored)
    await connection.hset(keys.meta, f"{UNREADABLE}:offset of {source}", "1")
    raise DamagedState(
        f"the offset of the source {source!r} cannot be read: a repair of a model of the stream "
        "removes it, and the source is read from its beginning"
    )


async def sources(connection: Connection, keys: StreamKeys) -> int:
    """Return the number of sources with an offset."""
    return await connection.hlen(keys.offsets)
