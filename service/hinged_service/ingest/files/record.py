"""Records of a file with their place, one by one and in blocks, and the errors of reading."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from hinged_service.errors import ServiceError
from hinged_service.wire.decoding import parse_events
from hinged_service.wire.events import Event

__all__ = [
    "BLOCK_BYTES",
    "BLOCK_JSON_BYTES",
    "BLOCK_RECORDS",
    "BadRecord",
    "Block",
    "Columns",
    "FileError",
    "Record",
    "json_bytes",
    "read_event",
]

BLOCK_RECORDS = 500
BLOCK_BYTES = 2**19
BLOCK_JSON_BYTES = 2**20
_PER_FEATURE = 24
"""Bytes of JSON of a number, and of the characters around name and value."""

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class FileError(Exception):
    """The file cannot be read, or not further; the message states the remedy."""


class BadRecord(Exception):
    """One record is no event; the message has the reason, after its column or field."""


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
        How much of the file, as it lies on the disk, has been read with its block.
    json
        The event as JSON, where that was read already.

    """

    number: int
    line: int | None
    event: dict[str, Any] | None
    error: str | None
    bytes_read: int
    json: bytes | None = None


class Block(NamedTuple):
    """Consecutive records of a file, up to `BLOCK_RECORDS`, in about `BLOCK_BYTES` of it.

    Their JSON has about 1 MiB at most, or is one record: a table names its columns once, its
    events each name.

    `number` is the place of the first. The columns hold of each record what `Record` calls line,
    event, error and json. An event whose JSON was read is decoded. JSON without event and error
    was not looked at yet.
    """

    number: int
    lines: Sequence[int | None]
    events: Sequence[dict[str, Any] | Event | None]
    errors: Sequence[str | None]
    texts: Sequence[bytes | None]
    bytes_read: int

    def records(self) -> Iterator[Record]:
        """Iterate over them one by one; decode JSON that was not decoded yet."""
        columns = zip(self.lines, self.events, self.errors, self.texts, strict=True)
        for number, (line, event, error, text) in enumerate(columns, self.number):
            if isinstance(event, Event):
                document = {"x": dict(event.x), "y": event.y}
                if event.id is not None:
                    document["id"] = event.id
                yield Record(number, line, document, None, self.bytes_read, text)
                continue
            if event is None and text is not None:
                try:
                    event = read_event(text)
                except BadRecord as fault:
                    error = str(fault)
            yield Record(number, line, event, error, self.bytes_read)


class Columns:
    """A block that grows; `number` is the place of its first record in the file."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._clear()

    def _clear(self) -> None:
        self._json_bytes = 0
        self._lines: list[int | None] = []
        self._events: list[dict[str, Any] | Event | None] = []
        self._errors: list[str | None] = []
        self._texts: list[bytes | None] = []

    def __len__(self) -> int:
        return len(self._lines)

    @property
    def free(self) -> int:
        """Number of records that still fit in; 0 once their JSON is large enough."""
        return BLOCK_RECORDS - len(self._lines) if self._json_bytes < BLOCK_JSON_BYTES else 0

    def add(self, line: int | None, event: dict[str, Any] | None, error: str | None) -> None:
        """Add a record."""
        self._lines.append(line)
        self._events.append(event)
        self._errors.append(error)
        self._texts.append(None)
        if event is not None:
            self._json_bytes += json_bytes(event.get("x") or {})

    def add_rows(self, events: Sequence[dict[str, Any]], row_bytes: int) -> None:
        """Add events of a format without lines, each of about so many bytes of JSON."""
        nothing = [None] * len(events)
        self._lines += nothing
        self._events += events
        self._errors += nothing
        self._texts += nothing
        self._json_bytes += row_bytes * len(events)

    def add_events(self, last: int, events: Sequence[Event], texts: Sequence[bytes]) -> None:
        """Add the events of consecutive lines up to number `last`, and their JSON."""
        self._lines += range(last - len(events) + 1, last + 1)
        self._events += events
        self._errors += [None] * len(events)
        self._texts += texts
        self._json_bytes += sum(map(len, texts))

    def add_unread(
        self, lines: Sequence[int], texts: Sequence[bytes | None], too_long: str
    ) -> None:
        """Add lines of JSON as they are; one that is `None` becomes a fault: it is too long."""
        self._lines += lines
        self._events += [None] * len(texts)
        if None in texts:
            self._errors += [too_long if text is None else None for text in texts]
        else:
            self._errors += [None] * len(texts)
        self._texts += texts

    def taken(self, bytes_read: int) -> Block:
        """Return the block as it is now, and begin the next one."""
        block = Block(
            self._number, self._lines, self._events, self._errors, self._texts, bytes_read
        )
        self._number += len(self)
        self._clear()
        return block


def json_bytes(x: Mapping[str, Any]) -> int:
    """Return about how many bytes of JSON some features are."""
    texts = sum(len(value) for value in x.values() if type(value) is str)
    return sum(map(len, x)) + _PER_FEATURE * len(x) + texts


def read_event(text: bytes) -> dict[str, Any]:
    """Return a line of JSON as an event of `POST learn`; `BadRecord` names every fault."""
    try:
        _, accepted, is_array = parse_events(text, 1, mixed=True)
    except ServiceError as error:
        faults = [f"{detail.field} {detail.reason}" for detail in error.errors]
        reason = "; ".join(faults) or error.detail.removeprefix("The body ").rstrip(".")
        raise BadRecord(reason) from None
    if is_array:
        raise BadRecord("is an array: a line is one event")
    return _decode(accepted)
