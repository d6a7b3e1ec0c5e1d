"""Connection to the configured Redis, or to the embedded server."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable

from hinged_service.errors import Unavailable
from hinged_service.settings import RedisSettings
from hinged_service.store.connection import Connection
from hinged_service.store.disk_guard import Disk, DiskLimits
from hinged_service.store.embedded import EmbeddedServer
from hinged_service.telemetry.observer import Observer

__all__ = ["left_unsaved", "opened"]

logger = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def opened(
    settings: RedisSettings, observer: Observer | None = None, check: bool = True
) -> AsyncIterator[Connection]:
    """Connect to the configured Redis, or to the embedded one that is started if need be.

    Parameters
    ----------
    settings, observer
        The worker's.
    check
        Whether to check the server before it is used.

    Raises
    ------
    StartupError
        If it would lose data, or cannot be started; the message states what to do.

    """
    if settings.redis_url is not None:
        async with _connected(settings.redis_url, settings, observer, check=check) as connection:
            yield connection
        return
    embedded = _embedded(settings)
    url = await asyncio.to_thread(embedded.acquire)
    try:
        own = settings.model_copy(update={"redis_password_file": None})
        async with _connected(url, own, observer, lambda: embedded.disk, check) as connection:
            yield connection
    finally:
        await asyncio.to_thread(embedded.release)


def left_unsaved(settings: RedisSettings) -> bool:
    """Return whether the embedded server runs, with acknowledged events that are not on disk."""
    return settings.redis_url is None and _embedded(settings).unsaved() is not None


def _embedded(settings: RedisSettings) -> EmbeddedServer:
    limits = DiskLimits(settings.disk_reserve_bytes, settings.disk_warning_bytes)
    return EmbeddedServer(settings.data_dir, disk=limits)


@contextlib.asynccontextmanager
async def _connected(
    url: str,
    settings: RedisSettings,
    observer: Observer | None,
    disk: Callable[[], Disk | None] = lambda: None,
    check: bool = True,
) -> AsyncIterator[Connection]:
    connection = Connection(url, settings, observer, disk)
    try:
        try:
            if check:
                await connection.check_server()
        except Unavailable as error:
            logger.warning(
                "%s Starting anyway; the service becomes ready when Redis answers.", error
            )
        yield connection
    finally:
        await connection.aclose()
