"""A stream's log for readers that do not write: the usual case by plain commands."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from hinged_service.store import replies
from hinged_service.store.connection import Connection
from hinged_service.store.followers import parse_position
from hinged_service.store.keys import ModelKeys
from hinged_service.store.log import EventLog
from hinged_service.store.log_types import CaughtUp, Entry
from hinged_service.store.transport.shared_connection import Pulse, Seen
from hinged_service.wire import codec
from hinged_service.wire.position import Position

__all__ = ["LogReader"]

_FIRST, _FEWEST, _MOST = 4, 2, 512
"""Entries per read: at first, at least and at most."""
_NO_ENTRY = (LookupError, ValueError, msgspec.MsgspecError)


class LogReader(EventLog):
    """A log whose chain is checked here, not in Redis, whose time is that of all its clients.

    Three plain commands in one go read it. All irregular cases (a position that the log does not
    hold, an entry that does not follow from the one before) are left to the script of
    `EventLog`, which decides it for all readers alike.
    """

    def __init__(self, connection: Connection, keys: ModelKeys) -> None:
        super().__init__(connection, keys)
        self._count = _FIRST

    async def catch_up(self, position: Position, reply_bytes: int) -> CaughtUp:
        """Return the entries after `position`, up to about `reply_bytes` of them.

        An entry is returned once it was the log's end, or another one follows from it: until then
        it may be one that a server brought back after its second start.
        """
        on, uid, count = self._on, self._uid, self._count
        seen = Seen(Pulse(asyncio.get_running_loop().time()))
        meta, stored, found = await self._connection.ask_each(
            {
                on.meta: ("HMGET", on.meta, "last", "chain", f"fold:{uid}"),
                on.followers: ("HGET", on.followers, uid),
                on.log: ("XRANGE", on.log, f"({position.id}", "+", "COUNT", count),
            }
        )
        entries = _straight(position, found)
        if entries is None or stored is None or meta[2] not in (None, codec.fold_tag().encode()):
            return await super().catch_up(position, reply_bytes)
        places = [position, *[entry.position for entry in entries]]
        end = b".".join(meta[:2]).decode() if all(meta[:2]) else ""
        more = end not in map(str, places)
        if more and len(entries) < count:
            return await super().catch_up(position, reply_bytes)
        if str(places[-1]) != end:
            entries.pop()
        largest = max((len(entry.payload or b"") for entry in entries), default=0)
        more_next = 2 * max(len(entries), _FEWEST)
        self._count = max(_FEWEST, min(more_next, _MOST, reply_bytes // (largest + 1)))
        stored_id = parse_position(stored.decode(errors="replace")).id
        return CaughtUp("ok", stored_id, entries, more, seen=seen)


def _straight(position: Position, found: Sequence[Any]) -> list[Entry] | None:
    """Return entries that each follow from the one before, the first from `position`."""
    entries = []
    at, chain = position.id.encode(), position.chain.encode()
    try:
        for entry_id, flat in found:
            fields = replies.fields(flat)
            payload = fields.get(b"events") or fields[b"command"]
            link = hashlib.sha1(chain + at + fields[b"from"], usedforsecurity=False)
            link.update(hashlib.sha1(payload, usedforsecurity=False).hexdigest().encode())
            link.update(fields.get(b"skip", b"[]") + fields.get(b"joined", b""))
            at, chain = entry_id, fields[b"chain"]
            if link.hexdigest().encode() != chain:
                return None
            entries.append(replies.entry(entry_id, fields))
    except _NO_ENTRY:
        return None
    return entries
