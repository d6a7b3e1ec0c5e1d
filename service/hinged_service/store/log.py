"""Reading and appending to a stream's log: one function per script, typed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import msgspec

from hinged_service.store.connection import Connection
from hinged_service.store.keys import StreamKeys
from hinged_service.store.scripts import load
from hinged_service.wire import codec
from hinged_service.wire.codec import Position

__all__ = [
    "INBOX",
    "Appended",
    "Batch",
    "Caller",
    "CaughtUp",
    "Commanded",
    "Entry",
    "Letter",
    "Span",
    "append",
    "catch_up",
    "command",
    "entry_of",
    "independent_events",
    "letters",
    "offset",
    "sources",
]

INBOX = "inbox"
"""The source whose entries lie beside the log: a batch of it is taken only while they do."""

_APPEND = load("append")
_CATCH_UP = load("catch_up")
_COMMAND = load("command")
_PACK = msgspec.msgpack.Encoder()
_LETTERS_AT_ONCE = 500


class Entry(NamedTuple):
    """One log entry.

    Parameters
    ----------
    position
        Its id and chain.
    payload
        JSON array of events; `None` for an entry that holds none.
    skip
        Indices of the events that do not count.
    bytes_so_far, events_so_far
        Payload bytes and events that the log ever took up to and including this entry.
    command
        JSON of a command; `None` for an entry of events.
    joined
        JSON of the predictions that events were joined to, by index; `None` if none.

    """

    position: Position
    payload: bytes | None
    skip: frozenset[int]
    bytes_so_far: int
    events_so_far: int
    command: bytes | None = None
    joined: bytes | None = None


@dataclass(slots=True)
class Caller:
    """One caller's share of a batch: taken whole or refused whole.

    Parameters
    ----------
    count
        Its number of events.
    marks
        For events with an id: index within the caller's events, kind, event id,
        digest of the content, as `hinged_service.wire.events.mark` gives them.
    independent_events
        If above 0, this object stands for that many independent callers of one event each; its
        marks cover all of them, indexed from 0.

    """

    count: int
    marks: Sequence[tuple[int, int, str, str]] = ()
    independent_events: int = 0

    def packed(self) -> tuple[Any, ...]:
        """Return what the script takes."""
        marks = [part for mark in self.marks for part in mark]
        if self.independent_events:
            return self.independent_events, marks or False, True
        return (self.count, marks) if marks else (self.count,)


_NEXT = Caller(1, independent_events=-1)


def independent_events(count: int, marks: Sequence[tuple[int, int, str, str]]) -> list[Caller]:
    """Return so many callers of one event each.

    They go to the script as one: with ids, packing 500 took 2 µs an event and the script 3.
    """
    return [Caller(1, marks, count), *[_NEXT] * (count - 1)]


class Letter(NamedTuple):
    """A record of a source that is no event, for the stream of dead letters.

    Parameters
    ----------
    offset
        Its place in the source.
    reason
        Why it is none.
    record
        The record, or its beginning; Lua's msgpack takes no bytes.

    """

    offset: str
    reason: str
    record: str


class Span(NamedTuple):
    """The part of an outside source that a batch brings.

    Parameters
    ----------
    source
        The source's name, the same whoever reads it.
    start, end
        Where the batch begins and where the next one does; the start is empty for
        the first batch of all. Offsets are compared as text.
    places
        The offset of each event, for the dead letter of one whose id came before with
        other content.
    letters
        Records in between that are no events: they become dead letters if the batch is
        taken, in the same script.

    """

    source: str
    start: str
    end: str
    places: Sequence[str] = ()
    letters: Sequence[Letter] = ()


class Batch(NamedTuple):
    """An immutable batch of events under its name; may be sent again as it is.

    Parameters
    ----------
    producer, sequence
        The name: sequences of one producer only grow.
    payload
        JSON array of all callers' events.
    callers
        Who sent how many of them.
    span
        Where it comes from outside; then it is taken if the source stands at its
        start, whatever its name.

    """

    producer: str
    sequence: int
    payload: bytes
    callers: Sequence[Caller]
    span: Span | None = None


class Appended(NamedTuple):
    """The answer to an append.

    Parameters
    ----------
    kind
        `ok`; `replay`: this batch was taken before, here is its first answer;
        `lost`: the log does not hold the caller's position, nothing was
        written; `stale`: a later batch of the producer came first, nothing was
        written; `gone`: the model does not follow the stream (any more); `moved`:
        the source stands elsewhere, nothing was written; `ring`: send it again
        with the keys of the ring, nothing was written; `other`: workers of another
        fold tag fold the model, nothing was written.
    position
        Of the batch's own entry; the log's end if nothing of it counted.
    skip
        Indices in the payload that do not count.
    refused
        By caller the index within its events, and why, of an event that cannot be
        taken: 0 its id came before with other content, 1 no prediction waits under
        it, 2 it waited too long. No event of that caller counts.
    appended
        Whether there is an entry of the batch's own in the log.
    stored
        Entry id of the stored snapshot.
    entries, more
        What came before the own entry since the caller's position; whether the
        reply was too small for all of it.
    offset
        If `moved`: where the source stands.
    joined
        JSON of the predictions that the batch's events were joined to, if any.
    early
        Indices in the payload of labels that now wait for their prediction.
    fold
        If `other`: their tag.

    """

    kind: Literal["ok", "replay", "lost", "stale", "gone", "moved", "ring", "other"]
    position: Position | None = None
    skip: frozenset[int] = frozenset()
    refused: Mapping[int, tuple[int, int]] = MappingProxyType({})
    appended: bool = False
    stored: str | None = None
    entries: Sequence[Entry] = ()
    more: bool = False
    offset: str = ""
    joined: bytes | None = None
    early: frozenset[int] = frozenset()
    fold: str = ""


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """The answer to a catch-up; fields as in `Appended`."""

    kind: Literal["ok", "lost", "gone", "other"]
    stored: str | None = None
    entries: Sequence[Entry] = ()
    more: bool = False
    fold: str = ""


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
    skip = _indices(reply[3])
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
        _entries(reply[8]),
        bool(reply[7]),
        joined=reply[9] or None,
        early=frozenset(reply[10]),
    )


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


class Commanded(NamedTuple):
    """The answer to a command.

    Parameters
    ----------
    kind
        `ok`, or `replay` if it had been taken before; `stale`, `gone`, `other` as in
        `Appended`; `missing`: there is no such checkpoint.
    position
        Of its entry.
    fold
        As in `Appended`.

    """

    kind: Literal["ok", "replay", "stale", "gone", "missing", "other"]
    position: Position | None = None
    fold: str = ""


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


def _indices(text: bytes) -> frozenset[int]:
    return frozenset(msgspec.json.decode(text, type=list[int])) if text != b"[]" else frozenset()


def _entries(found: list[Any]) -> list[Entry]:
    return [
        entry_of(entry_id, dict(zip(flat[::2], flat[1::2], strict=True)))
        for entry_id, flat in found
    ]


def entry_of(entry_id: bytes, fields: dict[bytes, bytes]) -> Entry:
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
