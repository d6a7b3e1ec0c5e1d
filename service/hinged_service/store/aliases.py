"""Aliases in Redis: names that point to a model of a stream."""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from hinged_service.store.connection import Connection
from hinged_service.store.keys import StreamKeys
from hinged_service.store.scripts import load
from hinged_service.wire.faults import DECODE_ERRORS

__all__ = ["Promoted", "meant", "of_stream", "promote", "remove"]

_PROMOTE = load("promote")


class _Meant(msgspec.Struct):
    uid: str


class Promoted(NamedTuple):
    """The answer to a promotion, and the uid of the model that the alias points to now.

    `moved`: the alias pointed to another model, nothing was done; `made`: that decision was carried
    out before; `gone`: no such model follows the stream.
    """

    kind: Literal["ok", "moved", "made", "gone"]
    uid: str | None = None


async def promote(
    connection: Connection, keys: StreamKeys, alias: str, of: str, to: str, decision: str
) -> Promoted:
    """Point `alias` to the model `to` instead of `of` (uids; `of` is empty for a new alias)."""
    touched = [keys.meta, keys.followers, keys.aliases, *keys.seen]
    reply = await connection.run(_PROMOTE, touched, alias, of, to, decision)
    return Promoted(reply[0].decode(), reply[1].decode() if len(reply) > 1 else None)


async def meant(connection: Connection, keys: StreamKeys, alias: str) -> str | None:
    """Return the uid of the model that an alias points to."""
    text = await connection.hget(keys.aliases, alias)
    return None if text is None else _uid(text)


async def of_stream(connection: Connection, keys: StreamKeys) -> dict[str, str]:
    """Return the aliases of a stream with the uids of the models that they point to."""
    found = await connection.hgetall(keys.aliases)
    return {alias: _uid(text) for alias, text in found.items()}


async def remove(connection: Connection, keys: StreamKeys, alias: str) -> None:
    """Remove an alias."""
    await connection.hdel(keys.aliases, alias)


def _uid(text: str) -> str:
    try:
        return msgspec.json.decode(text, type=_Meant).uid
    except DECODE_ERRORS:
        return ""
