"""Marks: the size of a log at some of its entries, by which it is trimmed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from hinged_service.store.followers import Retention
from hinged_service.wire.position import Mark

__all__ = ["LogMarks"]

_MARKS_PER_RETENTION = 16


class LogMarks:
    """Places in a log behind a model's snapshots, some sixteen for each retention."""

    __slots__ = ("_marks",)

    def __init__(self, marks: Sequence[Mark] = ()) -> None:
        self._marks = list(marks)

    @property
    def all(self) -> list[Mark]:
        """The marks, the oldest first."""
        return self._marks

    @property
    def last(self) -> Mark | None:
        """The latest mark."""
        return self._marks[-1] if self._marks else None

    def up_to(self, here: Mark) -> list[Mark]:
        """Return the marks and the present place, to be stored."""
        return [*self._marks, here]

    def oldest_wanted(self, here: Mark, kept: Retention) -> str:
        """Return the oldest entry id to keep: the later one of both limits."""
        if 0 in kept:
            return here.id
        last = self.last
        if last is None or any(
            limit is not None and now - then >= limit // _MARKS_PER_RETENTION
            for now, then, limit in (
                (here.bytes, last.bytes, kept.bytes),
                (here.events, last.events, kept.events),
            )
        ):
            self._marks.append(here)
        index = 0
        if kept.bytes is not None:
            index = bisect_right(self._marks, here.bytes - kept.bytes, key=lambda m: m.bytes)
        if kept.events is not None:
            past = bisect_right(self._marks, here.events - kept.events, key=lambda m: m.events)
            index = max(index, past)
        if index == 0:
            return "0-0"
        del self._marks[: index - 1]
        return self._marks[0].id
