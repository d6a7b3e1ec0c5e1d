"""What a reader gives out: records with their place, and the error that ends a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from hinged_service.wire.events import Event

__all__ = [
    "BLOCK_BYTES",
    "BLOCK_RECORDS",
    "BadRecord",
    "Block",
    "Columns",
    "FileError",
    "Record",
    "blocks_of",
]

BLOCK_RECORDS = 500
BLOCK_BYTES = 2**19


class FileError(Exception):
    """The file cannot be read, or not further; the message says what to do about it."""


class BadRecord(Exception):
    """One record is no event; the message says why, beginning with its column or field."""


class Record(NamedTuple):
    """One record of a file.

    Parameters
    ----------
    number
        Its place in the file, from 0; bad records count, blank lines do not.
    line
        The line it begins on, from 1; `None` where a format has no lines.
    event
        The event, as `POST learn` takes it; `None` for a bad record.
    error
        Why it is no event, naming the column or field; `None` for a good one.
    bytes_read
        How much of the file, as it lies on the disk, has been read so far.
    json
        The event as JSON, where that was at hand.

    """

    number: int
    line: int | None
    event: dict[str, Any] | None
    error: str | None
    bytes_read: int
    json: bytes | None = None


class Block(NamedTuple):
    """Consecutive records of a file, up to `BLOCK_RECORDS`, in about `BLOCK_BYTES` of it.

    Parameters
    ----------
    number
        The place of the first in the file.
    lines, events, errors, texts
        Of each record what `Record` calls line, event, error and json. An event whose JSON was
        read is decoded. JSON without event and error was not looked at yet:
        `hinged_service.ingest.files.ndjson.read` tells what it is.
    bytes_read
        How much of the file has been read so far.

    """

    number: int
    lines: Sequence[int | None]
    events: Sequence[dict[str, Any] | Event | None]
    errors: Sequence[str | None]
    texts: Sequence[bytes | None]
    bytes_read: int

    def records(self) -> Iterator[Record]:
        """Iterate over them one by one."""
        columns = zip(self.lines, self.events, self.errors, self.texts, strict=True)
        for number, (line, event, error, text) in enumerate(columns, self.number):
            told = _told(event) if isinstance(event, Event) else event
            yield Record(number, line, told, error, self.bytes_read, text)


class Columns:
    """A block that grows.

    Parameters
    ----------
    number
        The place of its first record in the file.

    """

    def __init__(self, number: int) -> None:
        self._number = number
        self.lines: list[int | None] = []
        self._events: list[dict[str, Any] | Event | None] = []
        self._errors: list[str | None] = []
        self._texts: list[bytes | None] = []

    @property
    def end(self) -> int:
        """The place of the record after it."""
        return self._number + len(self.lines)

    def add(self, line: int | None, event: dict[str, Any] | None, error: str | None) -> None:
        """Add a record."""
        self.lines.append(line)
        self._events.append(event)
        self._errors.append(error)
        self._texts.append(None)

    def add_all(self, last: int, events: Sequence[Event], texts: Sequence[bytes]) -> None:
        """Add the events of consecutive lines, and their JSON."""
        self.lines += range(last - len(events) + 1, last + 1)
        self._events += events
        self._errors += [None] * len(events)
        self._texts += texts

    def block(self, bytes_read: int) -> Block:
        """Return it as it is now."""
        return Block(self._number, self.lines, self._events, self._errors, self._texts, bytes_read)


def _told(event: Event) -> dict[str, Any]:
    """Return a decoded event as one that is not decoded."""
    return {"x": event.x, "y": event.y} | ({} if event.id is None else {"id": event.id})


def blocks_of(records: Iterable[Record]) -> Iterator[Block]:
    """Gather records into blocks; what comes before a fault is given out before the fault."""
    held: list[Record] = []
    try:
        for record in records:
            held.append(record)
            if len(held) == BLOCK_RECORDS or record.bytes_read - held[0].bytes_read > BLOCK_BYTES:
                yield _block(held)
                held = []
    except FileError:
        if held:
            yield _block(held)
        raise
    if held:
        yield _block(held)


def _block(records: Sequence[Record]) -> Block:
    _, lines, events, errors, _, texts = zip(*records, strict=True)
    return Block(records[0].number, lines, events, errors, texts, records[-1].bytes_read)
