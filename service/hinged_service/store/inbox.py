"""The inbox of a stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hinged_service.store import offsets
from hinged_service.store.connection import Connection
from hinged_service.store.keys import StreamKeys
from hinged_service.store.log_types import INBOX
from hinged_service.store.scripts import load

__all__ = ["Inbox", "Item", "filled", "take"]

_TAKE = load("take_inbox")
_AT_ONCE = 100


class Item(NamedTuple):
    """One entry of an inbox: its id, its field `event` (its length if too long), its field `id`."""

    id: str
    event: bytes | int | None
    name: bytes | None


class Inbox(NamedTuple):
    """The beginning of an inbox.

    Attributes
    ----------
    offset
        The id of the last entry taken, and a slash and the inbox's number after the first one.
    items
        The next entries.

    """

    offset: str
    items: Sequence[Item]

    @property
    def end(self) -> str:
        """The offset once the items are taken."""
        _, slash, nth = self.offset.partition("/")
        return f"{self.items[-1].id}{slash}{nth}"


async def filled(connection: Connection, streams: Sequence[str]) -> list[str]:
    """Return those of the streams that have something in their inboxes."""
    found: list[str] = []
    for first in range(0, len(streams), _AT_ONCE):
        some = streams[first : first + _AT_ONCE]
        flags = await connection.any_in([StreamKeys(stream).inbox for stream in some])
        found += [stream for stream, flag in zip(some, flags, strict=True) if flag]
    return found


async def take(
    connection: Connection, keys: StreamKeys, most: int, most_bytes: int, longest: int
) -> Inbox:
    """Remove the entries taken from an inbox; return the next ones.

    Parameters
    ----------
    most, most_bytes
        Most entries to return, and about how many bytes of them; one is always returned.
    longest
        Longest event to return.

    Raises
    ------
    DamagedState, Unavailable
        The inbox is no stream, or its offset cannot be read; Redis did not answer.

    """
    offset, entries = await connection.run(
        _TAKE, [keys.inbox, keys.offsets], INBOX, most, most_bytes, longest
    )
    return Inbox(
        await offsets.checked(connection, keys, INBOX, offset),
        [Item(i.decode(), event, name) for i, event, name in entries],
    )
