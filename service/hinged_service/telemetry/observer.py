"""Counters of one worker, cheap enough for every request."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from hinged_service.telemetry.multiprocess import Gathered, WorkerDirectory
from hinged_service.telemetry.state_log import StateChangeLog
from hinged_service.telemetry.worker_report import DiskSample, Labels, ModelSample, WorkerReport

if TYPE_CHECKING:
    from hinged_service.telemetry.tracing import Tracing

__all__ = ["BUCKETS", "Observer"]

_REQUEST_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_BATCH = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0, 10000.0)

BUCKETS = {
    "http_request_seconds": _REQUEST_S,
    "append_seconds": _REQUEST_S,
    "batch_events": _BATCH,
}
"""The upper bounds of each histogram's buckets; one more counter follows, and the sum."""

_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
_MOST_GONE = 1_000


class Observer:
    """Counters of one worker.

    Parameters
    ----------
    directory
        Shared by all workers of the service; `None` if there are no others.
    most_models
        Most models with labels of their own.

    Attributes
    ----------
    changes
        Log of the worker's states.
    tracing
        Makes spans; `None` without tracing.
    redis_condition
        Condition of Redis as last seen, by name of the gauge; empty if it was not seen.

    """

    def __init__(self, directory: Path | None = None, most_models: int = 500) -> None:
        self.most_models = most_models
        self.changes = StateChangeLog()
        self.tracing: Tracing | None = None
        self.redis_condition: dict[str, int] = {}
        self._shelf = WorkerDirectory(directory, most_models)
        sheet = self._sheet = self._shelf.sheet
        self._values = sheet.values
        self._requests: dict[tuple[str, str, int], int] = {}
        self._seconds: dict[str, int] = {}
        self._append = sheet.add(("append_seconds",), len(_REQUEST_S) + 2)
        self._batch = sheet.add(("batch_events",), len(_BATCH) + 2)
        self._refused = sheet.add(("queue_refused",))
        self._foreign = sheet.add(("foreign_entries",))
        self._errors: dict[str, int] = {}
        self._counts: dict[str, dict[str, int]] = {}
        self._reported: frozenset[str] = frozenset()
        self._gone: dict[str, None] = {}
        self._version = 0
        self._models = 0

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answer: to a method and a route (the template of a path), and its seconds."""
        values = self._values
        at = self._requests.get((method, route, status))
        if at is None:
            at = self._new_request(method, route, status)
        values[at] += 1.0
        at = self._seconds[route]
        values[at + bisect_left(_REQUEST_S, seconds)] += 1.0
        values[at + len(_REQUEST_S) + 1] += seconds

    def _new_request(self, method: str, route: str, status: int) -> int:
        method = method if method in _METHODS else "(other)"  # a client may send any
        at = self._requests.get((method, route, status))
        if at is None:
            at = self._sheet.add(("http_requests", method, route, str(status)))
            self._requests[method, route, status] = at
        if route not in self._seconds:
            self._seconds[route] = self._sheet.add(
                ("http_request_seconds", route), len(_REQUEST_S) + 2
            )
        return at

    def appended(self, seconds: float, events: int) -> None:
        """Count a batch that was sent to the log and answered."""
        values = self._values
        values[self._append + bisect_left(_REQUEST_S, seconds)] += 1.0
        values[self._append + len(_REQUEST_S) + 1] += seconds
        values[self._batch + bisect_left(_BATCH, events)] += 1.0
        values[self._batch + len(_BATCH) + 1] += events

    def queue_refused(self) -> None:
        """Count events that were refused because a queue was full."""
        self._values[self._refused] += 1.0

    def left_out(self, entries: int) -> None:
        """Count entries of a log that do not follow from the one before."""
        self._values[self._foreign] += entries

    def redis_failed(self, kind: str) -> None:
        """Count a command that Redis did not carry out, by the kind of failure."""
        at = self._errors.get(kind)
        if at is None:
            at = self._errors[kind] = self._sheet.add(("redis_errors", kind))
        self._values[at] += 1.0

    def of_model(self, name: str, what: str, count: int = 1) -> None:
        """Count something that this worker did with a model that exists."""
        counts = self._counts.get(name)
        if counts is None:
            if len(self._counts) >= self.most_models:
                return
            counts = self._counts[name] = {}
        counts[what] = counts.get(what, 0) + count

    def reported_models(self) -> frozenset[str]:
        """Return the uids of the models last reported."""
        return self._reported

    def note_index(self, before: Collection[str], uids: Collection[str], names: set[str]) -> None:
        """Forget deleted models.

        Parameters
        ----------
        before
            The models that were reported before the index was read.
        uids, names
            All models of the index.

        """
        self._models = len(uids)
        for uid in set(before).difference(uids):
            self._gone[uid] = None
        while len(self._gone) > _MOST_GONE:
            del self._gone[next(iter(self._gone))]
        self._counts = {name: counts for name, counts in self._counts.items() if name in names}

    def page(
        self,
        replicas: int,
        feeds: int,
        rows: list[ModelSample],
        labels: dict[str, Labels],
        disk: DiskSample | None = None,
        aside: int = 0,
        doors: dict[str, dict[str, dict[str, int]]] | None = None,
    ) -> WorkerReport:
        """Return the worker's report, as of now."""
        self._version += 1
        self._reported = self._reported.union(row.uid for row in rows)
        counts = {name: dict(counts) for name, counts in self._counts.items()}
        return WorkerReport(
            self._version,
            replicas,
            feeds,
            rows,
            counts,
            labels,
            list(self._gone),
            self.redis_condition,
            disk,
            self._models,
            aside,
            {} if doors is None else doors,
        )

    def publish(self, page: WorkerReport) -> None:
        """Show the other workers a report."""
        self._shelf.write(page)

    def gather(self, page: WorkerReport) -> Gathered:
        """Return the reports of all workers, this one's just made."""
        found = self._shelf.gather(page)
        self._reported = frozenset(found.totals.models)
        return found

    def close(self, page: WorkerReport) -> None:
        """Leave a last report."""
        self._shelf.close(page)
