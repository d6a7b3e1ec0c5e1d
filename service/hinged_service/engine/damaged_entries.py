"""Models whose index entry cannot be read: taken over by their spec, or removed."""

from __future__ import annotations

import msgspec

import hinged
from hinged_service.engine.replica import Replica
from hinged_service.errors import Conflict
from hinged_service.model.index_entry import IndexEntry
from hinged_service.model.spec import ModelSpec
from hinged_service.settings import Settings
from hinged_service.store import followers, index, snapshot_reader
from hinged_service.store.connection import Connection
from hinged_service.store.index import DamagedEntry
from hinged_service.store.keys import StreamKeys
from hinged_service.wire.codec import DamagedState, OtherVersion
from hinged_service.wire.faults import DECODE_ERRORS
from hinged_service.wire.position import Position

__all__ = ["put_back", "remove", "take_over"]

_UNKNOWN = Position("0-0", "0" * 40)
"""The base of a model that was taken over: no log holds it, so nothing is folded from there."""


class _Remains(msgspec.Struct):
    """The part of a damaged index entry that names its model."""

    uid: str
    stream: str


async def take_over(
    connection: Connection, settings: Settings, name: str, spec: ModelSpec, damaged: DamagedEntry
) -> bool:
    """Restore the index entry of a model from its spec and its stream's copy.

    If the stream holds no model without a name, the damaged entry is removed.

    Returns
    -------
    Whether the entry was replaced or removed; else another worker changed it.

    Raises
    ------
    DamagedEntry
        It may be the entry of a newer version of the service.
    Conflict
        The stream holds several models without a name, or one of another spec.

    """
    if _remains(damaged) is not None:
        raise damaged
    stream = spec.stream or name
    keys = StreamKeys(stream)
    found = await _unnamed(connection, keys)
    if not found:
        return await index.replace_damaged(connection, name, damaged, None)
    if len(found) > 1:
        raise Conflict(
            f"The index entry of {name!r} is damaged, and the stream {stream!r} holds "
            f"{len(found)} models without one. It is unknown to which it belonged. Delete it."
        )
    [(uid, position)] = found.items()
    saved = await connection.hlen(keys.model(uid).state) > 0
    entry = IndexEntry(
        uid=uid,
        stream=stream,
        fold=spec.on(stream),
        base=str(_UNKNOWN if saved else position),
        origin=await _origin(connection, keys, uid),
    )
    chunk, hold_ms = settings.snapshot_chunk, settings.hold_ms
    try:
        loaded = await snapshot_reader.load_snapshot(
            connection, keys.model(uid), entry.base or "", chunk, hold_ms
        )
        Replica(uid, entry.spec, loaded)
    except (DamagedState, OtherVersion, hinged.InvalidState) as error:
        raise Conflict(
            f"The index entry of {name!r} is damaged, and what the stream {stream!r} holds of the "
            f"model does not fit that spec: {error}. Send the spec that it had, or delete it."
        ) from error
    return await index.replace_damaged(connection, name, damaged, entry)


async def put_back(connection: Connection, name: str, damaged: DamagedEntry) -> IndexEntry:
    """Give a model its index entry again, as its stream notes it.

    Raises
    ------
    DamagedEntry
        No stream notes a model of that name, or the note cannot be read, either.

    """
    remains = _remains(damaged)
    streams = {e.stream for e in (await index.index(connection)).models.values()} - {name}
    for stream in [name, *sorted(streams)] if remains is None else [remains.stream]:
        keys = StreamKeys(stream)
        following = await followers.snapshot_positions(connection, keys)
        for uid, (noted, text) in (await followers.noted_entries(connection, keys)).items():
            if noted != name or uid not in following or (remains and remains.uid != uid):
                continue
            try:
                entry = IndexEntry.loads(text)
            except ValueError:
                continue
            if await index.replace_damaged(connection, name, damaged, entry):
                return entry
    raise damaged


async def remove(connection: Connection, name: str, damaged: DamagedEntry) -> bool:
    """Remove a damaged index entry with the data that is surely its model's.

    Returns
    -------
    Whether it was removed; else another worker changed it.

    """
    remains = _remains(damaged)
    keys = StreamKeys(name if remains is None else remains.stream)
    for uid in await _unnamed(connection, keys, but=name):
        if remains is None or uid == remains.uid:
            await followers.delete(connection, keys.model(uid))
    return await index.replace_damaged(connection, name, damaged, None)


async def _unnamed(
    connection: Connection, keys: StreamKeys, but: str | None = None
) -> dict[str, Position]:
    """Return the followers of a stream that no entry names.

    With `but`, none if other entries than that one are damaged: they may name them.
    """
    # In this order: a model that is just made has its entry before its follower.
    following = await followers.snapshot_positions(connection, keys)
    found = await index.index(connection)
    if but is not None and found.unreadable != [but]:
        return {}
    named = {entry.uid for entry in found.models.values()}
    return {uid: position for uid, position in following.items() if uid not in named}


async def _origin(connection: Connection, keys: StreamKeys, uid: str) -> str | None:
    """Return the uid of the checkpoint that a model started with, from its pin."""
    for field, value in (await connection.hgetall(keys.meta)).items():
        kind, _, rest = field.partition(":")
        if kind == "pin" and value == "base" and rest.endswith(f":{uid}"):
            return rest.removesuffix(f":{uid}")
    return None


def _remains(damaged: DamagedEntry) -> _Remains | None:
    try:
        return msgspec.json.decode(damaged.stored, type=_Remains)
    except (*DECODE_ERRORS, UnicodeDecodeError):
        return None
