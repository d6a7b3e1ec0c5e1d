"""What a reader gives out: records with their place, and the error that ends a file."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["BadRecord", "FileError", "Record"]


class FileError(Exception):
    """The file cannot be read, or not further; the message says what to do about it."""


class BadRecord(Exception):
    """One record is no event; the message says why, beginning with its column or field."""


class Record(NamedTuple):
    """One record of a file.

    Parameters
    ----------
    number
        Its place in the file, from 0; bad records count, blank lines do not.
    line
        The line it begins on, from 1; `None` where a format has no lines.
    event
        The event, as `POST learn` takes it; `None` for a bad record.
    error
        Why it is no event, naming the column or field; `None` for a good one.
    bytes_read
        How much of the file, as it lies on the disk, has been read so far.
    unread
        Instead of event and error: JSON of which it is not known yet whether it is an event.
        `hinged_service.files.ndjson.read` tells.

    """

    number: int
    line: int | None
    event: dict[str, Any] | None
    error: str | None
    bytes_read: int
    unread: bytes | None = None
