"""A stream's log: appending to it, catching up with it, reading it backwards."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from hinged_service.store.connection import Connection
from hinged_service.store.keys import StreamKeys
from hinged_service.store.log_types import INBOX, Appended, Batch, CaughtUp, Commanded, Entry
from hinged_service.store.scripts import load
from hinged_service.wire import codec
from hinged_service.wire.codec import Position

__all__ = ["append", "backwards", "catch_up", "command", "letters", "offset", "sources"]

_APPEND = load("append")
_CATCH_UP = load("catch_up")
_COMMAND = load("command")
_PACK = msgspec.msgpack.Encoder()
_LETTERS_AT_ONCE = 500
_ENTRIES_AT_ONCE = 64
_BYTES_AT_ONCE = 2**18
_NONE: frozenset[int] = frozenset()


async def append(
    connection: Connection,
    keys: StreamKeys,
    uid: str,
    position: Position,
    batch: Batch,
    reply_bytes: int,
    ring: bool,
    timeout_s: float | None = None,
) -> Appended:
    """Append a batch for the model `uid`, whose replica stands at `position`.

    Parameters
    ----------
    connection, keys, uid, position
        The worker's connection, the stream's keys, the model, its replica's place.
    batch
        The batch.
    reply_bytes
        How many bytes of entries the reply may carry.
    ring
        Whether predictions may wait for these events.
    timeout_s
        Longest to wait, in seconds.

    Raises
    ------
    Unavailable
        Redis did not answer; the batch may or may not have been taken. Send
        the same batch again, or never again.

    """
    callers = [caller.packed() for caller in batch.callers if caller.independent_events >= 0]
    span = batch.span
    reply = await connection.run(
        _APPEND,
        [
            keys.meta,
            keys.log,
            keys.followers,
            keys.producers,
            *keys.seen,
            keys.offsets,
            keys.dead,
            *(keys.pending if ring else ()),
            *((keys.inbox,) if span is not None and span.source == INBOX else ()),
        ],
        uid,
        batch.producer,
        batch.sequence,
        position.id,
        position.chain,
        batch.payload,
        hashlib.sha1(batch.payload, usedforsecurity=False).hexdigest(),
        _PACK.encode(callers),
        reply_bytes,
        int(ring),
        codec.fold_tag(),
        *(() if span is None else (*span[:3], _PACK.encode(span[3:]))),
        timeout_s=timeout_s,
    )
    kind = reply[0].decode()
    if kind == "moved":
        return Appended("moved", offset=reply[1].decode())
    if kind == "other":
        return Appended("other", fold=reply[1].decode())
    if kind not in ("ok", "replay"):
        return Appended(kind)
    own = Position(reply[1].decode(), reply[2].decode())
    skip = _indices(reply[3]) if reply[3] != b"[]" else _NONE
    refused = {}
    if reply[4]:
        refused = {a: (b, c) for a, b, c in zip(*[iter(reply[4])] * 3, strict=True)}
    if kind == "replay":
        appended = len(skip) < sum(caller.count for caller in batch.callers)
        return Appended("replay", own, skip, refused, appended)
    return Appended(
        "ok",
        own,
        skip,
        refused,
        bool(reply[5]),
        reply[6].decode(),
        _entries(reply[8]) if reply[8] else (),
        bool(reply[7]),
        joined=reply[9] or None,
        early=frozenset(reply[10]),
    )


async def command(
    connection: Connection,
    keys: StreamKeys,
    uid: str,
    producer: str,
    sequence: int,
    payload: bytes,
    checkpoint: str | None = None,
) -> Commanded:
    """Append a command for the model `uid`; under one name it is taken once.

    Parameters
    ----------
    connection, keys, uid
        The worker's connection, the stream's keys, the model.
    producer, sequence
        The command's name, as of a `Batch`.
    payload
        JSON of the command.
    checkpoint
        Uid of the checkpoint that it names, which then cannot be deleted until the
        model's snapshot is past it.

    Raises
    ------
    Unavailable
        Redis did not answer; the command may or may not have been taken.

    """
    reply = await connection.run(
        _COMMAND,
        [
            keys.meta,
            keys.log,
            keys.followers,
            keys.producers,
            *([keys.checkpoint(checkpoint).state] if checkpoint else []),
        ],
        uid,
        producer,
        sequence,
        payload,
        hashlib.sha1(payload, usedforsecurity=False).hexdigest(),
        checkpoint or "",
        codec.fold_tag(),
    )
    kind = reply[0].decode()
    if kind == "other":
        return Commanded("other", fold=reply[1].decode())
    if kind not in ("ok", "replay"):
        return Commanded(kind)
    return Commanded(kind, Position(reply[1].decode(), reply[2].decode()))


async def catch_up(
    connection: Connection, keys: StreamKeys, uid: str, position: Position, reply_bytes: int
) -> CaughtUp:
    """Return the entries after `position`, up to about `reply_bytes` of them.

    Raises
    ------
    Unavailable
        Redis did not answer.

    """
    reply = await connection.run(
        _CATCH_UP,
        [keys.meta, keys.log, keys.followers],
        uid,
        position.id,
        position.chain,
        reply_bytes,
        codec.fold_tag(),
    )
    kind = reply[0].decode()
    if kind == "other":
        return CaughtUp("other", fold=reply[1].decode())
    if kind != "ok":
        return CaughtUp(kind)
    return CaughtUp("ok", reply[1].decode(), _entries(reply[3]), bool(reply[2]))


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
            yield _entry(entry_id, fields)
        if len(found) < count:
            return
        before = found[-1][0].decode()
        largest = max(len(fields.get(b"events", b"")) for _, fields in found)
        count = max(1, min(2 * count, _ENTRIES_AT_ONCE, _BYTES_AT_ONCE // (largest + 1)))


async def offset(connection: Connection, keys: StreamKeys, source: str) -> str:
    """Return where a source stands, empty if nothing of it was ever taken."""
    return await connection.hget(keys.offsets, source) or ""


async def letters(connection: Connection, keys: StreamKeys, source: str) -> int:
    """Return how many dead letters of a source are kept."""
    count, before, wanted = 0, None, source.encode()
    while page := await connection.newest(keys.dead, _LETTERS_AT_ONCE, before):
        count += sum(fields.get(b"source") == wanted for _, fields in page)
        before = page[-1][0].decode()
    return count


async def sources(connection: Connection, keys: StreamKeys) -> int:
    """Return how many sources the stream keeps the offset of."""
    return await connection.hlen(keys.offsets)


def _entries(found: list[Any]) -> list[Entry]:
    return [
        _entry(entry_id, dict(zip(flat[::2], flat[1::2], strict=True))) for entry_id, flat in found
    ]


def _entry(entry_id: bytes, fields: dict[bytes, bytes]) -> Entry:
    """Return an entry from its id and fields in Redis."""
    return Entry(
        Position(entry_id.decode(), fields[b"chain"].decode()),
        fields.get(b"events"),
        _indices(fields.get(b"skip", b"[]")),
        int(fields[b"bytes"]),
        int(fields[b"count"]),
        fields.get(b"command"),
        fields.get(b"joined"),
    )


def _indices(text: bytes) -> frozenset[int]:
    return frozenset(msgspec.json.decode(text, type=list[int])) if text != b"[]" else _NONE
