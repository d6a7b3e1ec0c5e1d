"""Parquet and Arrow IPC, by pyarrow, which is loaded only here and only when it is needed."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple

from hinged_service.files.options import FileOptions, Kind
from hinged_service.files.record import BadRecord, FileError, Record
from hinged_service.files.streams import ByteStream
from hinged_service.files.table import Table

__all__ = ["ArrowTable"]

_BATCH_ROWS = 1024
_FILE_MARK = b"ARROW1"


class _Batches(NamedTuple):
    schema: Any
    batches: Callable[[int], Iterator[tuple[int, Any, float | None]]]
    """From a start to (number of the first row, batch, part of the file done if known)."""


class ArrowTable:
    """A table with types of its own.

    Parameters
    ----------
    stream
        The content, closed together with this. Parquet, and Arrow files that are not
        streams, are opened by name.
    name
        The path.
    size_bytes
        The size of the file; `None` if it is compressed or no file on a disk.
    options
        How to read it: `format` is `"parquet"` or `"arrow"`.

    Raises
    ------
    FileError
        If pyarrow is not there, or the file or its columns cannot be read.

    """

    skipped = 0
    continued = 0

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
        self._open = ExitStack()
        self._open.callback(stream.close)
        try:
            self._source = self._parquet() if options.format == "parquet" else self._ipc()
            schema = self._source.schema
            self._table = Table(schema.names, self._kinds(schema, options), options, text=False)
        except (self._arrow.ArrowException, OSError) as error:
            self.close()
            raise self._broken(error) from None
        except BaseException:
            self.close()
            raise

    def describe(self) -> str:
        """Say what each column is read as."""
        return self._table.describe()

    def guesses(self) -> dict[str, Kind | None]:
        """Return what each column is read as; `None` where the schema says that all is null."""
        empty = {column.name for column in self._source.schema if str(column.type) == "null"}
        kinds = self._table.kinds
        return {name: None if name in empty else kind for name, kind in kinds.items()}

    def look(self) -> None:
        """Do nothing: the schema was read, so it is such a file."""

    def settle(self, kinds: Mapping[str, Kind]) -> None:
        """Do nothing: the schema says all."""

    def close(self) -> None:
        """Close what was opened here."""
        self._open.close()

    def records(self, start: int) -> Iterator[Record]:
        """Iterate over the records from number `start`."""
        try:
            for first, batch, done in self._source.batches(start):
                batch.validate(full=True)  # pyarrow trusts offsets and text, whoever wrote them
                columns = [column.to_pylist() for column in batch.columns]
                read = self._stream.counter.position
                if done is not None and self._size_bytes is not None:
                    read = int(done * self._size_bytes)
                for number, row in enumerate(zip(*columns, strict=True), first):
                    if number < start:
                        continue
                    event, error = None, None
                    try:
                        event = self._table.event(row)
                    except BadRecord as fault:
                        error = str(fault)
                    yield Record(number, None, event, error, read)
        except (self._arrow.ArrowException, OSError) as error:
            raise self._broken(error) from None

    def _broken(self, error: Exception) -> FileError:
        reason = str(error).partition("\n")[0].rstrip(".")
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

        def batches(start: int) -> Iterator[tuple[int, Any, float | None]]:
            first, groups = 0, list(range(len(sizes)))
            while groups and first + sizes[groups[0]] <= start:
                first += sizes[groups.pop(0)]
            if not groups:
                return
            for batch in file.iter_batches(_BATCH_ROWS, row_groups=groups):
                yield first, batch, (first + batch.num_rows) / total
                first += batch.num_rows

        return _Batches(file.schema_arrow, batches)

    def _ipc(self) -> _Batches:
        ipc = _load("pyarrow.ipc")
        if self._stream.reader.peek(len(_FILE_MARK)).startswith(_FILE_MARK):
            return self._ipc_file(ipc)
        reader = self._open.enter_context(ipc.open_stream(self._stream.reader))

        def batches(start: int) -> Iterator[tuple[int, Any, float | None]]:
            first = 0
            for batch in reader:
                for piece in _pieces(batch, first, start):
                    yield *piece, None
                first += batch.num_rows

        return _Batches(reader.schema, batches)

    def _ipc_file(self, ipc: Any) -> _Batches:
        self._must_be_on_disk("an Arrow file (an Arrow stream may come from anywhere)")
        # Mapped, because one batch may be the whole file.
        source = self._open.enter_context(self._arrow.memory_map(self._name))
        reader = self._open.enter_context(ipc.open_file(source))
        count = reader.num_record_batches

        def batches(start: int) -> Iterator[tuple[int, Any, float | None]]:
            first = 0
            for at in range(count):
                batch = reader.get_batch(at)
                for piece in _pieces(batch, first, start):
                    yield *piece, (at + 1) / count
                first += batch.num_rows

        return _Batches(reader.schema, batches)

    def _kinds(self, schema: Any, options: FileOptions) -> list[Kind]:
        kinds: list[Kind] = []
        unread = []
        for column in schema:
            kind = options.types.get(column.name) or self._kind(column.type)
            if kind is None:
                unread.append(f"{column.name} ({column.type})")
            kinds.append(kind or "ignore")
        if unread:
            raise FileError(
                f"Columns of these types are not read: {', '.join(unread)}. Give them the type "
                "ignore, or text."
            )
        return kinds

    def _kind(self, kind: Any) -> Kind | None:
        types = self._arrow.types
        if types.is_dictionary(kind):
            kind = kind.value_type
        if types.is_boolean(kind):
            return "bool"
        if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
            return "number"
        if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
            return "text"
        return "number" if types.is_null(kind) else None


def _pieces(batch: Any, first: int, start: int) -> Iterator[tuple[int, Any]]:
    """Cut a batch, which may be the whole file, into small ones; leave out what is before."""
    for at in range(0, batch.num_rows, _BATCH_ROWS):
        piece = batch.slice(at, _BATCH_ROWS)
        if first + at + piece.num_rows > start:
            yield first + at, piece


def _load(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise FileError(
            "Reading Parquet and Arrow needs pyarrow: pip install 'hinged[arrow]'."
        ) from None
