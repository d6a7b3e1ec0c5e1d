"""A file as a source of events, which can be resumed at any record."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

from hinged_service.ingest.files.arrow import ArrowTable
from hinged_service.ingest.files.byte_stream import ByteStream, open_bytes
from hinged_service.ingest.files.delimited import Delimited
from hinged_service.ingest.files.format_detection import QUOTES, settle
from hinged_service.ingest.files.libsvm import LibSvm
from hinged_service.ingest.files.ndjson import Ndjson
from hinged_service.ingest.files.options import FileOptions, Kind
from hinged_service.ingest.files.reader import Reader
from hinged_service.ingest.files.record import Block, FileError, Record
from hinged_service.ingest.files.vw import VowpalWabbit

__all__ = ["Source", "open_source"]

_Signature = tuple[int, int, int, int]


class Source:
    """A file of labelled events; nothing of it stays in memory.

    Attributes
    ----------
    name
        The path; `"-"` is standard input.
    size_bytes
        The size of the file as it lies on the disk; `None` for standard input and pipes.

    Raises
    ------
    FileError
        If it cannot be opened, or does not fit the options.
    """

    def __init__(self, name: str, options: FileOptions) -> None:
        self.name = name
        self._options = options
        self._signature = _signature(name)
        self.size_bytes = None if self._signature is None else self._signature[2]
        self._reading = self._begin(self._first_reader)
        self._unread = True
        if self.resumable:
            self._reading.close()

    @property
    def resumable(self) -> bool:
        """True for a file that can be read again: not standard input, not a pipe."""
        return self._signature is not None

    @property
    def skipped(self) -> int:
        """Number of unlabelled lines that the last iteration passed over so far."""
        return self._reading.skipped

    @property
    def continued(self) -> int:
        """Number of lines that the last iteration read as the rest of a quoted cell so far."""
        return self._reading.continued

    def describe(self) -> str:
        """Describe the reading of the file: columns, their types, the label."""
        once = "" if self.resumable else "; it can be read once only, so not resumed"
        return self._reading.describe() + once

    def look(self) -> None:
        """Look at the beginning, where no format has done so; `FileError` if it cannot be read."""
        if not self.resumable:
            self._reading.look()
            return
        with closing(self._begin(self._reading.again)) as reading:
            reading.look()

    def guesses(self) -> dict[str, Kind | None]:
        """Return the type of each column; `None` where its first cells are all missing."""
        return self._reading.guesses()

    def settle(self, kinds: Mapping[str, Kind]) -> None:
        """Read columns whose first cells are all missing as other files have them."""
        self._reading.settle(kinds)

    def identity(self) -> str:
        """Return a name of the content, the same wherever and whenever it is read.

        It is the SHA-256 of all bytes, with the format and what cuts it, as the number of a record
        depends on them. Nothing less would do: a file changed in its middle would be resumed in the
        wrong place. It costs about a second per 1.5 GB, hardly a hundredth of learning it. A file
        that has grown is another source, and a copy of a file is the same one. `FileError` if it
        cannot be read twice, or was changed since it was opened.
        """
        if not self.resumable:
            raise FileError(f"{self.name} is read once only: it has no identity to resume by.")
        with open_bytes(self.name) as file:
            self._check_unchanged()
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        self._check_unchanged()
        delimiter, quote = self._options.delimiter, self._options.quote
        cut = self._options.format + (f"-{ord(delimiter):x}" if delimiter is not None else "")
        if quote != QUOTES.get(self._options.format):
            cut += "-unquoted" if quote is None else f"-quote-{ord(quote):x}"
        return f"{cut}:{digest}"

    def records(self, start: int = 0) -> Iterator[Record]:
        """Iterate over the records in order, from number `start`.

        Raises
        ------
        FileError
            After the last whole record, if the file is cut off, broken, or was changed
            meanwhile. At once, if it can be read only once and was, or `start` is not 0.
        """
        return (record for block in self.blocks(start) for record in block.records())

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Iterate over the records as `records`, in blocks; lines of JSON are passed on unread."""
        if self.resumable:
            self._reading = self._begin(self._reading.again)
        elif start or not self._unread:
            raise FileError(f"{self.name} is read once only, from its beginning: not resumable.")
        self._unread = False
        return self._to_the_end(self._reading, start)

    def _to_the_end(self, reading: Reader, start: int) -> Iterator[Block]:
        with closing(reading):
            yield from reading.blocks(start)
            self._check_unchanged()

    def _begin(self, read: Callable[[ByteStream], Reader]) -> Reader:
        stream = ByteStream(self.name, self._options.compression)
        try:
            self._check_unchanged()
            return read(stream)
        except BaseException:
            stream.close()
            raise

    def _first_reader(self, stream: ByteStream) -> Reader:
        options = self._options
        match options.format:
            case "ndjson":
                return Ndjson(stream, options)
            case "libsvm":
                return LibSvm(stream, options)
            case "vw":
                return VowpalWabbit(stream, options)
            case "parquet" | "arrow":
                mapped = self.size_bytes if options.compression == "none" else None
                return ArrowTable(stream, self.name, mapped, options)
            case _:
                return Delimited(stream, options)

    def _check_unchanged(self) -> None:
        if self.resumable and _signature(self.name) != self._signature:
            raise FileError(
                f"{self.name} was changed while it was in use: ingest it from the beginning."
            )


def open_source(path: str, options: FileOptions) -> Source:
    """Open a file, or standard input if `path` is `"-"`, as a source of events.

    Its suffixes decide format and compression, unless the options do. A `FileError` is raised if it
    cannot be opened, its format is unknown, it does not fit the options, or a package is missing.
    """
    return Source(path, settle(path, options))


def _signature(name: str) -> _Signature | None:
    """Return a value that changes with the file; `None` if it is not a file on a disk."""
    if name == "-":
        return None
    try:
        found = Path(name).stat()
    except OSError as error:
        raise FileError(f"{name} cannot be opened: {error.strerror or error}.") from None
    if stat.S_ISDIR(found.st_mode):
        raise FileError(f"{name} is a folder: name the files in it.")
    if not stat.S_ISREG(found.st_mode):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
