"""Files as a source: named by their content, their offset is the number of the next record."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import islice
from typing import Any

from hinged_service.files import FileError, FileOptions, Record, Source, open_source
from hinged_service.files.ndjson import read
from hinged_service.files.record import BadRecord
from hinged_service.sources.feeder import Feeder
from hinged_service.sources.progress import Reporter
from hinged_service.sources.records import Checked, Fault, Raw, Unread
from hinged_service.sources.runner import Failed

__all__ = ["bring_files"]

_BATCH = 500
_BATCH_BYTES = 2**19


async def bring_files(
    paths: Sequence[str], options: FileOptions, restart: bool, feeder: Feeder, reporter: Reporter
) -> dict[str, Any]:
    """Feed files, one after the other, each from where it was left.

    Parameters
    ----------
    paths
        The files; `"-"` is standard input.
    options
        How to read them.
    restart
        Whether to bring each from its beginning, as a new source.
    feeder, reporter
        Where to, and who tells how far it is.

    Raises
    ------
    Failed
        A file cannot be read, or not further; what came before is learned.
    Stopped
        The user wants an end.

    """
    try:
        sources = [open_source(path, options) for path in paths]
    except FileError as error:
        raise Failed(str(error)) from None
    sizes = [source.size_bytes for source in sources]
    reporter.total_bytes = None if None in sizes else sum(size or 0 for size in sizes)
    before = 0
    for source in sources:
        reporter.say(f"{source.name}: {source.describe()}")
        try:
            await _bring(source, restart, feeder, reporter, before)
        except FileError as error:
            raise Failed(f"{error} All records before that are learned.") from None
        before += source.size_bytes or 0
    return {"skipped": sum(source.skipped for source in sources)}


async def _bring(
    source: Source, restart: bool, feeder: Feeder, reporter: Reporter, before: int
) -> None:
    name, offset = await _place(source, restart, feeder)
    if offset:
        reporter.say(f"{source.name}: going on after its first {int(offset):,} records.")
    waits = nullcontext if source.resumable else feeder.stop.blocking
    while True:
        reading = source.records(int(offset or 0), unread=True)
        while True:
            records, done_bytes, fault = _take(reading, waits())
            if records:
                end = str(records[-1].number + 1)
                now = await feeder.feed([_raw(r) for r in records], name, offset, end)
                if now != end:
                    offset = now
                    break
                offset = end
                reporter.show(before + done_bytes)
            if fault is not None:
                raise fault
            if not records:
                return
            feeder.stop.check()
        reporter.say(f"{source.name}: somebody else brought it up to record {offset or 0}.")


async def _place(source: Source, restart: bool, feeder: Feeder) -> tuple[str, str]:
    """Return the name under which a file is brought, and where it stands there."""
    if not source.resumable:
        return f"pipe:{secrets.token_hex(8)}", ""
    identity = f"file:{source.identity()}"
    times, name, offset = 1, identity, await feeder.offset(identity)
    while offset:
        further = f"{identity}#{times + 1}"
        at = await feeder.offset(further)
        if not at:
            return (further, "") if restart else (name, offset)
        times, name, offset = times + 1, further, at
    return name, ""


def _take(
    reading: Iterator[Record], waiting: AbstractContextManager[None]
) -> tuple[list[Record], int, FileError | None]:
    """Return the next records, how far the file is read, and what ends it before its time."""
    records: list[Record] = []
    size, first = 0, None
    try:
        with waiting:
            for record in islice(reading, _BATCH):
                records.append(record)
                first = record.bytes_read if first is None else first
                size = record.bytes_read - first
                if size > _BATCH_BYTES:
                    break
    except FileError as error:
        return records, records[-1].bytes_read if records else 0, error
    return records, records[-1].bytes_read if records else 0, None


def _raw(record: Record) -> Raw:
    if record.unread is not None:
        return Raw(str(record.number), Unread(record.unread, partial(_read, record)))
    if record.event is not None:
        return Raw(str(record.number), Checked(record.event))
    return Raw(str(record.number), _fault(record, record.error))


def _read(record: Record) -> dict[str, Any] | Fault:
    try:
        return read(record.unread or b"")
    except BadRecord as fault:
        return _fault(record, str(fault))


def _fault(record: Record, error: str | None) -> Fault:
    return Fault("" if record.line is None else f"line {record.line}:", error or "is no event")
