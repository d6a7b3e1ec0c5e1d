"""The interface of file formats, and the formats in which a line is a record."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Self

from hinged_service.ingest.files.byte_stream import ByteStream
from hinged_service.ingest.files.lines import TOO_LONG, Lines
from hinged_service.ingest.files.options import Kind
from hinged_service.ingest.files.record import BLOCK_BYTES, BadRecord, Block, Columns, FileError

__all__ = ["LineReader", "Reader", "TextReader"]


class Reader(ABC):
    """One reading of a file, from its beginning.

    Attributes
    ----------
    skipped
        How many lines were passed over because they are no record, blank ones aside.
    continued
        How many lines were read as the rest of a record that began on an earlier one.

    """

    skipped = 0
    continued = 0

    @property
    @abstractmethod
    def position(self) -> int:
        """Number of bytes of the file itself that have been read."""

    @abstractmethod
    def again(self, stream: ByteStream) -> Self:
        """Return another reading of the same content, as settled, which closes `stream`."""

    @abstractmethod
    def describe(self) -> str:
        """Describe how records are read."""

    @abstractmethod
    def fill(self, columns: Columns, start: int) -> Iterator[int]:
        """Add the records from number `start`; yield, for each, how many bytes they were so far.

        A step may add several, up to `columns.free`.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the file."""

    def look(self) -> None:  # noqa: B027 - else it was done already
        """Look at the beginning, which stays to be read, where that was not done yet."""

    def guesses(self) -> dict[str, Kind | None]:
        """Return the type of each column; `None` where its first cells are all missing."""
        return {}

    def settle(self, kinds: Mapping[str, Kind]) -> None:  # noqa: B027 - most have no columns
        """Read columns whose first cells are all missing as other files have them."""

    def blocks(self, start: int) -> Iterator[Block]:
        """Iterate over the records from number `start`; those before a fault come before it."""
        columns, begun, fault = Columns(start), 0, None
        try:
            for size in self.fill(columns, start):
                if not columns.free or size - begun > BLOCK_BYTES:
                    yield columns.taken(self.position)
                    begun = size
        except FileError as error:
            fault = error
        if len(columns):
            yield columns.taken(self.position)
        if fault is not None:
            raise fault


class TextReader(Reader):
    """A format that is text; `stream`, the content, is closed together with it."""

    def __init__(self, stream: ByteStream) -> None:
        self.begin(stream)

    def begin(self, stream: ByteStream) -> None:
        """Read from the beginning of `stream`."""
        self._stream = stream
        self._lines = Lines(stream)

    @property
    def position(self) -> int:
        """Number of bytes of the file itself that have been read."""
        return self._lines.position

    def again(self, stream: ByteStream) -> Self:
        """Return another reader of the same content, with the formats and types already found."""
        reading = copy.copy(self)
        reading.begin(stream)
        return reading

    def look(self) -> None:
        """Look at the first line, which stays to be read."""
        self._lines.peek(1)

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()


class LineReader(TextReader):
    """A format in which a line is a record."""

    @abstractmethod
    def event(self, line: bytes) -> dict[str, Any]:
        """Return a line as an event; a `BadRecord` if it is none."""

    def is_record(self, line: bytes) -> bool:
        """Return whether a line counts as a record, good or bad."""
        return not line.isspace()

    def fill(self, columns: Columns, start: int) -> Iterator[int]:
        """Add the records from number `start`, one a step."""
        self.skipped = number = size = 0
        for line in self._lines:
            if line is not None and not self.is_record(line):
                continue
            number += 1
            if number <= start:
                continue
            event, error = None, None
            if line is None:
                error = TOO_LONG
            else:
                size += len(line)
                try:
                    event = self.event(line)
                except BadRecord as fault:
                    error = str(fault)
            columns.add(self._lines.number, event, error)
            yield size
