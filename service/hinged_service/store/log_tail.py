"""The end of a log, read backwards."""

from __future__ import annotations

from collections.abc import AsyncIterator

from hinged_service.store.connection import Connection
from hinged_service.store.keys import StreamKeys
from hinged_service.store.log import Entry, entry_of

__all__ = ["backwards"]

_ENTRIES_AT_ONCE = 64
_BYTES_AT_ONCE = 2**18


async def backwards(connection: Connection, keys: StreamKeys) -> AsyncIterator[Entry]:
    """Yield the entries of a log, the newest first.

    Large entries are read one by one, so that no reply of Redis is much larger than the
    largest entry.

    Raises
    ------
    Unavailable
        Redis does not answer.

    """
    count, before = 1, None
    while True:
        found = await connection.newest(keys.log, count, before)
        for entry_id, fields in found:
            yield entry_of(entry_id, fields)
        if len(found) < count:
            return
        before = found[-1][0].decode()
        largest = max(len(fields.get(b"events", b"")) for _, fields in found)
        count = max(1, min(2 * count, _ENTRIES_AT_ONCE, _BYTES_AT_ONCE // (largest + 1)))
