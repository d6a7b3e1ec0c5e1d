"""Messages of the live feed, which the service encodes and its client decodes."""

from __future__ import annotations

from typing import Any

import msgspec

from hinged_service.wire.responses import Drift, Label

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


class LiveModel(msgspec.Struct, frozen=True, omit_defaults=True):
    """The model watched from here on: at the start, when an alias moved, after a reconnection.

    Attributes
    ----------
    name
        The name that was asked for.
    model, uid
        The model that it points to.
    position
        The place in the log after which the feed begins.
    after
        After a reconnection the last place that was sent before, else `None`.

    """

    name: str
    model: str
    uid: str
    position: str
    after: str | None = None

    @property
    def gap(self) -> bool:
        """True if something happened between two connections, which is not sent again."""
        return self.after is not None and self.after != self.position


class LiveMetrics(msgspec.Struct, frozen=True):
    """The account of the model, at first and once a second.

    Attributes
    ----------
    position, at_ms
        The last entry of the log that it has learned, and the time of that.
    events, judged, mistakes, updates, hinge_loss, overflows, rejected, drifts, frozen
        Its account, as in `ModelInfo`.
    accuracy
        Share of the judged events predicted right; `None` before the first.
    rolling_accuracy
        The same of the newest events, as in `HistoryPoint`.
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
    accuracy: float | None
    metrics: dict[str, Any]
    events_per_s: float | None
    stale_s: float
    caught_up: bool
    overflows: int = 0
    judged: int = 0
    rolling_accuracy: float | None = None


class LiveOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of a labelled event; of many at once only some are sent, see `LiveSample`.

    Attributes
    ----------
    y, w
        Its label and weight.
    y_pred, score, mistake, updated, hinge_loss
        As in `Learned`.
    position, number, at_ms
        Its entry in the log, its number within that, and the time of it.
    id
        Its id, if it has one.
    margin
        Of a binary linear model, before learning.
    x
        Its features, if asked for and not too many bytes at once.

    """

    id: str | None
    y: Label
    w: float
    y_pred: Label | None
    score: float
    mistake: bool
    updated: bool
    hinge_loss: float
    margin: float | None = None
    position: str
    number: int
    at_ms: int
    x: dict[str, Any] | None = None


class LiveSample(msgspec.Struct, frozen=True):
    """The numbers of outcomes sent and left out since the last one, about 0.2 s before."""

    shown: int
    left_out: int


class LiveDrift(Drift, frozen=True):
    """A `Drift` that was just found, its entry in the log and the time of that."""

    position: str
    at_ms: int


class LiveCommand(msgspec.Struct, frozen=True):
    """A command that the model obeyed.

    Attributes
    ----------
    do
        The command: `"configure"`, `"freeze"`, `"unfreeze"`, `"reset"`, `"restore"`.
    position, at_ms
        Its entry in the log, and the time of it.
    details
        Its other fields, by name.

    """

    do: str
    position: str
    at_ms: int
    details: dict[str, Any] = {}


class LiveEnd(msgspec.Struct, frozen=True):
    """The end of the feed: `"deleted"`, or the reason why the model cannot be watched."""

    reason: str


LiveEvent = LiveModel | LiveMetrics | LiveOutcome | LiveSample | LiveDrift | LiveCommand | LiveEnd
"""Anything that `events` yields."""
