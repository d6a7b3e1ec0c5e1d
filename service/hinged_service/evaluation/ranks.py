"""Ranks of numbers that came one by one, in little memory and with a bound on their error."""

from __future__ import annotations

import bisect
import math
from typing import Any

__all__ = ["ERROR", "Ranks", "area"]

ERROR = 0.001
"""The most by which the share of numbers below another one is off."""
_EXACT = int(1.0 / (2.0 * ERROR))


class Ranks:
    """A summary of numbers: how many of them lie below any other.

    It keeps some of the numbers, in order. With each go the count of numbers from the
    one kept before it up to it, and how far that count may be off; neighbours become
    one while both together stay below 2 `ERROR` n. The first 500 numbers, and always the
    least and the greatest, are kept as they are. No clock and no chance is in it.

    References
    ----------
    Greenwald, M. and Khanna, S., 2001. Space-efficient online computation of quantile
    summaries. SIGMOD Record, 30(2).

    """

    def __init__(self) -> None:
        self._values: list[float] = []
        self._counts: list[int] = []
        self._slacks: list[int] = []
        self.total = 0

    def add(self, value: float) -> None:
        """Count a finite number."""
        values = self._values
        place = bisect.bisect_right(values, value)
        inside = 0 < place < len(values)
        slack = self._counts[place] + self._slacks[place] - 1 if inside else 0
        values.insert(place, value)
        self._counts.insert(place, 1)
        self._slacks.insert(place, slack)
        self.total += 1
        if self.total % _EXACT == 0:
            self._compress()

    def _compress(self) -> None:
        """Let what is kept take in the one before it, from the greatest down, where it may."""
        most = int(2.0 * ERROR * self.total)
        items = list(zip(self._values, self._counts, self._slacks, strict=True))
        kept = [items[-1]]
        for value, count, slack in reversed(items[1:-1]):
            last, taken, loose = kept[-1]
            if count + taken + loose <= most:
                kept[-1] = last, taken + count, loose
            else:
                kept.append((value, count, slack))
        kept += items[:1] if len(items) > 1 else []
        kept.reverse()
        self._values, self._counts, self._slacks = map(list, zip(*kept, strict=True))

    def items(self) -> list[tuple[float, int, int]]:
        """Return the numbers that are kept, each with its count and slack."""
        return list(zip(self._values, self._counts, self._slacks, strict=True))

    def get_state(self) -> list[list[Any]]:
        """Return the summary as JSON-like data."""
        return [list(item) for item in self.items()]

    def set_state(self, saved: Any) -> None:
        """Take over a summary.

        Raises
        ------
        TypeError, ValueError
            If it is none. Nothing has changed.

        """
        if not isinstance(saved, list):
            raise TypeError("ranks are no list")
        before = -math.inf
        for value, count, slack in saved:
            if type(value) is not float or not before <= value < math.inf or value == -math.inf:
                raise ValueError("a rank is out of order")
            if not (type(count) is type(slack) is int and 0 < count < 2**63 and 0 <= slack < 2**63):
                raise ValueError("the count of a rank is damaged")
            before = value
        self._values = [value for value, _, _ in saved]
        self._counts = [count for _, count, _ in saved]
        self._slacks = [slack for _, _, slack in saved]
        self.total = sum(self._counts)


def area(negative: Ranks, positive: Ranks) -> float | None:
    """Return the share of pairs in which the positive number is the greater, ties half.

    Both summaries are off by `ERROR` at most, so this is by twice that; while both keep all
    their numbers it is exact, as it is where no number of one lies among those of the other.

    Returns
    -------
    `None` if one of them is empty.

    """
    if not (negative.total and positive.total):
        return None
    sums = [0.0]
    items = negative.items()
    for _, count, _ in items:
        sums.append(sums[-1] + count)
    values = [value for value, _, _ in items]
    found: list[float] = []
    before = 0.0
    for value, count, _ in positive.items():
        below = _middle(items, sums, bisect.bisect_left(values, value))
        upto = _middle(items, sums, bisect.bisect_right(values, value))
        here = (below + upto) / 2.0
        found += here, (count - 1) * (before + here) / 2.0  # the others lie between the two
        before = here
    return min(1.0, math.fsum(found) / (negative.total * positive.total))


def _middle(items: list[tuple[float, int, int]], sums: list[float], place: int) -> float:
    """Return the middle of the possible counts up to an item."""
    if place in (0, len(items)):
        return sums[place]
    _, count, slack = items[place]
    return sums[place] + (count + slack - 1) / 2.0
