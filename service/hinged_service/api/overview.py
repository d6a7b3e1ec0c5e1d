"""All models at a glance, for the page."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request

from hinged_service.api.dependencies import access_of
from hinged_service.api.struct_route import StructRoute
from hinged_service.insights.overview import Overview
from hinged_service.wire.reports import ModelGlance, ModelGlances

__all__ = ["router"]


def router() -> APIRouter:
    """Return the routes."""
    routes = APIRouter(prefix="/v1", tags=["models"], route_class=StructRoute)

    @routes.get("/overview", summary="Get an overview of all models")
    async def overview(
        request: Request,
        match: Annotated[
            str, Query(max_length=128, description="Only models whose names contain this.")
        ] = "",
        count: Annotated[int, Query(ge=1, le=100, description="Largest number to return.")] = 50,
    ) -> ModelGlances:
        """Return the state of models, at most a second old, at one cost for all readers."""
        models: Overview = request.app.state.overview
        access = access_of(request)
        found = {
            name: entry
            for name, entry in (await models.entries()).items()
            if match in name and access.includes(name)
        }
        first = dict(list(found.items())[:count])
        glances = tuple(ModelGlance(**one._asdict()) for one in await models.glances(first))
        return ModelGlances(len(found), glances)

    return routes
