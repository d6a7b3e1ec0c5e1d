"""The past of a model: the newest events of its stream, and its history."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request

from hinged_service.api.dependencies import AtLeast, Name, fresh, registry_of
from hinged_service.api.struct_route import StructRoute
from hinged_service.insights.model_history import history_of
from hinged_service.insights.recent_events import recent
from hinged_service.wire.reports import ModelHistory, RecentEvent

__all__ = ["router"]


def router() -> APIRouter:
    """Return the routes."""
    routes = APIRouter(prefix="/v1/models/{model}", tags=["history"], route_class=StructRoute)

    @routes.get("/recent", summary="Get the newest events")
    async def get_recent(
        request: Request,
        model: Name,
        count: Annotated[int, Query(ge=1, le=500, description="Largest number to return.")] = 100,
        at_least: AtLeast = None,
    ) -> list[RecentEvent]:
        """Return the newest events of the model's stream that it can take, the newest first.

        They are read from the log: events that were trimmed, or lie behind a MB of newer
        ones, are missing.
        """
        live_model = await fresh(request, model, at_least)
        found = await recent(registry_of(request).connection, live_model, count)
        return [RecentEvent(**one._asdict()) for one in found]

    @routes.get("/history", summary="Get the history of a model")
    async def get_history(request: Request, model: Name, at_least: AtLeast = None) -> ModelHistory:
        """Return the history of the model since its first event, in at most 500 points.

        It is part of the model's state: a reset goes on with it, and a state that is restored,
        imported or started from brings its own.
        """
        return await history_of(await fresh(request, model, at_least))

    return routes
