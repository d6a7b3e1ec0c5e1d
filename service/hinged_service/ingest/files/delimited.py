"""CSV and TSV, by Python's `csv`."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from hinged_service.ingest.files.byte_stream import ByteStream
from hinged_service.ingest.files.cells import as_number
from hinged_service.ingest.files.lines import MAX_LINE_BYTES, TOO_LONG
from hinged_service.ingest.files.options import FileOptions, Kind
from hinged_service.ingest.files.reader import TextReader
from hinged_service.ingest.files.record import (
    BLOCK_BYTES,
    BLOCK_JSON_BYTES,
    BadRecord,
    Columns,
    FileError,
)
from hinged_service.ingest.files.table import Table, check_header, infer
from hinged_service.wire.events import Event

__all__ = ["Delimited"]

_DELIMITERS = {"csv": ",", "tsv": "\t"}
_AT_ONCE = 128  # lines and cells of more do not fit into the processor's cache


class Delimited(TextReader):
    """A table as text, with a header that fits the options, else `FileError`."""

    def __init__(self, stream: ByteStream, options: FileOptions) -> None:
        super().__init__(stream)
        delimiter = options.delimiter or _DELIMITERS[options.format]
        if delimiter == options.quote:
            raise FileError("Delimiter and quote must be different characters.")
        self._options = options
        self._delimiter = delimiter
        sampled = self._lines.peek(options.sample_rows + 1)
        rows = self._rows(_Text(sampled, options.encoding))
        names = _header(rows)
        check_header(names, options)
        sample = [row for row, fault, _ in rows if fault is None and len(row) == len(names)]
        self._empty: list[str] = []
        self._kinds: dict[str, Kind] = {
            name: self._kind(name, [row[at] for row in sample]) for at, name in enumerate(names)
        }
        self._sampled = len(sample)
        self._use_kinds()

    def _use_kinds(self) -> None:
        names, kinds = list(self._kinds), list(self._kinds.values())
        self._table = Table(names, kinds, self._options, text=True)
        self._plain = self._table.plain_rows(self._delimiter, self._options.quote)

    def guesses(self) -> dict[str, Kind | None]:
        """Return the type of each column; `None` where its first cells are all missing."""
        return {name: None if name in self._empty else kind for name, kind in self._kinds.items()}

    def settle(self, kinds: Mapping[str, Kind]) -> None:
        """Read columns whose first cells are all missing as other files have them."""
        self._kinds |= {name: kinds[name] for name in self._empty if name in kinds}
        self._use_kinds()

    def describe(self) -> str:
        """Describe the type of each column, and the reason for it."""
        types = " and as given" if self._options.types else ""
        empty = f"; empty so far: {', '.join(self._empty)}" if self._empty else ""
        return f"{self._table.describe()} (types by the first {self._sampled} rows{types}{empty})"

    def fill(self, columns: Columns, start: int) -> Iterator[int]:
        """Add the records from number `start`; rows of plain numbers many at once."""
        text = _Text(self._lines, self._options.encoding)
        rows = self._rows(text)
        _header(rows)
        for _ in islice(rows, start):
            pass
        self.continued = 0
        fit = BLOCK_JSON_BYTES // 8 // max(1, self._table.row_bytes)
        some, most = 1, max(1, min(_AT_ONCE, fit))
        while True:
            if (plain := self._plain_rows(text, min(some, columns.free))) is not None:
                columns.add_events(text.number, *plain)
                some = min(2 * some, most)
            elif some > 1:
                some = 1
                continue
            elif (found := next(rows, None)) is not None:
                row, fault, line = found
                last = text.number if text.number > line else None
                columns.add(line, *((None, fault) if fault is not None else self._event(row, last)))
            else:
                return
            yield text.bytes

    def _plain_rows(self, text: _Text, most: int) -> tuple[list[Event], list[bytes]] | None:
        """Return the next lines as events and their JSON; if one is not plain, they stay."""
        if self._plain is None:
            return None
        some = self._lines.at_hand(most, BLOCK_BYTES)
        whole = [line for line in some if line is not None]
        found = self._plain.read(whole) if whole and len(whole) == len(some) else None
        if found is not None:
            self._lines.pass_over(len(whole))
            text.pass_over(whole)
        return found

    def _event(self, row: list[str], last: int | None) -> tuple[dict[str, Any] | None, str | None]:
        """Return a row as an event, or why it is none; `last` is where it ends if further down."""
        try:
            return self._table.event(row), None
        except BadRecord as error:
            further = "" if last is None else f"; its quoted cells go on until line {last}"
            return None, f"{error}{further}"

    def _kind(self, name: str, cells: list[str]) -> Kind:
        options = self._options
        if name in options.types:
            return options.types[name]
        if name == options.id or (name == options.label and options.labels):
            return "text"
        kind = infer(cells, frozenset(options.missing))
        if kind is None:
            self._empty.append(name)
            return "number"
        if name == options.label and kind == "number":
            fraction = next(filter(_is_fraction, cells), None)
            if fraction is not None:
                raise FileError(
                    f"The label {name} holds fractions such as {fraction}: a label is a whole "
                    "number, true or false, or text. Name another column, or give it type text."
                )
        return kind

    def _rows(self, text: _Text) -> Iterator[tuple[list[str], str | None, int]]:
        """Iterate over (cells, fault, first line); blank lines are passed over."""
        quote = self._options.quote
        # The bound on a whole record is kept by _Text; the module's own is lower and global.
        csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE_BYTES))
        reader = csv.reader(
            text,
            delimiter=self._delimiter,
            quotechar=quote,
            quoting=csv.QUOTE_NONE if quote is None else csv.QUOTE_MINIMAL,
            strict=True,
        )
        while True:
            text.begin()
            first = text.number + 1
            row: list[str] = []
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                text.fault = _explain(error, text.number)
            except _TooLong:
                pass  # it is in the fault
            self.continued += text.number - first
            if text.fault is not None:
                yield row, text.fault, first
            elif row:
                yield row, None, first


class _TooLong(Exception):
    pass


class _Text(Iterator[str]):
    """Lines as text; of one record, no more than `MAX_LINE_BYTES` together."""

    def __init__(self, lines: Iterable[bytes | None], encoding: str) -> None:
        self._lines = iter(lines)
        self._encoding = encoding
        self._size = 0
        self.number = self.bytes = 0
        self.fault: str | None = None

    def begin(self) -> None:
        """Begin a record."""
        self._size = 0
        self.fault = None

    def pass_over(self, lines: Sequence[bytes]) -> None:
        """Go on behind lines that were read elsewhere."""
        self.number += len(lines)
        self.bytes += sum(map(len, lines))

    def __next__(self) -> str:
        line = next(self._lines)
        self.number += 1
        if line is None:
            self.fault = TOO_LONG
            raise _TooLong
        self._size += len(line)
        self.bytes += len(line)
        if self._size > MAX_LINE_BYTES:
            self.fault = f"a quoted cell does not end until line {self.number}: is a quote missing?"
            raise _TooLong
        try:
            return line.decode(self._encoding)
        except UnicodeDecodeError:
            self.fault = f"line {self.number} is not {self._encoding}: give the encoding it has"
            return line.decode("ascii", "replace")


def _header(rows: Iterator[tuple[list[str], str | None, int]]) -> list[str]:
    for row, fault, line in rows:
        if fault is not None:
            raise FileError(f"The header (line {line}) cannot be read: {fault}.")
        return row
    raise FileError("The file is empty: it has no header.")


def _explain(error: csv.Error, line: int) -> str:
    if "unexpected end of data" in str(error):
        return "a quoted cell is not closed before the file ends"
    return f"is not CSV at line {line}: {error}"


def _is_fraction(cell: str) -> bool:
    try:
        return not as_number(cell).is_integer()
    except BadRecord:
        return False
