"""Types of the log: entries, batches to append, and the answers of its scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from hinged_service.store.transport.shared_connection import UNSEEN, Seen
from hinged_service.wire.position import Position

__all__ = [
    "INBOX",
    "Appended",
    "Batch",
    "Caller",
    "CaughtUp",
    "Commanded",
    "Door",
    "Entry",
    "Letter",
    "Refusal",
    "Span",
]

INBOX: Final = "inbox"
"""The source whose entries lie beside the log: a batch is taken only while they exist."""


Door = Literal["", "inbox", "file", "redis-stream", "kafka"]
"""A kind of source, by which duplicates and dead letters are counted; empty: not by the log."""


class Entry(NamedTuple):
    """One log entry.

    Attributes
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


class Refusal(IntEnum):
    """Reasons of `append.lua` not to take an event; stored with a producer's batch."""

    ID_TAKEN = 0
    NO_PREDICTION = 1
    WAITED_TOO_LONG = 2
    TOO_MANY_WAIT = 3
    DAMAGED = 4


class Caller(NamedTuple):
    """Callers of a batch, in the form that the script takes: one, or some of one event each.

    A caller is taken whole or refused whole; the script numbers them.

    Attributes
    ----------
    events
        The number of events.
    marks
        For events with an id, one after the other: index within these events, kind, event id,
        digest of the content, as `hinged_service.wire.dedup.mark` gives them; `None` if none
        has an id.
    by_event
        Whether each event is a caller of its own. All go to the script as one: with ids, packing
        500 took 2 µs an event and the script 3.

    """

    events: int
    marks: Sequence[int | str] | None = None
    by_event: bool = False


class Letter(NamedTuple):
    """A record of a source that is no event, for the stream of dead letters."""

    offset: str
    reason: str
    record: str
    """The record, or its beginning; Lua's msgpack takes no bytes."""


class Span(NamedTuple):
    """The part of an outside source that a batch brings.

    Attributes
    ----------
    source
        The source's name, the same for all its readers.
    start, end
        Offsets of the batch and of the next one; the start is empty for the first batch of
        all. They are compared as text.
    places
        The offset of each event, for the dead letter of a refused one; none if no event has an id.
    letters
        Records in between that are no events: dead letters if the batch is taken.
    sizes
        Bytes of each event's JSON in the payload, likewise.
    door
        The kind of source.
    note
        The text to note with the batch until its predictions are written; empty for none. While
        one is noted no other batch of the source is taken.

    """

    source: str
    start: str
    end: str
    places: Sequence[str] = ()
    letters: Sequence[Letter] = ()
    sizes: Sequence[int] = ()
    door: Door = ""
    note: str = ""


class Batch(NamedTuple):
    """An immutable batch of events under its name; may be sent again as it is.

    Attributes
    ----------
    producer, sequence
        The name: sequences of one producer only grow.
    payload
        JSON array of all callers' events.
    callers
        Whose events these are, in order.
    span
        Its part of an outside source; then it is taken if the source stands at its start,
        under any name.

    """

    producer: str
    sequence: int
    payload: bytes
    callers: Sequence[Caller]
    span: Span | None = None

    @property
    def counts(self) -> list[int]:
        """The number of events of each caller, by its number."""
        counts: list[int] = []
        for one in self.callers:
            counts += [1] * one.events if one.by_event else [one.events]
        return counts


class Appended(NamedTuple):
    """The answer to an append.

    Attributes
    ----------
    kind
        `ok`; `replay`: this batch was taken before, with this answer. Else nothing was written:
        `lost`: the log does not hold the caller's position; `stale`: a later batch of the
        producer came first; `gone`: the model does not follow the stream; `moved`: the source
        stands elsewhere; `ring`: send it again with the keys of the ring; `other`: workers of
        another fold tag fold the model.
    position
        Of the batch's own entry; the log's end if nothing of it counted.
    skip
        Indices in the payload that do not count.
    refused
        By caller the index within its events of the one that is refused; then none counts.
    appended
        Whether the batch has an entry in the log.
    stored
        Entry id of the stored snapshot.
    entries, more
        Entries between the caller's position and the own one; whether there are more.
    offset
        If `moved`: the offset of the source.
    joined
        JSON of the predictions that the batch's events were joined to, if any.
    early
        Indices in the payload of labels that now wait for their prediction.
    fold
        If `other`: their tag.
    damaged
        If `damaged`: the id of the entry from which on none follows from the one before.
    left_out
        Ids of entries in between that do not follow from the one before, and are no part of the
        log.
    seen
        Up to when the answer is surely the newest.

    """

    kind: Literal["ok", "replay", "lost", "stale", "gone", "moved", "ring", "other", "damaged"]
    position: Position | None = None
    skip: frozenset[int] = frozenset()
    refused: Mapping[int, tuple[int, Refusal]] = MappingProxyType({})
    appended: bool = False
    stored: str | None = None
    entries: Sequence[Entry] = ()
    more: bool = False
    offset: str = ""
    joined: bytes | None = None
    early: frozenset[int] = frozenset()
    fold: str = ""
    damaged: str = ""
    left_out: Sequence[str] = ()
    seen: Seen = UNSEEN


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """The answer to a catch-up; fields as in `Appended`."""

    kind: Literal["ok", "lost", "gone", "other", "damaged"]
    stored: str | None = None
    entries: Sequence[Entry] = ()
    more: bool = False
    fold: str = ""
    damaged: str = ""
    left_out: Sequence[str] = ()
    seen: Seen = UNSEEN

    @property
    def size(self) -> int:
        """The bytes of JSON of the entries."""
        return sum(len(one.payload or b"") + len(one.joined or b"") for one in self.entries)


class Commanded(NamedTuple):
    """The answer to a command, as in `Appended`; `missing`: there is no such checkpoint."""

    kind: Literal["ok", "replay", "stale", "gone", "missing", "other"]
    position: Position | None = None
    fold: str = ""
