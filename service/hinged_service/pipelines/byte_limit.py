"""Limit of the bytes that the stages of a pipeline may keep together."""

from __future__ import annotations

from collections.abc import Iterable

from hinged.vector import VALUE_BYTES, name_bytes

__all__ = ["ByteLimit"]


class ByteLimit:
    """Count of the bytes taken, and the most there may be.

    What is taken follows from the states of the stages alone, so it is equal on all workers.
    """

    def __init__(self, max_bytes: int | None) -> None:
        self._max_bytes = max_bytes
        self.taken = 0

    def admit(self, names: Iterable[str], numbers: int) -> bool:
        """Count a record of names and numbers, if within the limit; return whether it is."""
        size = numbers * VALUE_BYTES + name_bytes(names)
        if self._max_bytes is not None and self.taken + size > self._max_bytes:
            return False
        self.taken += size
        return True

    def restore(self, names: Iterable[str], numbers: int) -> None:
        """Count a stored record as taken, even beyond the limit."""
        self.taken += numbers * VALUE_BYTES + name_bytes(names)
