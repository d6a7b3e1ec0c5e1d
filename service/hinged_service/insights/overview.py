"""Summaries of all models, computed once for all readers."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from hinged_service.engine.registry import ModelRegistry
from hinged_service.engine.state_access import SUMMARY_WAIT_S
from hinged_service.errors import ServiceError
from hinged_service.model.index_entry import IndexEntry
from hinged_service.model.inspection import rolling_accuracy
from hinged_service.wire.position import EntryId

__all__ = ["ModelSummary", "Overview"]

_KEEP_S = 1.0
_CLASSES = 10


class ModelSummary(NamedTuple):
    """A model at a glance; without numbers if this worker cannot serve it now.

    Attributes
    ----------
    name, stream, learner
        Its names, and the type of its learner.
    at_ms
        The time of the last entry of the log that it has learned, in ms since 1970.
    events, judged, mistakes, rolling_accuracy, updates, metrics, drifts, frozen
        Its account.
    drifts_at_ms
        When the last drifts were found.
    stale_s
        The age of the worker's knowledge of the log.
    problem
        The reason why there are no numbers.

    """

    name: str
    stream: str
    learner: str
    at_ms: int | None = None
    events: int | None = None
    judged: int | None = None
    mistakes: int | None = None
    rolling_accuracy: float | None = None
    updates: int | None = None
    metrics: dict[str, Any] | None = None
    drifts: int | None = None
    drifts_at_ms: tuple[int, ...] = ()
    frozen: bool = False
    stale_s: float | None = None
    problem: str | None = None


class Overview:
    """The models of a worker at a glance."""

    def __init__(self, registry: ModelRegistry) -> None:
        self._registry = registry
        self._loop = asyncio.get_running_loop()
        self._entries: asyncio.Task[dict[str, IndexEntry]] | None = None
        self._entries_at_s = 0.0
        self._seen: dict[str, tuple[float, str, asyncio.Task[ModelSummary]]] = {}

    async def entries(self) -> dict[str, IndexEntry]:
        """Return the index entries of all models by name, at most a second old.

        Raises
        ------
        Unavailable
            Redis does not answer.

        """
        now_s = self._loop.time()
        if self._entries is None or now_s - self._entries_at_s > _KEEP_S:
            self._entries = self._loop.create_task(self._registry.entries())
            self._entries_at_s = now_s
        return await asyncio.shield(self._entries)

    async def glances(self, wanted: dict[str, IndexEntry]) -> list[ModelSummary]:
        """Return models at a glance, each at most a second old."""
        now_s = self._loop.time()
        self._seen = {name: seen for name, seen in self._seen.items() if now_s - seen[0] <= _KEEP_S}
        for name, entry in wanted.items():
            seen = self._seen.get(name)
            if seen is None or seen[1] != entry.uid:
                task = self._loop.create_task(self._glance(name, entry))
                self._seen[name] = now_s, entry.uid, task
        tasks = [self._seen[name][2] for name in wanted]
        return list(await asyncio.gather(*map(asyncio.shield, tasks)))

    async def _glance(self, name: str, entry: IndexEntry) -> ModelSummary:
        summary = ModelSummary(name, entry.stream, entry.fold.learner.type)
        try:
            live_model = await self._registry.open(name)
            await live_model.freshness.refresh_if_stale()
            fold = await live_model.at_rest(SUMMARY_WAIT_S)
        except ServiceError as error:
            return summary._replace(problem=error.detail)
        return summary._replace(
            at_ms=live_model.position.order[0],
            events=fold.events,
            judged=fold.judged,
            mistakes=fold.mistakes,
            rolling_accuracy=rolling_accuracy(fold),
            updates=fold.learner.accounting.updates,
            metrics={} if fold.metrics is None else fold.metrics.report(_CLASSES),
            drifts=fold.detected,
            drifts_at_ms=tuple(EntryId.of(d.entry).ms for d in fold.detections),
            frozen=fold.frozen,
            stale_s=max(0.0, live_model.freshness.age_s()),
        )
