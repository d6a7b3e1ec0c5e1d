"""Reports of the workers of one service, and how they are merged.

Counts of a model are facts of its log, the same in each worker that has read that far: they are
never added up, those of the worker furthest on count. The work of workers is added up, dead ones
included. The present state of a worker ends with it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from hinged_service.telemetry.mmap_counters import Key

__all__ = ["DiskSample", "Labels", "ModelSample", "Totals", "WorkerReport", "add_numbers", "merge"]


class ModelSample(msgspec.Struct, array_like=True, frozen=True):
    """A model as one worker has it.

    Attributes
    ----------
    at
        The replica's position: ms and number of the log entry. All counts are those there.
    labelled, delay_ms
        Events that were the label of an earlier prediction; the sum of their delays.
    log_events
        Events that the stream had taken.
    stale_s
        Age in seconds of the state that answers while the log cannot be read, else 0.
    unsaved_s
        Age in seconds of the oldest change that no snapshot holds, 0 if there is none.
    queued
        Events that wait to be appended.
    overflows
        Updates left out because a number would overflow.
    judged
        Events that count in accuracy.
    bytes, max_bytes
        What was learned by name takes; the most that it may.

    """

    uid: str
    name: str
    stream: str
    at: tuple[int, int]
    events: int
    mistakes: int
    updates: int
    hinge_loss: float
    rejected: int
    labelled: int
    delay_ms: int
    log_events: int
    stale_s: float
    unsaved_s: float
    queued: int
    overflows: int = 0
    judged: int = 0
    bytes: int = 0
    max_bytes: int = 0


class Labels(msgspec.Struct, array_like=True, frozen=True):
    """A stream's predictions and their labels, as Redis counted them at a time in seconds."""

    at_s: float
    waiting: int
    joined: int
    expired: int
    late: int


class DiskSample(msgspec.Struct, array_like=True, frozen=True):
    """The disk of the embedded Valkey: bytes free, reserved and unwritten, whether it is usable."""

    free: int
    reserved: int
    unwritten: int
    writable: bool


class WorkerReport(msgspec.Struct):
    """The state of a worker and its work by model; the rest is in its counters.

    Attributes
    ----------
    version
        Later reports have a greater one.
    replicas, feeds
        Models in memory, open live feeds.
    rows
        Those models, or as many as may have labels.
    counts
        By model, by kind of work: how often the worker did it.
    labels
        By stream.
    doors
        By uid of a model: its records not learned, by door and reason, as Redis counts them.
    gone
        Uids of models that do not exist any more.
    redis
        Condition of Redis as the worker saw it last, by name of the gauge.
    disk
        The disk of the embedded Valkey, if there is one.
    models
        How many models there are, in memory or not; 0 before that was read.
    aside
        Models that the worker has set aside.

    """

    version: int = 0
    replicas: int = 0
    feeds: int = 0
    rows: list[ModelSample] = []
    counts: dict[str, dict[str, int]] = {}
    labels: dict[str, Labels] = {}
    gone: list[str] = []
    redis: dict[str, int] = {}
    disk: DiskSample | None = None
    models: int = 0
    aside: int = 0
    doors: dict[str, dict[str, dict[str, int]]] = {}


class Totals(msgspec.Struct):
    """Numbers of all models and of dead workers as last exposed, so that none goes back.

    Attributes
    ----------
    models
        By uid the row of the worker that had read furthest.
    labels
        By stream, as last read.
    doors
        By uid of a model, by door and reason, as last read.
    counts, sheet
        Work and counters of dead workers.
    folded
        Those whose files are added in here and may still exist.

    """

    models: dict[str, ModelSample] = {}
    labels: dict[str, Labels] = {}
    counts: dict[str, dict[str, int]] = {}
    sheet: dict[str, list[float]] = {}
    folded: list[str] = []
    doors: dict[str, dict[str, dict[str, int]]] = {}


def add_numbers(total: dict[Key, list[float]], more: Mapping[Key, Sequence[float]]) -> None:
    """Add numbers to those of the same keys."""
    for key, numbers in more.items():
        so_far = total.get(key)
        if so_far is None:
            total[key] = list(numbers)
        else:
            total[key] = [a + b for a, b in zip(so_far, numbers, strict=True)]


def add_counts(totals: Totals, page: WorkerReport) -> None:
    """Add the work of a dead worker by model."""
    for name, counts in page.counts.items():
        so_far = totals.counts.setdefault(name, {})
        for what, count in counts.items():
            so_far[what] = so_far.get(what, 0) + count


def merge(totals: Totals, pages: Sequence[WorkerReport], most: int) -> int:
    """Bring the totals up to date, in place; return the number of models left out.

    Until a worker has read how many models there are, those in the memory of workers count.

    Parameters
    ----------
    totals
        The totals so far.
    pages
        Reports of living workers, and of those that died since.
    most
        Most models with labels; one that has them keeps them until it is deleted.

    """
    gone = {uid for page in pages for uid in page.gone}
    models = {uid: row for uid, row in totals.models.items() if uid not in gone}
    rows = sorted((r for p in pages for r in p.rows if r.uid not in gone), key=lambda r: r.name)
    left_out = set()
    for row in rows:
        so_far = models.get(row.uid)
        if so_far is None and len(models) >= most:
            left_out.add(row.uid)
        elif so_far is None or so_far.at <= row.at:
            models[row.uid] = row
    latest: dict[str, ModelSample] = {}
    for row in sorted(models.values(), key=lambda r: r.at):
        latest[row.name] = row  # a new one may be reported before the old one is gone
    totals.models = {row.uid: row for row in latest.values()}
    streams = {row.stream for row in latest.values()}
    found = [totals.labels, *(page.labels for page in pages)]
    totals.labels = {}
    for labels in found:
        for stream, newer in labels.items():
            older = totals.labels.get(stream)
            if stream in streams and (older is None or older.at_s <= newer.at_s):
                totals.labels[stream] = newer
    _merge_doors(totals, pages)
    totals.counts = {name: counts for name, counts in totals.counts.items() if name in latest}
    if there := max((page.models for page in pages), default=0):
        return max(0, there - len(latest))
    hidden = max((max(0, page.replicas - most) for page in pages), default=0)
    return len(left_out) + hidden


def _merge_doors(totals: Totals, pages: Sequence[WorkerReport]) -> None:
    """Bring the counts of sources up to date: the greatest that any worker read."""
    for page in pages:
        for uid, doors in page.doors.items():
            so_far = totals.doors.setdefault(uid, {})
            for door, newer in doors.items():
                counts = so_far.setdefault(door, {})
                counts |= {what: max(n, counts.get(what, 0)) for what, n in newer.items()}
    totals.doors = {uid: doors for uid, doors in totals.doors.items() if uid in totals.models}


def counted(totals: Totals, pages: Iterable[WorkerReport]) -> dict[str, Counter[str]]:
    """Return the work of living and dead workers by name of the model."""
    names = {row.name for row in totals.models.values()}
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for counts in (totals.counts, *(page.counts for page in pages)):
        for name, what in counts.items():
            if name in names:
                found[name].update(what)
    return found
