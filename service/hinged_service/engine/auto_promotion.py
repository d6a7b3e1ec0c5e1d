"""Aliases that go to the best other model when a model's drift detector fires.

The state only records a detection. Every worker that sees a new one decides, and the
decision is named by model, entry and event: the script that promotes carries it out once.
A detection is acted on while it is new, by its entry's time: when a worker folds it, or opens
the model and finds it as the last one (the worker that found it may have died). So neither a
replayed past nor a model unused for long moves an alias; nor does a detection that found no
other model to switch to, once one is there.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence

from hinged_service.engine.aliases import Aliases
from hinged_service.engine.live_model import LiveModel
from hinged_service.errors import ServiceError, SetAside, Unavailable
from hinged_service.model.index_entry import IndexEntry
from hinged_service.model.inspection import recent_accuracy
from hinged_service.model.results import Detection
from hinged_service.retry import backoff, retry
from hinged_service.tasks import cancel
from hinged_service.wire.position import EntryId

__all__ = ["NEW_S", "Switching"]

logger = logging.getLogger(__name__)

NEW_S = 600.0
"""Age of its entry, in seconds, up to which a detection is acted on."""

_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0


class Switching:
    """Carries out the promotions that drifts of this worker's models ask for."""

    def __init__(
        self,
        aliases: Aliases,
        entries: Callable[[], Awaitable[dict[str, IndexEntry]]],
        open_model: Callable[[str], Awaitable[LiveModel]],
    ) -> None:
        self._aliases = aliases
        self._entries = entries
        self._open = open_model
        self._tasks: set[asyncio.Task[None]] = set()

    def watch_drift(self, name: str, live_model: LiveModel) -> None:
        """Switch an alias when a model's drift detector fires."""
        alias = live_model.entry.fold.promotes
        if alias is None:
            return

        def act(detections: Sequence[Detection]) -> None:
            if detections and _age_s(detections[-1]) < NEW_S:
                self._begin(self._switch(alias, name, live_model, detections[-1]))

        async def act_on_past() -> None:
            with contextlib.suppress(ServiceError):
                act((await live_model.at_rest()).detections)

        live_model.watch(lambda applied: act(applied.detections))
        self._begin(act_on_past())

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def aclose(self) -> None:
        """Give up the promotions under way: another worker, or the next start, does them."""
        await cancel(*self._tasks)

    async def _switch(
        self, alias: str, name: str, live_model: LiveModel, detection: Detection
    ) -> None:
        now_s = asyncio.get_running_loop().time()
        try:
            await retry(
                lambda: self._switch_once(alias, name, live_model, detection),
                now_s + NEW_S - _age_s(detection),
                backoff(_PAUSE_S, _LONGEST_PAUSE_S),
                on=(SetAside, Unavailable),  # Redis is away, or the entry of a newer version
            )
        except ServiceError as error:
            logger.warning("model %s: drift, but no switch: %s", name, error.detail)
        except Exception:
            logger.exception("model %s: drift, but no switch", name)

    async def _switch_once(
        self, alias: str, name: str, live_model: LiveModel, detection: Detection
    ) -> None:
        """Point an alias to the best other model of the stream, once per detection."""
        best = await self._best_challenger(name, live_model.entry.stream)
        if best is None:
            logger.warning("model %s: drift, but its stream has no other model to use", name)
        decision = f"{live_model.entry.uid}:{detection.entry}:{detection.number}"
        made = await self._aliases.promote(alias, name, best or name, decision)
        if made.kind == "ok" and best is not None:
            logger.info("model %s: drift; %s points to %s now", name, alias, best)

    async def _best_challenger(self, name: str, stream: str) -> str | None:
        """Return the other model of the stream that errs least, by recent accuracy."""
        found: dict[str, float] = {}
        for other, entry in (await self._entries()).items():
            if entry.stream != stream or other == name:
                continue
            try:
                challenger = await self._open(other)
                if challenger.status.caught_up:
                    await challenger.freshness.refresh_if_stale()
                    found[other] = recent_accuracy(await challenger.at_rest())
            except ServiceError as error:
                if isinstance(error, Unavailable):
                    raise
                # set aside, or deleted meanwhile: not a model to switch to
        return max(found, key=found.__getitem__, default=None)


def _age_s(detection: Detection) -> float:
    """Return how long ago the entry that showed the drift came."""
    return time.time() - EntryId.of(detection.entry).ms / 1000
