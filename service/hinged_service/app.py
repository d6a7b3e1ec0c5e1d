"""The application: settings in, an ASGI app out."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

from fastapi import FastAPI
from starlette.routing import Route

import hinged
from hinged_service.errors import Unavailable
from hinged_service.host import Host
from hinged_service.routes import health, hot, models, openapi, problems
from hinged_service.settings import Settings
from hinged_service.store.connection import Connection
from hinged_service.store.embedded import EmbeddedServer

__all__ = ["create_app"]

logger = logging.getLogger(__name__)

_ABOUT = """Online perceptrons that learn from labelled events as they arrive: each event once,
in one order for all workers, durable in Redis."""


def create_app(settings: Settings | None = None) -> FastAPI:
    """Return the service as an ASGI application.

    Parameters
    ----------
    settings
        The settings; from `HINGED_…` environment variables if left out.

    Raises
    ------
    StartupError
        When the app starts: there is no usable Redis; the message says what to do.

    """
    settings = settings or Settings()
    predicting, learning = hot.Predicting(settings), hot.Learning(settings)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with _redis(settings) as connection:
            host = Host(connection, settings)
            predicting.host = learning.host = app.state.host = host
            host.start()
            try:
                yield
            finally:
                await host.aclose()

    app = FastAPI(title="hinged", version=hinged.__version__, description=_ABOUT, lifespan=lifespan)
    problems.install(app)
    for path, call in (("predict", predicting), ("learn", learning)):
        app.router.routes.insert(0, Route(f"/v1/models/{{model}}/{path}", call, methods=["POST"]))
    app.include_router(models.router(settings))
    app.include_router(health.router)
    openapi.install(app)
    return app


@contextlib.asynccontextmanager
async def _redis(settings: Settings) -> AsyncIterator[Connection]:
    """Connect to the configured Redis, or to the embedded one that is started if need be."""
    if settings.redis_url is not None:
        async with _connected(settings.redis_url, settings) as connection:
            yield connection
        return
    embedded = EmbeddedServer(settings.data_dir)
    url = await asyncio.to_thread(embedded.acquire)
    try:
        async with _connected(url, settings) as connection:
            yield connection
    finally:
        await asyncio.to_thread(embedded.release)


@contextlib.asynccontextmanager
async def _connected(url: str, settings: Settings) -> AsyncIterator[Connection]:
    connection = Connection(url, settings)
    try:
        try:
            await connection.check_server()
        except Unavailable as error:
            logger.warning("%s Starting all the same; calls answer 503 until it does.", error)
        yield connection
    finally:
        await connection.aclose()
