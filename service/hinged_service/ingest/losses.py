"""Losses that the user allows: how many records of a run may be bad."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

__all__ = ["Allowance"]

_COUNT = re.compile(r"[0-9]{1,18}")
_PER_CENT = re.compile(r"[0-9]{1,3}(\.[0-9]{1,18})?%")


@dataclass(frozen=True)
class Allowance:
    """A bound on bad records, as a number or as a share of all.

    Parameters
    ----------
    text
        The bound as the user wrote it.
    count
        So many at most; `None` if it is a share.
    share
        Of all records at most, between 0 and 1.

    """

    text: str = "0"
    count: int | None = 0
    share: Fraction = Fraction()

    @classmethod
    def of(cls, text: str) -> Allowance:
        """Read a bound: `25`, or `0.5%`.

        Raises
        ------
        ValueError
            If it is neither.

        """
        if _COUNT.fullmatch(text):
            return cls(text, int(text))
        share = Fraction(text[:-1]) / 100 if _PER_CENT.fullmatch(text) else None
        if share is None or share > 1:
            raise ValueError(f"{text!r} is neither a number of records nor a share of them")
        return cls(text, None, share)

    def covers(self, bad: int, records: int) -> bool:
        """Tell whether so many bad ones among all records are allowed."""
        return bad <= (self.share * records if self.count is None else self.count)
