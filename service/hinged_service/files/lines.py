"""Lines of bounded length, as bytes: a line ends at byte 0A and nowhere else."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from hinged_service.files.record import FileError
from hinged_service.files.streams import ByteStream

__all__ = ["MAX_LINE_BYTES", "TOO_LONG", "Lines"]

MAX_LINE_BYTES = 8 * 2**20
TOO_LONG = f"the line is longer than {MAX_LINE_BYTES // 2**20} MiB"
_PEEK_BYTES = 4 * 2**20
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


class Lines:
    """The lines of a stream with their ends, without a byte order mark.

    Iterating goes on where it was left. A line longer than `MAX_LINE_BYTES` is `None`, and
    never held.

    Parameters
    ----------
    stream
        What to read, from its beginning.

    Attributes
    ----------
    number
        How many lines were given out: the number of the last one, from 1.

    """

    def __init__(self, stream: ByteStream) -> None:
        self._counter = stream.counter
        self._readline = stream.reader.readline
        self._ahead: deque[bytes | None] = deque()
        self._fault: FileError | None = None
        self._begun = False
        self.number = 0

    @property
    def position(self) -> int:
        """How many bytes of the file itself have been read."""
        return self._counter.position

    def __iter__(self) -> Iterator[bytes | None]:
        while self._ahead:
            self.number += 1
            yield self._ahead.popleft()
        if self._fault is not None:
            raise self._fault
        while (line := self._read()) != b"":
            self.number += 1
            yield line

    def peek(self, count: int) -> list[bytes | None]:
        """Return up to `count` lines of at most 4 MiB together; they stay to be read.

        So does a fault behind them: it is raised when they have been read.

        """
        size = 0
        while len(self._ahead) < count and size < _PEEK_BYTES:
            try:
                line = self._read()
            except FileError as fault:
                if not self._ahead:
                    raise
                self._fault = fault
                break
            if line == b"":
                break
            self._ahead.append(line)
            size += len(line or b"")
        return list(self._ahead)

    def _read(self) -> bytes | None:
        """Return the next line; `b""` at the end."""
        line = self._readline(MAX_LINE_BYTES + 1)
        if self._begun and len(line) <= MAX_LINE_BYTES:
            return line
        first, self._begun = not self._begun, True
        if len(line) > MAX_LINE_BYTES:
            while line and not line.endswith(b"\n"):
                line = self._readline(MAX_LINE_BYTES)
            return None
        if first and line.startswith(_UTF16_MARKS):
            raise FileError("The file is UTF-16: convert it to UTF-8 first (iconv).")
        return line.removeprefix(_UTF8_MARK)
