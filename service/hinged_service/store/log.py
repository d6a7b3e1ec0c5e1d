"""A stream's log: appending to it, catching up with it, reading it backwards."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple

import msgspec

from hinged_service.store import replies
from hinged_service.store.connection import Connection
from hinged_service.store.followers import parse_position
from hinged_service.store.keys import ModelKeys, StreamKeys
from hinged_service.store.log_types import (
    INBOX,
    Appended,
    Batch,
    CaughtUp,
    Commanded,
    Entry,
    Refusal,
)
from hinged_service.store.offsets import UNREADABLE
from hinged_service.store.scripts import load
from hinged_service.store.transport.shared_connection import Pulse, Seen, Word
from hinged_service.wire import codec
from hinged_service.wire.codec import DamagedState
from hinged_service.wire.position import EntryId, Mark, Position

__all__ = ["EventLog", "backwards", "caught_up", "damage", "end", "letters"]

_APPEND = load("append")
_CATCH_UP = load("catch_up")
_CATCH_UP_READING = load("catch_up", reading=True)
_COMMAND = load("command")
_NOTE_DAMAGE = load("note_damage")
_PACK = msgspec.msgpack.Encoder()
_NONE: frozenset[int] = frozenset()
_LETTERS_AT_ONCE = 500
_ENTRIES_AT_ONCE = 64
_BYTES_AT_ONCE = 2**18
_LARGE_BYTES = 2**19  # hashed beside the loop
_NO_ENTRY = (LookupError, ValueError, msgspec.MsgspecError)


def _digest(payload: bytes) -> str:
    return hashlib.sha1(payload, usedforsecurity=False).hexdigest()


class EventLog:
    """The log of a stream, as one of its models appends to it and follows it.

    Each call raises `Unavailable` if Redis does not answer; what it sent may or may not have
    been taken then.

    Parameters
    ----------
    connection, keys
        The worker's connection, the model's keys.

    Attributes
    ----------
    ahead
        A position and the answer to a catch-up from there that was read before.

    """

    __slots__ = ("_append_keys", "_connection", "_fold_tag", "_on", "_uid", "ahead")

    def __init__(self, connection: Connection, keys: ModelKeys) -> None:
        self._connection = connection
        self.ahead: tuple[Position, CaughtUp] | None = None
        self._uid = keys.uid
        self._fold_tag = codec.fold_tag()
        self._on = keys.on
        self._append_keys: list[str] = []

    async def append(
        self,
        position: Position,
        batch: Batch,
        reply_bytes: int,
        ring: bool,
        timeout_s: float | None = None,
    ) -> Appended:
        """Append a batch; send the same one again, or never again, if Redis does not answer.

        Parameters
        ----------
        position
            Where the model's replica stands.
        batch
            The batch.
        reply_bytes
            Most bytes of entries in the reply.
        ring
            Whether predictions may wait for these events.
        timeout_s
            Longest to wait, in seconds.

        """
        on, payload = self._on, batch.payload
        if len(payload) > _LARGE_BYTES:
            digest = await asyncio.to_thread(_digest, payload)
        else:
            digest = _digest(payload)
        if not self._append_keys:  # most of many models are never appended to here
            self._append_keys = [*on.followed, on.producers, *on.seen, on.offsets, on.dead]
        span = batch.span
        keys = [
            *self._append_keys,
            *(on.pending if ring else ()),
            *((on.inbox,) if span is not None and span.source == INBOX else ()),
        ]
        args: Sequence[Word] = (
            self._uid,
            batch.producer,
            batch.sequence,
            position.id,
            position.chain,
            payload,
            digest,
            _PACK.encode(batch.callers),
            reply_bytes,
            int(ring),
            self._fold_tag,
            *(() if span is None else (*span[:3], _PACK.encode(span[3:7]))),
            *(() if span is None or not span.note else (span.note,)),
        )
        reply, seen = await self._connection.share(
            _APPEND, keys, *args, changes=True, size=len(payload), timeout_s=timeout_s
        )
        kind = reply[0].decode()
        if kind == "moved":
            return Appended("moved", offset=reply[1].decode())
        if kind == "other":
            return Appended("other", fold=reply[1].decode())
        if kind == "damaged":
            return Appended("damaged", damaged=reply[1].decode())
        if kind not in ("ok", "replay"):
            return Appended(kind)
        own = Position(reply[1].decode(), reply[2].decode())
        skip = _NONE if reply[3] == b"[]" else replies.indices(reply[3])
        refused = {}
        if reply[4]:
            refused = {a: (b, Refusal(c)) for a, b, c in zip(*[iter(reply[4])] * 3, strict=True)}
        if kind == "replay":
            appended = len(skip) < sum(caller.events for caller in batch.callers)
            return Appended("replay", own, skip, refused, appended)
        return Appended(
            "ok",
            own,
            skip,
            refused,
            bool(reply[5]),
            reply[6].decode(),
            replies.entries(reply[8]) if reply[8] else (),
            bool(reply[7]),
            joined=reply[9] or None,
            early=frozenset(reply[10]),
            left_out=replies.ids(reply[11]) if reply[11] else (),
            seen=seen,
        )

    async def command(
        self, producer: str, sequence: int, payload: bytes, checkpoint: str | None = None
    ) -> Commanded:
        """Append a command; under one name it is taken once.

        Parameters
        ----------
        producer, sequence
            The command's name, as of a `Batch`.
        payload
            JSON of the command.
        checkpoint
            Uid of the checkpoint that it names, which then cannot be deleted until the
            model's snapshot is past it.

        """
        on = self._on
        reply = await self._connection.run(
            _COMMAND,
            [
                *(*on.followed, on.producers),
                *([on.checkpoint(checkpoint).state] if checkpoint else []),
            ],
            self._uid,
            producer,
            sequence,
            payload,
            hashlib.sha1(payload, usedforsecurity=False).hexdigest(),
            checkpoint or "",
            self._fold_tag,
        )
        kind = reply[0].decode()
        if kind == "other":
            return Commanded("other", fold=reply[1].decode())
        if kind not in ("ok", "replay"):
            return Commanded(kind)
        return Commanded(kind, replies.position(reply[1], reply[2]))

    async def catch_up(self, position: Position, reply_bytes: int) -> CaughtUp:
        """Return the entries after `position`, up to about `reply_bytes` of them.

        Those that came with the snapshot are returned first.
        """
        ahead, self.ahead = self.ahead, None
        if ahead is not None and ahead[0] == position:
            return ahead[1]
        args = self._uid, position.id, position.chain, reply_bytes, self._fold_tag
        if self._connection.notes:
            reply, seen = await self._connection.share(_CATCH_UP, self._on.followed, *args)
        else:
            seen = Seen(Pulse(asyncio.get_running_loop().time()))
            reply = await self._connection.run(_CATCH_UP_READING, self._on.followed, *args)
        return caught_up(reply, seen)

    async def unchanged(self, seen: Seen) -> bool:
        """Ask the log's server whether the stream changed since it was `seen`."""
        before_s = seen.pulse.at_s
        await asyncio.shield(self._connection.look(seen.pulse, self._on.meta, "last"))
        return seen.notified and seen.pulse.at_s > before_s

    async def note_damage(self, damaged: str, left_out: Sequence[str]) -> None:
        """Note, for all workers to know, past which entry none can read, and those left out."""
        if not self._connection.notes:
            return
        on = self._on
        await self._connection.run(
            _NOTE_DAMAGE, [on.meta, on.followers], self._uid, damaged, *left_out
        )


def caught_up(reply: list[Any], seen: Seen) -> CaughtUp:
    """Return the answer to a catch-up from the reply of its script."""
    kind = reply[0].decode()
    if kind == "other":
        return CaughtUp("other", fold=reply[1].decode())
    if kind == "damaged":
        return CaughtUp("damaged", damaged=reply[1].decode())
    if kind != "ok":
        return CaughtUp(kind)
    return CaughtUp(
        "ok",
        reply[1].decode(),
        replies.entries(reply[3]),
        bool(reply[2]),
        left_out=replies.ids(reply[4]),
        seen=seen,
    )


class LogEnd(NamedTuple):
    """The end of a log, and what it had taken until there."""

    position: Position
    mark: Mark


async def end(connection: Connection, keys: StreamKeys) -> LogEnd:
    """Return the end of a log; `DamagedState` if the stream does not have it."""
    meta = await connection.hgetall(keys.meta)
    try:
        position = Position.parse(f"{meta['last']}.{meta['chain']}")
        return LogEnd(position, Mark(position.id, int(meta["bytes"]), int(meta["count"])))
    except (LookupError, ValueError) as error:
        raise DamagedState("the stream has no readable end of its log") from error


async def damage(connection: Connection, keys: ModelKeys) -> dict[str, str]:
    """Return what was noted as damaged of a model's stream: where, and what it is."""
    found: dict[str, str] = {}
    for field, value in (await connection.hgetall(keys.on.meta)).items():
        kind, _, rest = field.partition(":")
        if kind == "foreign":
            found[rest] = "does not follow from the entry before; it is left out"
        elif kind == "void":
            found[rest] = "is damaged; a repair skipped it"
        elif kind == UNREADABLE and rest:
            found[rest] = "cannot be read; a repair removes it"
        elif kind == "damaged" and rest == keys.uid:
            stored = parse_position(await connection.hget(keys.on.followers, keys.uid) or "")
            if stored.order < EntryId.of(value):
                found[value] = "does not follow from the entry before, and none after it does"
    return found


async def backwards(connection: Connection, keys: StreamKeys) -> AsyncIterator[Entry]:
    """Yield the entries of a log, the newest first.

    Large entries are read one by one, so that no reply of Redis is much larger than the
    largest entry.
    """
    meta = await connection.hgetall(keys.meta)
    count, before = 1, None
    while True:
        found = await connection.newest(keys.log, count, before)
        for entry_id, fields in found:
            skipped = f"foreign:{entry_id.decode()}" in meta or f"void:{entry_id.decode()}" in meta
            with contextlib.suppress(*_NO_ENTRY):
                if not skipped:
                    yield replies.entry(entry_id, fields)
        if len(found) < count:
            return
        before = found[-1][0].decode()
        largest = max(len(fields.get(b"events", b"")) for _, fields in found)
        count = max(1, min(2 * count, _ENTRIES_AT_ONCE, _BYTES_AT_ONCE // (largest + 1)))


async def letters(connection: Connection, keys: StreamKeys, source: str) -> int:
    """Return the number of dead letters of a source."""
    count, before, wanted = 0, None, source.encode()
    while page := await connection.newest(keys.dead, _LETTERS_AT_ONCE, before):
        count += sum(fields.get(b"source") == wanted for _, fields in page)
        before = page[-1][0].decode()
    return count
