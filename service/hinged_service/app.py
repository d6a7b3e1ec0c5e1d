"""The application: settings in, an ASGI app out."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from time import perf_counter

from fastapi import FastAPI
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

import hinged
from hinged_service.api import (
    bound,
    checkpoints,
    commands,
    explain,
    head_requests,
    health,
    history,
    live,
    metrics,
    models,
    openapi,
    overview,
    page,
    problems,
    streams,
)
from hinged_service.api import events as hot
from hinged_service.api.api_keys import Keys
from hinged_service.api.events import Call
from hinged_service.api.forwarding import Forwarding
from hinged_service.api.open_inference import routes
from hinged_service.api.peer_calls import PeerCalls
from hinged_service.api.rate_limits import Rates
from hinged_service.api.readiness import Readiness
from hinged_service.engine.housekeeping import Housekeeping
from hinged_service.engine.lifecycle import ModelLifecycle
from hinged_service.engine.registry import ModelRegistry
from hinged_service.errors import Malformed, ServiceError, Unavailable
from hinged_service.ingest.inbox import Inboxes
from hinged_service.insights.live_feed import Feeds
from hinged_service.insights.model_metrics import Scraping
from hinged_service.insights.overview import Overview
from hinged_service.river_support import custom
from hinged_service.server import framing
from hinged_service.server.admission import AdmissionControl
from hinged_service.server.fast_path import FastPath, PlainCall
from hinged_service.server.lingering_close import Lingering
from hinged_service.server.memory import collect_rarely, keep_freed
from hinged_service.server.owners import Owners
from hinged_service.server.shutdown import Stopping
from hinged_service.settings import Settings
from hinged_service.store.configured_redis import opened
from hinged_service.telemetry import request_context, tracing
from hinged_service.telemetry.observer import Observer

__all__ = ["create_app"]

_ABOUT = """Online perceptrons that learn from labelled events as they arrive: each event once,
in one order for all workers, durable in Redis.

JSON is UTF-8; a byte order mark in front is ignored. If a name occurs twice in the object of an
event, the last value counts."""


_FAILED = 500


class _Service(FastAPI):
    """FastAPI behind a check of each request's framing, key, rate and share of the worker.

    Attributes
    ----------
    fast_path
        The calls that `FastPathProtocol` answers without the application, if any.

    """

    observer: Observer | None = None
    keys: Keys | None = None
    rates: Rates
    room: AdmissionControl
    fast_path: FastPath | None = None
    stopping: Stopping | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        request_context.current.set(scope)
        try:
            last = framing.check(scope, send)
        except Malformed as error:
            await self._refuse(error, scope, Lingering(scope, receive, send, close=True).send)
            return
        if not scope["path"].startswith("/"):
            framing.take_origin_form(scope)
        last = last or not framing.is_usual(scope)
        if last or framing.has_body(scope):
            lingering = Lingering(scope, receive, send, close=last)
            receive, send = lingering.receive, lingering.send
        if self.observer is not None and self.observer.tracing is not None:
            await self.observer.tracing.request(self._admitted, scope, receive, send)
        else:
            await self._admitted(scope, receive, send)

    async def _admitted(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request if it may be made."""
        began_s = perf_counter()
        try:
            if self.keys is not None:
                await self._admit(self.keys, scope)
            held = self.room.enter(scope)
        except ServiceError as error:
            await self._refuse(error, scope, send, perf_counter() - began_s)
            return
        try:
            await self._route(scope, receive, send, began_s)
        finally:
            held.leave()

    async def _refuse(
        self, error: ServiceError, scope: Scope, send: Send, seconds: float = 0.0
    ) -> None:
        self._count(scope, error.status, seconds)
        await problems.send_problem(error, send)

    async def _admit(self, keys: Keys, scope: Scope) -> None:
        """Check that the request may be made now, and note whose it is.

        Raises
        ------
        Unauthorized, Forbidden, Busy
            It may not.

        """
        authorization = next((v for name, v in scope["headers"] if name == b"authorization"), None)
        key = scope["hinged.key"] = keys.authorize(authorization, scope["method"], scope["path"])
        if key is not None and (limit := self.rates.limit(key)) is not None:
            await self.rates.take(key, limit)

    def is_allowed(self, scope: Scope) -> bool:
        """Return whether a request like this one may always be made: its answer needs no look."""
        if not framing.is_plain(scope):
            return False
        if self.keys is None:
            return True
        try:
            authorization = next(
                (v for name, v in scope["headers"] if name == b"authorization"), None
            )
            key = self.keys.authorize(authorization, scope["method"], scope["path"])
        except ServiceError:
            return False
        return key is None or self.rates.limit(key) is None

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        if self.observer is not None:
            route = request_context.template(scope)
            self.observer.answered(scope["method"], route, status, seconds)

    async def _route(self, scope: Scope, receive: Receive, send: Send, began_s: float) -> None:
        """Answer through FastAPI's router."""
        begun = scope[request_context.BEGINNING] = request_context.Beginning(send)
        sending, routed = problems.guarded(begun), super().__call__
        try:
            if scope["method"] == "HEAD":
                await head_requests.answer_as_get(routed, scope, sending)
            else:
                await routed(scope, receive, sending)
        except Exception:
            if begun.status != _FAILED:  # else it is logged and answered
                raise
        except asyncio.CancelledError:  # by a server whose patience with its calls ended
            if begun.begun or not (self.stopping and self.stopping.begun):
                raise
            error = Unavailable(
                "The worker stopped before the call ended. The call may have taken effect: "
                "the same events with ids may be sent again.",
                retry_after_s=1,
            )
            await problems.send_problem(error, begun)
        finally:
            self._count(scope, begun.status, begun.at_s - began_s)


def create_app(settings: Settings | None = None) -> FastAPI:
    """Return the service as an ASGI application.

    Parameters
    ----------
    settings
        The settings; from `HINGED_…` environment variables if left out.

    Raises
    ------
    StartupError
        When the app starts: there is no usable Redis, or the operator's own models cannot be
        served; the message states what to do.

    """
    settings = settings or Settings()
    predicting, learning = hot.Predicting(settings), hot.Learning(settings)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        keep_freed()
        collect_rarely()
        custom.install(settings.models)
        observer = app.observer = Observer(settings.metrics_dir, settings.metrics_models)
        observer.tracing = tracing.configured(os.environ)
        async with opened(settings, observer) as connection:
            registry = ModelRegistry(connection, settings)
            predicting.registry = learning.registry = app.state.registry = registry
            shared = settings.metrics_dir if settings.owners == "auto" else None
            if observer.tracing is not None:  # a trace has the append of its call
                shared = None
            owners = Owners(shared, settings, PeerCalls(learning, app.room))
            plain: dict[str, PlainCall] = {"predict": predicting, "learn": learning}
            if await owners.start():
                forwarding = Forwarding(owners, connection, learning, settings.max_events_per_call)
                plain["learn"] = learning.forwarding = forwarding
            if settings.fast_path and observer.tracing is None and not app.user_middleware:
                app.fast_path = FastPath(
                    plain, app.room, hot.HEADERS, app.is_allowed, observer.answered
                )
            lifecycle = app.state.lifecycle = ModelLifecycle(registry, settings)
            feeds = app.state.feeds = Feeds(registry, settings)
            stopping = app.stopping = registry.stopping
            stopping.listen()
            housekeeping = Housekeeping(registry, lifecycle, settings)
            housekeeping.start()
            app.state.overview = Overview(registry)
            inboxes = Inboxes(registry, settings)
            inboxes.start()
            ready = app.state.readiness = Readiness(registry, settings, lambda: stopping.begun)
            ready.start()
            scraping = app.state.scraping = Scraping(registry, lambda: feeds.open_count)
            scraping.start()
            try:
                with stopping.ending(feeds.end), stopping.ending(owners.leave):
                    yield
            finally:
                stopping.begin()
                stopping.listen_no_more()
                await ready.aclose()
                await inboxes.aclose()
                await feeds.aclose()
                await housekeeping.aclose()
                await registry.aclose()
                await owners.aclose()
                await scraping.aclose()
                if observer.tracing is not None:
                    await asyncio.to_thread(observer.tracing.close)

    app = _Service(
        title="hinged",
        version=hinged.__version__,
        description=_ABOUT,
        lifespan=lifespan,
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False},  # it misses the hot calls
    )
    problems.install(app)
    app.keys = Keys.load(settings.keys_file, settings.keys)
    app.rates, app.room = Rates(app.keys or ()), AdmissionControl(settings)
    calls: dict[str, Call] = {"predict": predicting, "learn": learning}
    for path, call in calls.items():
        app.router.routes.insert(0, Route(f"/v1/models/{{model}}/{path}", call, methods=["POST"]))
    # Routes of the app itself: those of an included router FastAPI would all make once more.
    for part in (models, commands, checkpoints, explain, streams, routes, live, bound):
        app.router.routes += part.router(settings).routes
    app.router.routes += health.router.routes
    for other in (metrics, overview, history, page):
        app.router.routes += other.router().routes
    openapi.install(app)
    return app
