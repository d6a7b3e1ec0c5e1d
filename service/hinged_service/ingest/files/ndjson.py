"""NDJSON: each line is an event exactly as `POST learn` takes it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import compress
from typing import Any

from hinged_service.ingest.files.byte_stream import ByteStream
from hinged_service.ingest.files.cells import map_label
from hinged_service.ingest.files.lines import TOO_LONG
from hinged_service.ingest.files.options import FileOptions
from hinged_service.ingest.files.reader import LineReader
from hinged_service.ingest.files.record import BLOCK_BYTES, Columns, read_event

__all__ = ["Ndjson"]


class Ndjson(LineReader):
    """A line is an event as JSON. Of the options only `labels` matters."""

    def __init__(self, stream: ByteStream, options: FileOptions) -> None:
        super().__init__(stream)
        self._labels = options.labels

    def describe(self) -> str:
        """Describe how lines are read."""
        return "reading each line as an event, as POST learn takes it"

    def event(self, line: bytes) -> dict[str, Any]:
        """Return a line as an event."""
        event = read_event(line)
        y = event["y"]
        event["y"] = map_label(self._labels, y if isinstance(y, str) else json.dumps(y))
        return event

    def fill(self, columns: Columns, start: int) -> Iterator[int]:
        """Add the records from number `start`; unread, as many as are at hand, without a map.

        A third of the time that one by one takes.
        """
        if self._labels:
            yield from super().fill(columns, start)
            return
        before, size, lines = start, 0, self._lines
        while some := lines.at_hand(columns.free, BLOCK_BYTES):
            numbers: Sequence[int] = range(lines.number + 1, lines.number + 1 + len(some))
            lines.pass_over(len(some))
            texts = [line and line.strip(b" \t\r\n") for line in some]
            if not all(texts) or min(filter(None, texts)) < b" ":  # a blank line, or one too long
                there = [line is None or not line.isspace() for line in some]
                numbers, texts = list(compress(numbers, there)), list(compress(texts, there))
            if before:
                passed = len(texts[:before])
                numbers, texts = numbers[passed:], texts[passed:]
                before -= passed
            columns.add_unread(numbers, texts, TOO_LONG)
            size += sum(map(len, filter(None, texts)))
            yield size
