"""Losses that the user allows: how many records of a run may be bad."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Allowance"]


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
    share: float = 0.0

    @classmethod
    def of(cls, text: str) -> Allowance:
        """Read a bound: `25`, or `0.5%`.

        Raises
        ------
        ValueError
            If it is neither.

        """
        number = text.strip()
        if number.endswith("%"):
            per_cent = float(number[:-1])
            if not 0 <= per_cent <= 100:
                raise ValueError(f"{text!r} is not between 0% and 100%")
            return cls(number, None, per_cent / 100)
        if not (number.isascii() and number.isdigit()):
            raise ValueError(f"{text!r} is neither a number of records nor a percentage")
        return cls(number, int(number))

    def covers(self, bad: int, records: int) -> bool:
        """Tell whether so many bad ones among all records are allowed."""
        return bad <= (self.share * records if self.count is None else self.count)
