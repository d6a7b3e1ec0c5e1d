"""Connection to the configured Redis, or to the embedded server."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

from hinged_service.errors import Unavailable
from hinged_service.settings import RedisSettings
from hinged_service.store.connection import Connection
from hinged_service.store.embedded import EmbeddedServer
from hinged_service.telemetry.observer import Observer

__all__ = ["opened"]

logger = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def opened(
    settings: RedisSettings, observer: Observer | None = None
) -> AsyncIterator[Connection]:
    """Connect to the configured Redis, or to the embedded one that is started if need be.

    Parameters
    ----------
    settings, observer
        The worker's.

    Raises
    ------
    StartupError
        If it would lose data, or cannot be started; the message says what to do.

    """
    if settings.redis_url is not None:
        async with _connected(settings.redis_url, settings, observer) as connection:
            yield connection
        return
    embedded = EmbeddedServer(settings.data_dir)
    url = await asyncio.to_thread(embedded.acquire)
    try:
        own = settings.model_copy(update={"redis_password_file": None})
        async with _connected(url, own, observer) as connection:
            yield connection
    finally:
        await asyncio.to_thread(embedded.release)


@contextlib.asynccontextmanager
async def _connected(
    url: str, settings: RedisSettings, observer: Observer | None
) -> AsyncIterator[Connection]:
    connection = Connection(url, settings, observer)
    try:
        try:
            await connection.check_server()
        except Unavailable as error:
            logger.warning("%s Starting all the same, to go on when it does.", error)
        yield connection
    finally:
        await connection.aclose()
