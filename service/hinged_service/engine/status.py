"""The status of a live model: one value, and the changes of it that are allowed."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

__all__ = ["TRANSITIONS", "ModelStatus", "Status"]


class Status(enum.Enum):
    """State of an open model in this worker.

    Attributes
    ----------
    LOADING
        The snapshot is being read.
    CATCHING_UP
        The replica has not yet seen the end of its log. Nothing is predicted or learned.
    LIVE
        The log was read or written the last time it was tried.
    STALE
        Redis did not answer the last time. Predictions continue from memory.
    SET_ASIDE
        The model cannot be served by this worker. Final.
    GONE
        The model was deleted. Final.

    """

    LOADING = "loading"
    CATCHING_UP = "catching_up"
    LIVE = "live"
    STALE = "stale"
    SET_ASIDE = "set_aside"
    GONE = "gone"


_END: Final = frozenset({Status.SET_ASIDE, Status.GONE})

TRANSITIONS: Final[Mapping[Status, frozenset[Status]]] = MappingProxyType(
    {
        Status.LOADING: frozenset({Status.CATCHING_UP}) | _END,
        Status.CATCHING_UP: frozenset({Status.LIVE}) | _END,
        Status.LIVE: frozenset({Status.STALE}) | _END,
        Status.STALE: frozenset({Status.LIVE}) | _END,
        Status.SET_ASIDE: frozenset(),
        Status.GONE: frozenset(),
    }
)
"""Statuses that a model may change to, by the present one."""


class ModelStatus:
    """Present status of a model, the only place that changes it.

    Attributes
    ----------
    now
        The present status.
    caught_up
        True once the end of the log was seen, also while Redis is away.
    ended
        True if this live model is of no further use.

    """

    __slots__ = ("caught_up", "ended", "now")

    def __init__(self, now: Status = Status.LOADING) -> None:
        self._set(now)

    def change(self, to: Status) -> None:
        """Change the status; to the present one, nothing happens.

        Raises
        ------
        ValueError
            If `TRANSITIONS` does not allow the change.

        """
        if to is self.now:
            return
        if to not in TRANSITIONS[self.now]:
            raise ValueError(f"a model that is {self.now.value} cannot become {to.value}")
        self._set(to)

    def _set(self, now: Status) -> None:
        self.now = now
        self.caught_up = now is Status.LIVE or now is Status.STALE
        self.ended = now is Status.SET_ASIDE or now is Status.GONE
