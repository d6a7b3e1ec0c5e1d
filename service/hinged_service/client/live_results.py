"""What `events` yields: the messages of the live feed as immutable, typed values."""

from __future__ import annotations

from typing import Any

import msgspec

from hinged_service.client.results import Label

__all__ = [
    "LiveCommand",
    "LiveDrift",
    "LiveEnd",
    "LiveEvent",
    "LiveMetrics",
    "LiveModel",
    "LiveOutcome",
    "LiveSample",
]


class LiveModel(msgspec.Struct, frozen=True):
    """What is watched from here on: first of all, whenever an alias moved, after a reconnection.

    Parameters
    ----------
    name
        The name that was asked for.
    model, uid
        The model that it means.
    position
        The place in the log from which on is told.
    after
        After a reconnection the last place that was told before, else `None`.

    """

    name: str
    model: str
    uid: str
    position: str
    after: str | None = None

    @property
    def gap(self) -> bool:
        """Whether something happened between two connections, which is not told again."""
        return self.after is not None and self.after != self.position


class LiveMetrics(msgspec.Struct, frozen=True):
    """How the model stands, at first and once a second.

    Parameters
    ----------
    position, at_ms
        The last entry of the log that it has learned, and the time of that.
    events, judged, mistakes, updates, hinge_loss, overflows, rejected, drifts, frozen
        Its account, as in `ModelInfo`.
    accuracy
        Share of the judged events predicted right; 0 before the first.
    metrics
        The metrics of its spec by name.
    events_per_s
        Events since the last time, per second; `None` the first time.
    stale_s
        Seconds since the worker last heard from Redis.
    caught_up
        Whether the worker knew the whole log then.

    """

    position: str
    at_ms: int
    events: int
    mistakes: int
    updates: int
    hinge_loss: float
    rejected: int
    drifts: int
    frozen: bool
    accuracy: float
    metrics: dict[str, Any]
    events_per_s: float | None
    stale_s: float
    caught_up: bool
    overflows: int = 0
    judged: int = 0


class LiveOutcome(msgspec.Struct, frozen=True):
    """What a labelled event did; of many at once only some are told, see `LiveSample`.

    Parameters
    ----------
    y, w
        Its label and weight.
    y_pred, score, mistake, updated, hinge_loss
        As in `Learned`.
    position, number, at_ms
        Its entry in the log, its number within that, and the time of it.
    id
        Its id, if it was given one.
    margin
        Of a binary linear model, before learning.
    x
        Its features, if asked for and not too many bytes at once.

    """

    y: Label
    w: float
    y_pred: Label | None
    score: float
    mistake: bool
    updated: bool
    hinge_loss: float
    position: str
    number: int
    at_ms: int
    id: str | None = None
    margin: float | None = None
    x: dict[str, Any] | None = None


class LiveSample(msgspec.Struct, frozen=True):
    """Outcomes came faster than they are told.

    Parameters
    ----------
    shown, left_out
        How many since it was told last, a fifth of a second or so before.

    """

    shown: int
    left_out: int


class LiveDrift(msgspec.Struct, frozen=True):
    """The model's detector found a drift.

    Parameters
    ----------
    entry, number, events
        As in `Drift`.
    position, at_ms
        Its entry in the log, and the time of it.

    """

    entry: str
    number: int
    events: int
    position: str
    at_ms: int


class LiveCommand(msgspec.Struct, frozen=True):
    """The model obeyed a command.

    Parameters
    ----------
    do
        What: `"configure"`, `"freeze"`, `"unfreeze"`, `"reset"`, `"restore"`.
    position, at_ms
        Its entry in the log, and the time of it.
    details
        What else belongs to it, by name.

    """

    do: str
    position: str
    at_ms: int
    details: dict[str, Any] = {}


class LiveEnd(msgspec.Struct, frozen=True):
    """There is nothing more to watch; always the last.

    Parameters
    ----------
    reason
        Why: `"deleted"`, or what is the matter with the model.

    """

    reason: str


LiveEvent = LiveModel | LiveMetrics | LiveOutcome | LiveSample | LiveDrift | LiveCommand | LiveEnd
"""Anything that `events` yields."""
