"""NDJSON: each line is an event exactly as `POST learn` takes it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from hinged_service.errors import ServiceError
from hinged_service.ingest.files.cells import map_label
from hinged_service.ingest.files.line_format import Linewise
from hinged_service.ingest.files.lines import TOO_LONG, Lines
from hinged_service.ingest.files.options import FileOptions
from hinged_service.ingest.files.record import (
    BLOCK_BYTES,
    BLOCK_RECORDS,
    BadRecord,
    Block,
    FileError,
    blocks_of,
)
from hinged_service.wire.decoding import parse_events

__all__ = ["Ndjson", "read"]

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Ndjson(Linewise):
    """A line is an event as JSON; the service's own reader decides what is one.

    Parameters
    ----------
    options
        Of which only `labels` matters.

    """

    def __init__(self, options: FileOptions) -> None:
        self._labels = options.labels

    def describe(self) -> str:
        """Say how lines are read."""
        return "reading each line as an event, as POST learn takes it"

    def event(self, line: bytes) -> dict[str, Any]:
        """Return a line as an event."""
        event = read(line)
        if self._labels:
            y = event["y"]
            event["y"] = map_label(self._labels, y if isinstance(y, str) else json.dumps(y))
        return event

    def blocks(self, lines: Lines, start: int) -> Iterator[Block]:
        """Iterate over the records from number `start`, unread wherever labels stand as they are.

        A loop over lines and no objects of their own: 0.4 µs a record instead of 2.3.
        """
        if self._labels:
            yield from blocks_of(self.records(lines, start))
            return
        number = size = 0
        texts: list[bytes | None] = []
        places: list[int] = []
        try:
            for line in lines:
                if line is not None and line.isspace():
                    continue
                number += 1
                if number <= start:
                    continue
                texts.append(None if line is None else line.strip(b" \t\r\n"))
                places.append(lines.number)
                size += 0 if line is None else len(line)
                if len(texts) == BLOCK_RECORDS or size > BLOCK_BYTES:
                    yield _block(number, places, texts, lines.position)
                    texts, places, size = [], [], 0
        except FileError:
            if texts:
                yield _block(number, places, texts, lines.position)
            raise
        if texts:
            yield _block(number, places, texts, lines.position)


def _block(end: int, places: list[int], texts: list[bytes | None], position: int) -> Block:
    errors = [TOO_LONG if text is None else None for text in texts]
    return Block(end - len(texts), places, [None] * len(texts), errors, texts, position)


def read(line: bytes) -> dict[str, Any]:
    """Return a line as an event.

    Raises
    ------
    BadRecord
        Naming every fault.

    """
    try:
        _, text, is_array = parse_events(line, 1, mixed=True)
    except ServiceError as error:
        faults = [f"{detail.field} {detail.reason}" for detail in error.errors]
        reason = "; ".join(faults) or error.detail.removeprefix("The body ").rstrip(".")
        raise BadRecord(reason) from None
    if is_array:
        raise BadRecord("is an array: a line is one event")
    return _decode(text)
