"""Readiness of this worker: its Redis, the models to load first, its shutdown."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from hinged_service.engine.registry import ModelRegistry
from hinged_service.errors import Detail, NotFound, ServiceError, SetAside, Unavailable
from hinged_service.settings import Settings
from hinged_service.tasks import cancel

__all__ = ["Readiness"]

logger = logging.getLogger(__name__)

_PAUSE_S = 0.1


class Readiness:
    """Readiness of a worker; `is_stopping` is true after a request to stop."""

    def __init__(
        self, registry: ModelRegistry, settings: Settings, is_stopping: Callable[[], bool]
    ) -> None:
        self._registry = registry
        self._is_stopping = is_stopping
        self._timeout_s = settings.redis_timeout_ms / 1000
        names = (name.strip() for name in (settings.preload or "").split(","))
        self._missing = {name for name in names if name}
        self._loading: asyncio.Task[None] | None = None
        self._asking: asyncio.Task[tuple[list[Detail], Sequence[str]]] | None = None

    def start(self) -> None:
        """Begin to load the models of HINGED_PRELOAD."""
        if self._missing:
            self._loading = asyncio.create_task(self._load())

    async def aclose(self) -> None:
        """Stop loading and asking."""
        await cancel(self._loading, self._asking)

    async def check(self) -> Sequence[str]:
        """Return the risks to the data in Redis, if the worker can serve.

        Raises
        ------
        Unavailable
            It cannot; with the faults of worker, Redis and models.

        """
        faults = []
        if self._is_stopping():
            faults.append(Detail("worker", "is stopping"))
        if self._missing:
            names = ", ".join(sorted(self._missing))
            faults.append(Detail("models", f"are still loaded: {names}"))
        of_redis, risks = await self._ask_redis()
        faults += of_redis
        if faults:
            raise Unavailable("The worker is not ready: see errors.", faults, retry_after_s=1)
        disk = self._registry.connection.disk
        return [*risks, disk.warning] if disk is not None and disk.warning else risks

    async def _ask_redis(self) -> tuple[list[Detail], Sequence[str]]:
        """Return faults and risks of Redis; calls meanwhile get the same answer."""
        if self._asking is None:
            self._asking = asyncio.create_task(self._redis_faults())
            self._asking.add_done_callback(self._asked)
        return await asyncio.shield(self._asking)

    def _asked(self, _: asyncio.Task[tuple[list[Detail], Sequence[str]]]) -> None:
        self._asking = None

    async def _redis_faults(self) -> tuple[list[Detail], Sequence[str]]:
        connection = self._registry.connection
        try:
            async with asyncio.timeout(self._timeout_s):
                risks = await connection.check_again()
                await connection.check_writable()
        except TimeoutError:
            return [Detail("redis", "does not answer")], ()
        except ServiceError as error:
            return [Detail("redis", error.detail)], ()
        return [], risks

    async def _load(self) -> None:
        """Load the models of HINGED_PRELOAD, except those that cannot be loaded."""
        while self._missing:
            for name in sorted(self._missing):
                try:
                    live_model = await self._registry.open(name)
                except (NotFound, SetAside) as error:
                    logger.warning("model %s is not loaded at the start: %s", name, error.detail)
                    self._missing.discard(name)
                except Unavailable:
                    continue
                else:
                    if live_model.status.caught_up:
                        self._missing.discard(name)
                    else:
                        live_model.freshness.resume_catch_up()
            await asyncio.sleep(_PAUSE_S)
