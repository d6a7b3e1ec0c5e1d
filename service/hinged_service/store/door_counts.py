"""Counts of records that a model did not learn: duplicates and dead letters, by door and reason.

The script that moves a source's offset counts them, so they are counted as often as records came.
"""

from __future__ import annotations

from collections.abc import Mapping

from hinged_service.store.connection import Connection
from hinged_service.store.keys import ModelKeys

__all__ = ["DoorCounts", "door_counts", "door_counts_in"]

DoorCounts = dict[str, dict[str, int]]
"""By door, by reason; `duplicates` are events whose id had counted before."""


def door_counts_in(meta: Mapping[str, str], uid: str) -> DoorCounts:
    """Return the counts of a model that its stream's meta has."""
    found: DoorCounts = {}
    for field, count in sorted(meta.items()):
        kind, _, rest = field.partition(f":{uid}:")
        if kind == "door" and count.isdecimal():
            door, _, what = rest.partition(":")
            found.setdefault(door, {})[what] = int(count)
    return found


async def door_counts(connection: Connection, keys: ModelKeys) -> DoorCounts:
    """Return the counts of a model."""
    return door_counts_in(await connection.hgetall(keys.on.meta), keys.uid)
