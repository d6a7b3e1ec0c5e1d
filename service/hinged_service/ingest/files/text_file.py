"""Formats that are text, behind one door."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hinged_service.ingest.files.byte_stream import ByteStream
from hinged_service.ingest.files.delimited import Delimited
from hinged_service.ingest.files.libsvm import LibSvm
from hinged_service.ingest.files.line_format import Linewise
from hinged_service.ingest.files.lines import Lines
from hinged_service.ingest.files.ndjson import Ndjson
from hinged_service.ingest.files.options import FileOptions, Kind
from hinged_service.ingest.files.record import Block, Record
from hinged_service.ingest.files.vw import VowpalWabbit

__all__ = ["TextFile"]

_DELIMITERS = {"csv": ",", "tsv": "\t"}


class TextFile:
    """One reading of a text file, from its beginning.

    Parameters
    ----------
    stream
        The content, closed together with this.
    options
        How to read it, with the format settled.
    before
        An earlier reading of the same content: what was found out then is not asked again.

    """

    def __init__(
        self, stream: ByteStream, options: FileOptions, before: TextFile | None = None
    ) -> None:
        self._stream = stream
        self._lines = Lines(stream)
        self._format: Delimited | Linewise = (
            before._format if before is not None else _format(self._lines, options)
        )

    @property
    def skipped(self) -> int:
        """How many unlabelled lines were passed over so far."""
        return self._format.skipped

    @property
    def continued(self) -> int:
        """How many lines were read as the rest of a quoted cell so far."""
        return self._format.continued

    def describe(self) -> str:
        """Say how the file is read."""
        return self._format.describe()

    def guesses(self) -> dict[str, Kind | None]:
        """Return what each column is read as; `None` where its first cells are all missing."""
        return self._format.guesses() if isinstance(self._format, Delimited) else {}

    def settle(self, kinds: Mapping[str, Kind]) -> None:
        """Read columns of which the first cells are all missing as other files have them."""
        if isinstance(self._format, Delimited):
            self._format.settle(kinds)

    def look(self) -> None:
        """Look at the first line, which stays to be read."""
        self._lines.peek(1)

    def records(self, start: int) -> Iterator[Record]:
        """Iterate over the records from number `start`."""
        return self._format.records(self._lines, start)

    def blocks(self, start: int) -> Iterator[Block]:
        """Iterate over the records from number `start` in blocks; JSON is given out unread."""
        return self._format.blocks(self._lines, start)

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()


def _format(lines: Lines, options: FileOptions) -> Delimited | Linewise:
    match options.format:
        case "ndjson":
            return Ndjson(options)
        case "libsvm":
            return LibSvm(lines.peek(options.sample_rows), options)
        case "vw":
            return VowpalWabbit(lines.peek(options.sample_rows), options)
        case other:
            return Delimited(lines, options, options.delimiter or _DELIMITERS[other])
