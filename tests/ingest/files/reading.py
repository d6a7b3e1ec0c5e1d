"""Short ways to write a file and to read it whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hinged_service.ingest.files import FileError, FileOptions, Record, Source, open_source


def source_of(path: Path, content: bytes | str, **options: Any) -> Source:
    """Write a file and open it."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return open_source(str(path), FileOptions(**options))


def events_of(source: Source) -> list[dict[str, Any]]:
    """Return all events of a source that has no bad record."""
    records = list(source.records())
    assert [record.error for record in records if record.error is not None] == []
    return [record.event for record in records if record.event is not None]


def until_fault(source: Source) -> tuple[list[Record], str]:
    """Return the records before the fault that ends a source, and the fault."""
    records: list[Record] = []
    with pytest.raises(FileError) as error:
        records.extend(source.records())
    return records, str(error.value)


def faults_of(source: Source) -> list[tuple[int | None, str]]:
    """Return line and reason of each bad record."""
    return [(record.line, record.error) for record in source.records() if record.error is not None]


def check_places(records: list[Record]) -> None:
    """Check what holds for every sequence of records."""
    assert [record.number for record in records] == list(range(len(records)))
    assert all((record.event is None) != (record.error is None) for record in records)
    read = [record.bytes_read for record in records]
    assert read == sorted(read)
