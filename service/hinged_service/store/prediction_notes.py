"""Notes of batches whose predictions are not written yet: one of each source at most."""

from __future__ import annotations

from typing import NamedTuple

from hinged_service.store.connection import Connection
from hinged_service.store.keys import StreamKeys
from hinged_service.store.scripts import load
from hinged_service.wire.position import Position

__all__ = ["Note", "end", "find"]

_END = load("end_note")


class Note(NamedTuple):
    """A batch as its append noted it: its entry, the model that predicts it, and the text."""

    position: Position
    uid: str
    text: str


async def find(connection: Connection, keys: StreamKeys, source: str) -> Note | None:
    """Return the note of a source, `None` if all its predictions are written."""
    found = await connection.hget(keys.meta, f"unpredicted:{source}")
    if found is None:
        return None
    entry, chain, uid, text = found.split(" ", 3)
    return Note(Position(entry, chain), uid, text)


async def end(connection: Connection, keys: StreamKeys, source: str, entry: str) -> None:
    """Remove the note of a source if it is of that entry."""
    await connection.run(_END, [keys.meta], source, entry)
