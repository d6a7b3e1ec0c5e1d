"""Places in a log: ids of entries, positions, marks."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["POSITION_PATTERN", "EntryId", "Mark", "Position", "UpgradePoint", "position_text"]

POSITION_PATTERN = r"^[0-9]{1,20}-[0-9]{1,20}\.[0-9a-f]{40}$"
"""The form of every position."""

_ENTRY_ID = re.compile(r"([0-9]{1,20})-([0-9]{1,20})")
_CHAIN = re.compile(r"[0-9a-f]{40}")


class EntryId(NamedTuple):
    """The id of a log entry, in the order of the log; as text Redis's `"ms-seq"`.

    Attributes
    ----------
    ms
        The time of its arrival, in ms since 1970, by the clock of Redis.
    seq
        Its number among those of one ms.

    """

    ms: int
    seq: int

    def __str__(self) -> str:
        return f"{self.ms}-{self.seq}"

    @classmethod
    def of(cls, text: str) -> EntryId:
        """Return the id that a valid text holds; a missing `seq` is 0."""
        ms, _, seq = text.partition("-")
        return cls(int(ms), int(seq or 0))

    @classmethod
    def parse(cls, text: str) -> EntryId:
        """Return the id that a text of any origin holds.

        Raises
        ------
        ValueError
            If it holds none.

        """
        found = _ENTRY_ID.fullmatch(text)
        if found is None or max(parsed := cls(int(found[1]), int(found[2]))) >= 2**64:
            raise ValueError("not the id of an entry")
        return parsed


class Position(NamedTuple):
    """A place in a log: the id of an entry and the chain that leads to it.

    Attributes
    ----------
    id
        Redis's entry id, `"ms-seq"`.
    chain
        40 hex digits over everything up to and including the entry.

    """

    id: str
    chain: str

    @property
    def order(self) -> EntryId:
        """The entry id as numbers, in the log's order."""
        return EntryId.of(self.id)

    def __str__(self) -> str:
        return position_text(self)

    @classmethod
    def parse(cls, text: str) -> Position:
        """Read a position from its text.

        Raises
        ------
        ValueError
            If `text` is not a position.

        """
        entry_id, _, chain = text.partition(".")
        try:
            EntryId.parse(entry_id)
        except ValueError:
            chain = ""
        if not _CHAIN.fullmatch(chain):
            raise ValueError("not a position of this service")
        return cls(entry_id, chain)


position_text: Callable[[Position], str] = ".".join
"""Return the text of a position, without a frame of Python: every answer has one."""


class Mark(NamedTuple):
    """A place in a log, and the payload and events that the log had taken until then.

    Attributes
    ----------
    id
        The id of an entry.
    bytes, events
        Payload bytes and events up to and including that entry.

    """

    id: str
    bytes: int
    events: int


class UpgradePoint(NamedTuple):
    """The last upgrade of a model.

    Attributes
    ----------
    id
        The id of its entry in the log.
    start
        The id of the entry at which the snapshot stood that the new version went on from.

    """

    id: str
    start: str
