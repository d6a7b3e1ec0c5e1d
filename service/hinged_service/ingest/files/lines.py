"""Lines of bounded length, as bytes: a line ends at byte 0A and nowhere else."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from itertools import accumulate

from hinged_service.ingest.files.byte_stream import ByteStream
from hinged_service.ingest.files.record import FileError
from hinged_service.wire.encodings import other_encoding, without_marks

__all__ = ["MAX_LINE_BYTES", "TOO_LONG", "Lines"]

MAX_LINE_BYTES = 8 * 2**20
TOO_LONG = f"the line is longer than {MAX_LINE_BYTES // 2**20} MiB"
_PEEK_BYTES = 4 * 2**20
_READ_BYTES = 2**18


class Lines:
    """The lines of a stream with their ends, without byte order marks in front.

    Iterating goes on where it was left; `number` is that of the last line returned, from 1. A line
    longer than `MAX_LINE_BYTES` is `None`, and never held.
    """

    def __init__(self, stream: ByteStream) -> None:
        self._counter = stream.counter
        self._read_some = stream.reader.read1
        self._ahead: list[bytes | None] = []
        self._next = 0  # of these
        self._held: list[bytes] = []
        self._size = 0
        self._fault: FileError | None = None
        self._begun = False
        self.number = 0

    @property
    def position(self) -> int:
        """Number of bytes of the file itself that have been read."""
        return self._counter.position

    def __iter__(self) -> Iterator[bytes | None]:
        while self._next < len(self._ahead) or self._read():
            line = self._ahead[self._next]
            self.pass_over(1)
            yield line

    def peek(self, count: int) -> list[bytes | None]:
        """Return up to `count` lines, none after 4 MiB of them; they stay to be read.

        So does a fault behind them: it is raised when they have been read.
        """
        while len(found := self._first(count, _PEEK_BYTES)) < count and _size(found) < _PEEK_BYTES:
            try:
                if not self._read():
                    break
            except FileError as fault:
                if not found:
                    raise
                self._fault = fault
                break
        return found

    def at_hand(self, most: int, size: int) -> list[bytes | None]:
        """Return up to `most` lines that were read already, or the next ones; they stay to be read.

        None comes after `size` bytes of them, and none at all at the end only.
        """
        if self._next == len(self._ahead):
            self._read()
        return self._first(most, size)

    def _first(self, most: int, size: int) -> list[bytes | None]:
        """Return lines that were read already, none after `size` bytes of them."""
        found = self._ahead[self._next : self._next + most]
        if _size(found) <= size:
            return found
        before = accumulate((0 if line is None else len(line) for line in found), initial=0)
        return [line for line, so_far in zip(found, before, strict=False) if so_far < size]

    def pass_over(self, count: int) -> None:
        """Go on behind so many lines that are at hand."""
        self._next += count
        self.number += count

    def _read(self) -> bool:
        """Read on until there are further lines; return whether there are any."""
        if self._fault is not None:
            raise self._fault
        del self._ahead[: self._next]
        self._next, before = 0, len(self._ahead)
        while len(self._ahead) == before:
            some = self._read_some(_READ_BYTES)
            end = some.find(b"\n") + 1
            self._hold(some[:end] if end else some)
            if end:
                self._ahead.append(self._taken())
                more = io.BytesIO(some[end:]).readlines()
                if more and not more[-1].endswith(b"\n"):
                    self._hold(more.pop())
                self._ahead += more
            elif not some:
                if (last := self._taken()) != b"":
                    self._ahead.append(last)
                break
        return len(self._ahead) > before

    def _hold(self, part: bytes) -> None:
        """Keep a part of a line, unless the line is too long."""
        self._size += len(part)
        if self._size > MAX_LINE_BYTES:
            self._held.clear()
        else:
            self._held.append(part)

    def _taken(self) -> bytes | None:
        """Return the line whose parts were held."""
        line = b"".join(self._held) if self._size <= MAX_LINE_BYTES else None
        self._held.clear()
        self._size = 0
        first, self._begun = not self._begun, True
        if line is None or not first:
            return line
        if (encoding := other_encoding(line)) is not None:
            raise FileError(f"The file is {encoding}: convert it to UTF-8 first (iconv).")
        return without_marks(line)


def _size(lines: Iterable[bytes | None]) -> int:
    return sum(map(len, filter(None, lines)))
