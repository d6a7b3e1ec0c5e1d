"""Formats in which a line is a record."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from hinged_service.ingest.files.lines import TOO_LONG, Lines
from hinged_service.ingest.files.record import BadRecord, Block, Record, blocks_of

__all__ = ["Linewise"]


class Linewise(ABC):
    """A format in which a line is a record.

    Attributes
    ----------
    skipped
        How many lines were passed over because they are no record, blank ones aside.
    continued
        How many lines were not the first of their record: none.

    """

    skipped = 0
    continued = 0

    @abstractmethod
    def describe(self) -> str:
        """Say how lines are read."""

    @abstractmethod
    def event(self, line: bytes) -> dict[str, Any]:
        """Return a line as an event.

        Raises
        ------
        BadRecord
            If it is none.

        """

    def is_record(self, line: bytes) -> bool:
        """Return whether a line counts as a record, good or bad."""
        return not line.isspace()

    def records(self, lines: Lines, start: int) -> Iterator[Record]:
        """Iterate over the records from number `start`."""
        self.skipped = 0
        number = -1
        for line in lines:
            if line is not None and not self.is_record(line):
                continue
            number += 1
            if number < start:
                continue
            event, error = None, TOO_LONG
            if line is not None:
                try:
                    event = self.event(line)
                except BadRecord as fault:
                    error = str(fault)
            yield Record(
                number, lines.number, event, error if event is None else None, lines.position
            )

    def blocks(self, lines: Lines, start: int) -> Iterator[Block]:
        """Iterate over the records from number `start`, some together."""
        return blocks_of(self.records(lines, start))
