"""Repairs of a stream: remove entries off its chain or unreadable, pass over lost content."""

from __future__ import annotations

from typing import NamedTuple

from hinged_service.errors import Conflict, ModelGone
from hinged_service.store import followers, replies
from hinged_service.store.connection import Connection
from hinged_service.store.keys import ModelKeys, StreamKeys
from hinged_service.store.scripts import load

__all__ = ["LogRepair", "repair_log", "repair_records"]

_REPAIR = load("repair_log")
_REPAIR_RECORDS = load("repair_records")


class LogRepair(NamedTuple):
    """The ids of entries that were removed, and of those passed over; other records removed."""

    removed: list[str]
    passed_over: list[str]
    records: list[str]


async def repair_log(connection: Connection, keys: ModelKeys) -> LogRepair:
    """Repair the log from a model's snapshot on.

    Raises
    ------
    Conflict
        The log does not hold the position of the snapshot.
    ModelGone
        The model does not follow the stream.

    """
    at = await followers.snapshot_position(connection, keys)
    done = LogRepair([], [], [])
    while True:
        reply = await connection.run(_REPAIR, keys.on.followed, keys.uid, *at)
        if reply[0] == b"gone":
            raise ModelGone
        if reply[0] == b"lost":
            raise Conflict(
                "The log does not hold the position of the model's snapshot: it was trimmed or set "
                "back, or the snapshot is damaged. Repair it with ?checkpoint=NAME, if there is a "
                "checkpoint; else delete the model and create it again."
            )
        at = replies.position(reply[1], reply[2])
        done.removed.extend(one for one in replies.ids(reply[4]) if one not in done.removed)
        done.passed_over.extend(replies.ids(reply[5]))
        if not reply[3]:
            return done


async def repair_records(connection: Connection, keys: StreamKeys) -> list[str]:
    """Remove waiting predictions and offsets of sources that were found unreadable; name them."""
    removed = await connection.run(_REPAIR_RECORDS, [keys.meta, keys.offsets, *keys.pending])
    return [one.decode(errors="backslashreplace") for one in removed]
