"""Upgrades in Redis: a model's snapshot is handed over to workers of another fold tag."""

from __future__ import annotations

import hashlib
from typing import Literal, NamedTuple

import msgspec

from hinged_service.store.connection import Connection
from hinged_service.store.keys import ModelKeys
from hinged_service.store.scripts import load
from hinged_service.store.snapshot_writer import packed_state
from hinged_service.wire import codec
from hinged_service.wire.codec import StoredState
from hinged_service.wire.position import Position

__all__ = ["Upgrade", "Upgraded", "seen", "upgrade"]

_UPGRADE = load("upgrade")


class Upgrade(NamedTuple):
    """The changes of an upgrade.

    Attributes
    ----------
    seen
        The snapshot's position as stored among the followers.
    fold
        The fold tag that the stream knows for the model; empty for none.
    start
        The position from which the new fold tag goes on.
    fresh
        Whether that is the model's base instead of its snapshot, which is then removed.
    state
        The snapshot's state; `None` if nothing is stored.

    """

    seen: str
    fold: str
    start: Position
    fresh: bool
    state: StoredState | None


Upgraded = Literal["ok", "moved", "lost", "gone"]
"""The outcome of an upgrade: it is in the log; the snapshot has changed since; the log
does not hold the position to go on from; the model is gone."""


async def seen(connection: Connection, keys: ModelKeys) -> tuple[str | None, str]:
    """Return the stored position of a model's snapshot, and the stored fold tag of the model."""
    where = await connection.hget(keys.on.followers, keys.uid)
    return where, await connection.hget(keys.on.meta, f"fold:{keys.uid}") or ""


async def upgrade(
    connection: Connection, keys: ModelKeys, origin: str, wanted: Upgrade
) -> Upgraded:
    """Hand a model over to workers of this process's fold tag; `origin` names the log's entry."""
    tag = codec.fold_tag()
    command = {"do": "upgrade", "model": keys.uid, "from": wanted.start.id, "fold": tag}
    payload = msgspec.json.encode(command)
    fate: bytes | str = "drop" if wanted.fresh else "keep"
    if wanted.state is not None and not wanted.fresh:
        fate = packed_state(wanted.state)
    reply = await connection.run(
        _UPGRADE,
        [*keys.on.followed, *keys.all()],
        keys.uid,
        wanted.seen,
        wanted.fold,
        wanted.start.id,
        wanted.start.chain,
        tag,
        origin,
        payload,
        hashlib.sha1(payload, usedforsecurity=False).hexdigest(),
        fate,
    )
    became: Upgraded = reply[0].decode()
    return became
