"""Parquet and Arrow IPC, by pyarrow, which is loaded only here and only when it is needed."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, NamedTuple

from hinged_service.ingest.files.arrow_cells import Cells, cells_of, natural_kind
from hinged_service.ingest.files.byte_stream import ByteStream
from hinged_service.ingest.files.options import FileOptions, Kind
from hinged_service.ingest.files.reader import Reader
from hinged_service.ingest.files.record import (
    BLOCK_JSON_BYTES,
    BadRecord,
    Columns,
    FileError,
)
from hinged_service.ingest.files.table import Table

__all__ = ["ArrowTable"]

_BATCH_ROWS = 1024
_MOST_AT_ONCE = 64
_FILE_MARK = b"ARROW1"
_IGNORE: Kind = "ignore"


_Piece = tuple[int, Any, float | None]
"""Number of the first row, some rows, and the share of the file that is read, if it has a size."""


class _Batches(NamedTuple):
    schema: Any
    batches: Callable[[int, Sequence[str]], Iterator[_Piece]]
    """From a start and the columns that are wanted, at least, to the pieces."""


class ArrowTable(Reader):
    """A table with types of its own, in Parquet or Arrow IPC.

    Columns to be ignored are not read. So is the index of a pandas table, by the metadata of the
    schema, unless it has a role or a declared type. Parquet, and Arrow files that are not streams,
    are opened by name: `size_bytes` is `None` if the file is compressed or not on a disk.

    Raises
    ------
    FileError
        If pyarrow is missing, or the file or its columns cannot be read.
    """

    def __init__(
        self,
        stream: ByteStream,
        name: str,
        size_bytes: int | None,
        options: FileOptions,
    ) -> None:
        self._arrow = _load("pyarrow")
        self._name = name
        self._stream = stream
        self._size_bytes = size_bytes
        self._options = options
        self._share: float | None = None
        self._open = ExitStack()
        self._open.callback(stream.close)
        self._faults = (self._arrow.ArrowException, OSError, ValueError, MemoryError)
        try:
            self._source = self._parquet() if options.format == "parquet" else self._ipc()
            schema = self._source.schema
            self._index = _pandas_index(schema, options)
            ignored = dict.fromkeys(self._index, _IGNORE)
            options = replace(options, types=ignored | dict(options.types))
            kinds, self._cells = self._readers(schema, options)
            id_limit = self._id_limit(schema, options)
            self._table = Table(schema.names, kinds, options, text=False, id_limit=id_limit)
        except self._faults as error:
            self.close()
            raise self._broken(error) from None
        except BaseException:
            self.close()
            raise

    @property
    def position(self) -> int:
        """Number of bytes of the file itself that have been read."""
        if self._share is not None and self._size_bytes is not None:
            return int(self._share * self._size_bytes)
        return self._stream.counter.position

    def again(self, stream: ByteStream) -> ArrowTable:
        """Return another reading of the same content."""
        return ArrowTable(stream, self._name, self._size_bytes, self._options)

    def describe(self) -> str:
        """Describe the type of each column."""
        if not self._index:
            return self._table.describe()
        note = "the index of a pandas table, no feature unless it is given a type"
        return f"{self._table.describe()}; {note}: {', '.join(self._index)}"

    def guesses(self) -> dict[str, Kind | None]:
        """Return the type of each column; `None` where all is null by the schema."""
        empty = {column.name for column in self._source.schema if str(column.type) == "null"}
        kinds = self._table.kinds
        return {name: None if name in empty else kind for name, kind in kinds.items()}

    def close(self) -> None:
        """Close the opened files."""
        self._open.close()

    def fill(self, columns: Columns, start: int) -> Iterator[int]:
        """Add the records from number `start`, one a step."""
        wanted = [name for name, cells in self._cells.items() if cells is not None]
        try:
            for first, batch, share in self._source.batches(start, wanted):
                self._share = share
                if (plain := self._plain_rows(batch)) is not None:
                    for at in range(max(0, start - first), len(plain), self._at_once):
                        columns.add_rows(plain[at : at + self._at_once], self._table.row_bytes)
                        yield self.position
                    continue
                cells, faults = self._columns(batch)
                for at, row in enumerate(zip(*cells, strict=True)):
                    if first + at < start:
                        continue
                    event, error = None, faults.get(at)
                    if error is None:
                        try:
                            event = self._table.event(row)
                        except BadRecord as fault:
                            error = str(fault)
                    columns.add(None, event, error)
                    yield self.position
        except self._faults as error:
            raise self._broken(error) from None

    @property
    def _at_once(self) -> int:
        """Number of rows of numbers that are added to a block in one step."""
        return max(1, min(_MOST_AT_ONCE, BLOCK_JSON_BYTES // 8 // max(1, self._table.row_bytes)))

    def _plain_rows(self, batch: Any) -> list[dict[str, Any]] | None:
        """Return the events of some rows if all features are numbers that stand in columns.

        They come from the buffers of the columns by NumPy: 5 µs a row of 30 numbers where cell
        by cell takes 14. `None` leaves them to that.
        """
        names, label = self._table.numbers, self._cells[self._table.label]
        if names is None or label is None or self._table.has_more or not batch.num_rows:
            return None
        parts = []
        for name in names:
            column = batch.column(name)
            column.validate()
            kind = column.type
            types = self._arrow.types
            if column.null_count or not (types.is_integer(kind) or types.is_floating(kind)):
                return None
            parts.append(column.to_numpy(zero_copy_only=False))
        true = batch.column(self._table.label)
        true.validate()
        labels, faults = label.values(true)
        return None if faults else self._table.rows_of(parts, labels)

    def _columns(self, batch: Any) -> tuple[list[list[Any]], dict[int, str]]:
        """Return the values of all columns, and by row which cell could not be read and why."""
        columns: list[list[Any]] = []
        faults: dict[int, str] = {}
        for name, cells in self._cells.items():
            if cells is None:
                columns.append([None] * batch.num_rows)
                continue
            column = batch.column(name)
            column.validate()
            values, unread = cells.values(column)
            columns.append(values)
            for at, reason in unread.items():
                faults.setdefault(at, f"column {name} {reason}")
        return columns, faults

    def _broken(self, error: Exception) -> FileError:
        reason = str(error).partition("\n")[0].rstrip(".") or type(error).__name__
        return FileError(f"{self._name} cannot be read as its format says: {reason}.")

    def _must_be_on_disk(self, what: str) -> None:
        if self._size_bytes is None:
            raise FileError(f"{self._name} is {what}: it must lie on the disk, uncompressed.")

    def _parquet(self) -> _Batches:
        self._must_be_on_disk("Parquet")
        # A buffer of its own per column keeps whole row groups out of memory.
        parquet = _load("pyarrow.parquet")
        file = self._open.enter_context(
            parquet.ParquetFile(self._name, buffer_size=2**20, pre_buffer=False)
        )
        sizes = [file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)]
        total = sum(sizes)

        def batches(start: int, wanted: Sequence[str]) -> Iterator[_Piece]:
            first, groups = 0, list(range(len(sizes)))
            while groups and first + sizes[groups[0]] <= start:
                first += sizes[groups.pop(0)]
            if not groups:
                return
            for batch in file.iter_batches(_BATCH_ROWS, row_groups=groups, columns=wanted):
                yield first, batch, (first + batch.num_rows) / total
                first += batch.num_rows

        return _Batches(file.schema_arrow, batches)

    def _ipc(self) -> _Batches:
        ipc = _load("pyarrow.ipc")
        if self._stream.reader.peek(len(_FILE_MARK)).startswith(_FILE_MARK):
            return self._ipc_file(ipc)
        reader = self._open.enter_context(ipc.open_stream(self._stream.reader))
        return _Batches(
            reader.schema, lambda start, _: _pieces(((batch, None) for batch in reader), start)
        )

    def _ipc_file(self, ipc: Any) -> _Batches:
        self._must_be_on_disk("an Arrow file (an Arrow stream may also come from a pipe)")
        # Mapped, because one batch may be the whole file.
        source = self._open.enter_context(self._arrow.memory_map(self._name))
        reader = self._open.enter_context(ipc.open_file(source))
        schema, count = reader.schema, reader.num_record_batches

        def batches(start: int, wanted: Sequence[str]) -> Iterator[_Piece]:
            fields = [schema.get_field_index(name) for name in wanted]
            options = ipc.IpcReadOptions(included_fields=fields)
            chosen = ipc.open_file(source, options=options)
            return _pieces(((chosen.get_batch(n), (n + 1) / count) for n in range(count)), start)

        return _Batches(schema, batches)

    def _readers(
        self, schema: Any, options: FileOptions
    ) -> tuple[list[Kind], dict[str, Cells | None]]:
        """Return the types of all columns, and a reader for each; `None` if it is ignored."""
        kinds: list[Kind] = []
        found: dict[str, Cells | None] = {}
        unread, as_text = [], []
        for column in schema:
            name, declared = column.name, options.types.get(column.name)
            kind = declared or natural_kind(self._arrow, column.type)
            text = cells_of(self._arrow, column.type, "text")
            cells = None if kind is None else cells_of(self._arrow, column.type, kind)
            kinds.append(kind or _IGNORE)
            found[name] = None if kind == _IGNORE else cells
            if name == options.label and options.labels:
                found[name] = text
            if cells is None and kind != _IGNORE:
                unread.append(f"{name} ({column.type})" + (f" as {declared}" if declared else ""))
                as_text += [name] if text else []
        if unread:
            also = f", or text ({', '.join(as_text)})" if as_text else ""
            raise FileError(
                f"Columns of these types are not read: {', '.join(unread)}. Give them the type "
                f"ignore{also}."
            )
        return kinds, found

    def _id_limit(self, schema: Any, options: FileOptions) -> int:
        """Return the number up to which the floats of the id's column distinguish whole ones."""
        for column in schema:
            if column.name == options.id:
                kind = column.type
                kind = kind.value_type if self._arrow.types.is_dictionary(kind) else kind
                if self._arrow.types.is_floating(kind):
                    return {16: 2**11, 32: 2**24, 64: 2**53}[kind.bit_width]
        return 2**53


def _pandas_index(schema: Any, options: FileOptions) -> list[str]:
    """Return the columns that are the index of a pandas table, unless the user wants them."""
    try:
        stored = json.loads((schema.metadata or {})[b"pandas"])["index_columns"]
    except (KeyError, TypeError, ValueError, RecursionError):
        return []
    wanted = {options.label, options.id, options.weight, *options.types}
    # A range is stored as an object, and is no column.
    index = (
        {name for name in stored if isinstance(name, str)} if isinstance(stored, list) else set()
    )
    return [name for name in schema.names if name in index - wanted]


def _pieces(batches: Iterable[tuple[Any, float | None]], start: int) -> Iterator[_Piece]:
    """Cut batches, which may be the whole file, into small ones; skip rows before the offset."""
    first = 0
    for batch, share in batches:
        for at in range(0, batch.num_rows, _BATCH_ROWS):
            piece = batch.slice(at, _BATCH_ROWS)
            if first + at + piece.num_rows > start:
                yield first + at, piece, share
        first += batch.num_rows


def _load(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise FileError(
            "Reading Parquet and Arrow needs pyarrow: pip install 'hinged[arrow]'."
        ) from None
