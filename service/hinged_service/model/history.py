"""The history of a model: a bounded series of readings of its counters, and its latest marks.

Counters only rise, so a reading that is left out loses resolution and nothing else: when there
are too many, every other one goes.
"""

from __future__ import annotations

import math
import operator
import sys
from array import array
from itertools import accumulate, chain, pairwise
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec

import hinged

__all__ = ["FIRST_STEP", "MOST_MARKS", "MOST_POINTS", "History", "Point", "Turn"]

N = TypeVar("N", int, float)

MOST_POINTS = 500
"""Points at which every other one is left out."""
FIRST_STEP = 8
"""Events between two points, until they become too many for the first time."""
MOST_MARKS = 50
"""Marks kept: the last ones."""

_MOST = 2**63 - 1
_TEXT = 100
_MARK_BYTES = 64 + 4 * _TEXT + 200
_DIGITS = 6
_STEPS = frozenset(FIRST_STEP << n for n in range(60))


class Point(NamedTuple):
    """The counters of a model after one of its events, as they are named in `ModelState`."""

    at_ms: int
    """The time of its entry in the log, in ms since 1970."""
    events: int
    judged: int
    mistakes: int
    updates: int
    drifts: int
    labelled: int
    delay_ms: int
    log_loss: float | None
    """The spec's log loss up to there, if it has one."""
    rolling_accuracy: float | None
    """The spec's first rolling accuracy there, if it has one."""


_COUNTS = Point._fields[:-2]
_SHARES = Point._fields[-2:]


class Turn(NamedTuple):
    """A drift that was found or a command that was carried out."""

    at_ms: int
    """The time of its entry in the log, in ms since 1970."""
    events: int
    """The events of the model up to and including that one."""
    kind: str
    """`"drift"` or the command."""
    text: str
    """The parameters that were set, as JSON; it may be cut."""


class History:
    """Points of a model's life, the oldest first, and its latest marks.

    It takes 8 bytes a number: 48 kB when full, 1 kB for a model of 64 events.

    Attributes
    ----------
    due
        The number of events at which the next point is due.
    marks
        Drifts and commands, the oldest first.

    """

    __slots__ = ("_counts", "_shares", "_step", "due", "marks")

    def __init__(self) -> None:
        self._step = self.due = FIRST_STEP
        self._counts = array("q")
        self._shares = array("d")
        self.marks: tuple[Turn, ...] = ()

    def add(self, point: Point) -> None:
        """Add a point; of too many keep every other one."""
        counts: tuple[int, ...] = point[:-2]
        if max(counts) > _MOST:
            counts = tuple(min(count, _MOST) for count in counts)
        self._counts.extend(counts)
        for share in point[-2:]:
            self._shares.append(math.nan if share is None else round(share, _DIGITS))
        if len(self) == MOST_POINTS:
            self._step *= 2
            self._counts = _every_other(self._counts, len(_COUNTS))
            self._shares = _every_other(self._shares, len(_SHARES))
        self.await_next(point.events)

    def await_next(self, events: int) -> None:
        """Let the next point be due at the next multiple of the step."""
        self.due = (events // self._step + 1) * self._step

    def mark(self, turn: Turn) -> None:
        """Add a mark."""
        self.marks = (*self.marks, turn._replace(text=turn.text[:_TEXT]))[-MOST_MARKS:]

    @property
    def bytes(self) -> int:
        """The bytes that points and marks take at most."""
        numbers = sys.getsizeof(self._counts) + sys.getsizeof(self._shares)
        return numbers + len(self.marks) * _MARK_BYTES

    def __len__(self) -> int:
        return len(self._shares) // len(_SHARES)

    def before(self, judged: int) -> tuple[int, int]:
        """Return judged events and mistakes of the last point with no more judged; 0 before all."""
        first, wrong, width = (_COUNTS.index("judged"), _COUNTS.index("mistakes"), len(_COUNTS))
        for start in range(len(self._counts) - width, -1, -width):
            if self._counts[start + first] <= judged:
                return self._counts[start + first], self._counts[start + wrong]
        return 0, 0

    def points(self) -> list[Point]:
        """Return the points."""
        rows = zip(*self._columns_of_counts(), *self._columns_of_shares(), strict=True)
        return [Point(*row) for row in rows]

    def _columns_of_counts(self) -> list[list[int]]:
        return [self._counts[k :: len(_COUNTS)].tolist() for k in range(len(_COUNTS))]

    def _columns_of_shares(self) -> list[list[float | None]]:
        return [
            [None if math.isnan(share) else share for share in self._shares[k :: len(_SHARES)]]
            for k in range(len(_SHARES))
        ]

    def get_state(self) -> dict[str, Any]:
        """Return all of it as JSON-like data; of each count how much it rose between points."""
        points: dict[str, list[Any]] = {
            name: [b - a for a, b in pairwise((0, *column))]
            for name, column in zip(_COUNTS, self._columns_of_counts(), strict=True)
        }
        points.update(zip(_SHARES, self._columns_of_shares(), strict=True))
        return {"step": self._step, "points": points, "marks": [list(mark) for mark in self.marks]}

    def set_state(self, saved: object, now: Point) -> None:
        """Take over a state that `get_state` gave, of a model that stands at `now`.

        `None` is the state of a version that kept none: the history begins here.

        Raises
        ------
        hinged.InvalidState
            If it is damaged, or contradicts the counters. Nothing has changed.

        """
        fresh = History()
        if saved is not None:
            if not isinstance(saved, dict):
                raise hinged.InvalidState("the stored history is damaged")
            try:
                fresh._take(saved, now)
            except (ArithmeticError, LookupError, TypeError, ValueError) as error:
                raise hinged.InvalidState(f"the stored history is damaged: {error}") from None
        self._step, self.marks = fresh._step, fresh.marks
        self._counts, self._shares = fresh._counts, fresh._shares
        self.await_next(now.events)

    def _take(self, saved: dict[str, Any], now: Point) -> None:
        stored = msgspec.convert(saved, _Stored)
        if stored.step not in _STEPS:
            raise ValueError("the step is not a valid one")
        rises = [getattr(stored.points, name) for name in _COUNTS]
        rows = list(zip(*map(accumulate, rises), strict=True))
        shares = list(zip(*(getattr(stored.points, name) for name in _SHARES), strict=True))
        if len(shares) != len(rows):
            raise ValueError("a column is longer than others")
        for at_ms, events, judged, mistakes, *_ in rows:
            if not (at_ms >= 0 and mistakes <= judged <= events):
                raise ValueError("a point contradicts itself")
        if rows and any(map(operator.gt, rows[-1][1:], now[1:-2])):
            raise ValueError("the last point contradicts the counters")
        self._step = stored.step
        self.marks = tuple([_turn(*mark) for mark in stored.marks])
        self._counts = array("q", chain.from_iterable(rows))
        self._shares = array(
            "d", (math.nan if share is None else share for row in shares for share in row)
        )


_Count = Annotated[int, msgspec.Meta(ge=0, le=_MOST)]
_Text = Annotated[str, msgspec.Meta(max_length=_TEXT)]
_Columns = msgspec.Meta(max_length=MOST_POINTS - 1)


class _Points(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The columns of the points: of each count how much it rose since the point before."""

    at_ms: Annotated[list[Annotated[int, msgspec.Meta(ge=-_MOST, le=_MOST)]], _Columns]
    events: list[Annotated[int, msgspec.Meta(ge=1, le=_MOST)]]
    judged: list[_Count]
    mistakes: list[_Count]
    updates: list[_Count]
    drifts: list[_Count]
    labelled: list[_Count]
    delay_ms: list[_Count]
    log_loss: list[Annotated[float, msgspec.Meta(ge=0.0, le=sys.float_info.max)] | None]
    rolling_accuracy: list[Annotated[float, msgspec.Meta(ge=0.0, le=1.0)] | None]


class _Stored(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A history as it is stored."""

    step: int
    points: _Points
    marks: Annotated[list[tuple[_Count, _Count, _Text, _Text]], msgspec.Meta(max_length=MOST_MARKS)]


def _turn(at_ms: int, events: int, kind: str, text: str) -> Turn:
    f"{kind}{text}".encode()  # no half of a character
    return Turn(at_ms, events, kind, text)


def _every_other(numbers: array[N], width: int) -> array[N]:
    """Return the second, the fourth and so on of rows of so many numbers."""
    kept = numbers[: len(numbers) // (2 * width) * width]
    for column in range(width):
        kept[column::width] = numbers[width + column :: 2 * width]
    return kept
