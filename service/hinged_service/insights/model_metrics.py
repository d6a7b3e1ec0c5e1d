"""Per-model samples for the Prometheus scrape.

A scrape reaches one worker at random and is answered for all of them: each writes a report of
its models to `HINGED_METRICS_DIR` every second. No model is loaded for a scrape, and Redis is
asked only for the labels of streams whose predictions wait for some.
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
from hinged_service.tasks import cancel
from hinged_service.telemetry.exposition import exposed
from hinged_service.telemetry.worker_report import DiskSample, Labels, ModelSample, WorkerReport
from hinged_service.wire.codec import fold_tag

__all__ = ["Scraping"]

logger = logging.getLogger(__name__)

_EVERY_S = 1.0
_LABELS_S = 1.0
_ASKED_AT_ONCE = 8
_PATIENCE_S = 0.5


class Scraping:
    """The reports of this worker, and the answers to scrapes; `feeds` counts open live feeds."""

    def __init__(self, registry: ModelRegistry, feeds: Callable[[], int]) -> None:
        self._registry = registry
        self._feeds = feeds
        self._observer = registry.connection.observer
        self._labels: dict[str, Labels] = {}
        self._rows: dict[str, ModelSample] = {}
        self._asked: set[str] = set()
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
        await self._ask_for_labels()
        page = self._page()
        gathered = await asyncio.to_thread(self._observer.gather, page)
        return await asyncio.to_thread(exposed, gathered, hinged.__version__, fold_tag(), accept)

    async def _publish(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
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
        known, self._rows = self._rows, {}
        for live_model in self._told():
            uid, lost = live_model.entry.uid, registry.connection.lost
            row = known.get(uid) if live_model.away else _row(live_model, lost)
            if row is not None:  # while long work has the state: what was told last
                self._rows[uid] = row
        rows = list(self._rows.values())
        labels, disk = dict(self._labels), _disk(registry.connection.disk)
        return self._observer.page(registry.open_count, self._feeds(), rows, labels, disk)

    async def _ask_for_labels(self) -> None:
        """Read the counts of labels of the streams in use, once a second at most."""
        async with self._asking:
            if time.monotonic() - self._asked_at_s < _LABELS_S:
                return
            by_stream = {a.entry.stream: a for a in self._told()}
            self._labels = {s: told for s, told in self._labels.items() if s in by_stream}
            self._asked.intersection_update(by_stream)
            wanted = (
                (stream, live_model)
                for stream, live_model in by_stream.items()
                if live_model.delayed.in_use or stream in self._labels or stream not in self._asked
            )
            with contextlib.suppress(TimeoutError, ServiceError):  # the last ones known will do
                async with asyncio.timeout(_PATIENCE_S):
                    await asyncio.gather(*(self._ask_each(wanted) for _ in range(_ASKED_AT_ONCE)))
            self._asked_at_s = time.monotonic()

    async def _ask_each(self, wanted: Iterator[tuple[str, LiveModel]]) -> None:
        for stream, live_model in wanted:
            at_s = time.time()
            found = await pending_predictions.counts(self._registry.connection, live_model.keys.on)
            self._asked.add(stream)
            if found is not None:
                self._labels[stream] = Labels(
                    at_s, found["waiting"], found["joined"], found["expired"], found["late"]
                )

    def _told(self) -> Iterator[LiveModel]:
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
