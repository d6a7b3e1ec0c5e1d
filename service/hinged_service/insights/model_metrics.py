"""Per-model samples for the Prometheus scrape.

A scrape reaches one worker at random and is answered for all of them: each writes a report of
its models to `HINGED_METRICS_DIR` every second. No model is loaded for a scrape, and Redis is
asked only for what it counts itself: labels, and records that were not learned.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import time
from collections.abc import Callable, Iterator

import hinged
from hinged_service.engine.live_model import LiveModel
from hinged_service.engine.registry import ModelRegistry
from hinged_service.engine.status import Status
from hinged_service.errors import ServiceError
from hinged_service.store import pending_predictions
from hinged_service.store.disk_guard import Disk
from hinged_service.store.door_counts import DoorCounts, door_counts_in
from hinged_service.tasks import cancel
from hinged_service.telemetry.exposition import exposed
from hinged_service.telemetry.worker_report import DiskSample, Labels, ModelSample, WorkerReport
from hinged_service.wire.codec import DamagedState, fold_tag

__all__ = ["Scraping"]

logger = logging.getLogger(__name__)

_EVERY_S = 1.0
_COUNTS_S = 1.0
_COUNTS_UNASKED_S = 10.0
_ASKED_AT_ONCE = 8
_TIMEOUT_S = 0.5


class Scraping:
    """The reports of this worker, and the answers to scrapes; `feeds` counts open live feeds."""

    def __init__(self, registry: ModelRegistry, feeds: Callable[[], int]) -> None:
        self._registry = registry
        self._feeds = feeds
        self._observer = registry.connection.observer
        self._labels: dict[str, Labels] = {}
        self._doors: dict[str, DoorCounts] = {}
        self._rows: dict[str, ModelSample] = {}
        self._asking = asyncio.Lock()
        self._asked_at_s = -1e9
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start to write reports."""
        self._task = asyncio.create_task(self._publish())

    async def aclose(self) -> None:
        """Write the last report."""
        await cancel(self._task)
        with contextlib.suppress(OSError):  # the directory is gone, and with it who would read it
            await asyncio.to_thread(self._observer.close, self._page())

    async def scrape(self, accept: str) -> tuple[bytes, str]:
        """Return the metrics of all workers as text of a type in `accept`, and that type."""
        await self._ask_for_counts(_COUNTS_S)
        page = self._page()
        gathered = await asyncio.to_thread(self._observer.gather, page)
        return await asyncio.to_thread(exposed, gathered, hinged.__version__, fold_tag(), accept)

    async def _publish(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            await self._ask_for_counts(_COUNTS_UNASKED_S)  # scrapes may reach other workers only
            try:
                await asyncio.to_thread(self._observer.publish, self._page())
            except OSError as error:
                self._observer.changes.enter(
                    "metrics", logger, "the metrics of this worker cannot be laid out: %s", error
                )
            else:
                self._observer.changes.leave("metrics", logger)

    def _page(self) -> WorkerReport:
        registry = self._registry
        before, self._rows = self._rows, {}
        for live_model in self._reported():
            uid, lost = live_model.entry.uid, registry.connection.lost
            row = before.get(uid) if live_model.away else _row(live_model, lost)
            if row is not None:  # while long work has the state: the last report
                self._rows[uid] = row
        rows = list(self._rows.values())
        labels, disk = dict(self._labels), _disk(registry.connection.disk)
        doors = {row.uid: self._doors[row.uid] for row in rows if row.uid in self._doors}
        return self._observer.page(
            registry.open_count, self._feeds(), rows, labels, disk, registry.aside_count, doors
        )

    async def _ask_for_counts(self, age_s: float) -> None:
        """Read the counts in Redis of the streams in use, unless they are younger than `age_s`."""
        async with self._asking:
            if time.monotonic() - self._asked_at_s < age_s:
                return
            by_stream: dict[str, list[LiveModel]] = {}
            for live_model in self._reported():
                by_stream.setdefault(live_model.entry.stream, []).append(live_model)
            uids = {live_model.entry.uid for live_model in self._reported()}
            self._labels = {s: one for s, one in self._labels.items() if s in by_stream}
            self._doors = {uid: doors for uid, doors in self._doors.items() if uid in uids}
            wanted = iter(by_stream.items())
            with contextlib.suppress(TimeoutError, ServiceError):  # the last ones read will do
                async with asyncio.timeout(_TIMEOUT_S):
                    await asyncio.gather(*(self._ask_each(wanted) for _ in range(_ASKED_AT_ONCE)))
            self._asked_at_s = time.monotonic()

    async def _ask_each(self, wanted: Iterator[tuple[str, list[LiveModel]]]) -> None:
        for stream, models in wanted:
            at_s = time.time()
            try:
                meta = await self._registry.connection.hgetall(models[0].keys.on.meta)
            except DamagedState:
                continue  # it is logged elsewhere; the other streams are as they were
            for live_model in models:
                self._doors[live_model.entry.uid] = door_counts_in(meta, live_model.entry.uid)
            if (found := pending_predictions.counts_in(meta)) is not None:
                self._labels[stream] = Labels(
                    at_s, found["waiting"], found["joined"], found["expired"], found["late"]
                )

    def _reported(self) -> Iterator[LiveModel]:
        return itertools.islice(self._registry.recent(), self._observer.most_models)


def _disk(disk: Disk | None) -> DiskSample | None:
    if disk is None:
        return None
    return DiskSample(disk.free_bytes, disk.reserved_bytes, disk.unwritten_bytes, disk.writable)


def _row(live_model: LiveModel, lost: bool) -> ModelSample:
    fold = live_model.state
    account = fold.learner.accounting
    return ModelSample(
        live_model.entry.uid,
        live_model.name,
        live_model.entry.stream,
        live_model.position.order,
        fold.events,
        fold.mistakes,
        account.updates,
        account.hinge_loss,
        fold.rejected,
        fold.labelled,
        fold.delay_ms,
        live_model.log_events,
        live_model.freshness.age_s() if live_model.status.now is Status.STALE and lost else 0.0,
        live_model.unsaved_s(),
        live_model.queued,
        account.overflows,
        fold.judged,
        fold.stored_bytes(),
        fold.max_bytes,
    )
