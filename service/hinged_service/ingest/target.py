"""The model that an ingest feeds, how many bad records it allows, and its exit codes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

__all__ = ["BAD_USAGE", "FAILED", "UNSAVED", "Allowance", "Failed", "Target"]

FAILED = 1
BAD_USAGE = 2
UNSAVED = 8

_COUNT = re.compile(r"[0-9]{1,18}")
_PER_CENT = re.compile(r"[0-9]{1,3}(\.[0-9]{1,18})?%")


@dataclass(frozen=True)
class Allowance:
    """A bound on bad records: a number, or, if `count` is `None`, a share of all, 0 to 1."""

    text: str = "0"
    count: int | None = 0
    share: Fraction = Fraction()

    @classmethod
    def of(cls, text: str) -> Allowance:
        """Read a bound, `25` or `0.5%`; a `ValueError` if it is neither."""
        if _COUNT.fullmatch(text):
            return cls(text, int(text))
        share = Fraction(text[:-1]) / 100 if _PER_CENT.fullmatch(text) else None
        if share is None or share > 1:
            raise ValueError(f"{text!r} is neither a number of records nor a share of them")
        return cls(text, None, share)

    def covers(self, bad: int, records: int) -> bool:
        """Return whether `bad` among all `records` are allowed."""
        return bad <= (self.share * records if self.count is None else self.count)


@dataclass(frozen=True)
class Target:
    """The model that the events go to, as the command line names it.

    If there is none, it is made: by the spec in the file `create`, or with the type `learner`. With
    `labels_only` the records are labels of its predictions. The predictions of their events go to
    `predict_to`, if that is set.
    """

    model: str
    redis_url: str | None = None
    data_dir: Path | None = None
    create: Path | None = None
    learner: str | None = None
    as_json: bool = False
    max_bad: Allowance = Allowance()
    labels_only: bool = False
    predict_to: str | None = None


class Failed(Exception):
    """The source cannot continue: message with reason and remedy, and exit `code`."""

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code
