"""Monotonic counters in a memory-mapped file, so that a killed worker's counts survive.

An addition to a double costs about 50 ns. Only its worker writes a file; a reader in another
process sees each number whole.
"""

from __future__ import annotations

import json
import mmap
from array import array
from collections.abc import Sequence

__all__ = ["CounterFile", "Key", "read_sheet"]

Key = tuple[str, ...]
"""A family of metrics and the values of its labels."""

_KEY_BYTES = 2**16
_NUMBERS = 2**13
_SCRAP = 64
_HEAD = 8
_START = _HEAD + _KEY_BYTES
SIZE = _START + 8 * _NUMBERS


class CounterFile:
    """Counters, each reached by its index.

    Parameters
    ----------
    file
        Descriptor of their file; in memory of their own if left out.

    Attributes
    ----------
    values
        The numbers.

    """

    def __init__(self, file: int | None = None) -> None:
        self._map = mmap.mmap(-1 if file is None else file, SIZE)
        self.values = memoryview(self._map)[_START:].cast("d")
        self._length = memoryview(self._map)[:_HEAD].cast("Q")
        self._next = _SCRAP

    def add(self, key: Key, size: int = 1) -> int:
        """Give a key `size` numbers in a row; return the index of the first.

        In a full file it is the index of numbers that are never read.
        """
        if size > _SCRAP:
            raise ValueError(f"size must be at most {_SCRAP}, not {size}")
        line = json.dumps([self._next, size, *key]).encode() + b"\n"
        begin = self._length[0]
        end = begin + len(line)
        if end > _KEY_BYTES or self._next + size > _NUMBERS:
            return 0
        self._map[_HEAD + begin : _HEAD + end] = line
        self._length[0] = end  # last: a reader sees a key whole or not at all
        self._next += size
        return self._next - size

    def read(self) -> dict[Key, Sequence[float]]:
        """Return all numbers by key."""
        return read_sheet(bytes(self._map))


def read_sheet(data: bytes) -> dict[Key, Sequence[float]]:
    """Return the numbers of a file's bytes by key; none if it was never written."""
    if len(data) < SIZE:
        return {}
    keys = data[_HEAD : _HEAD + int.from_bytes(data[:_HEAD], "little")]
    numbers = array("d")
    numbers.frombytes(data[_START:SIZE])
    found: dict[Key, Sequence[float]] = {}
    for line in keys.splitlines():
        at, size, *key = json.loads(line)
        found[tuple(key)] = numbers[at : at + size]
    return found
