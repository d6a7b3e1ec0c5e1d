"""The bound certificate of a model: its past against the perceptron's theorem."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request

from hinged_service.api.dependencies import AtLeast, Name, fresh, problems_for, registry_of
from hinged_service.api.struct_route import StructRoute
from hinged_service.insights.bound_certificate import certify
from hinged_service.settings import Settings
from hinged_service.wire.reports import BoundShown, CertificateShown

__all__ = ["router"]


def router(settings: Settings) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(prefix="/v1/models/{model}", tags=["models"], route_class=StructRoute)
    one_at_a_time = asyncio.Semaphore(1)

    @routes.get(
        "/bound",
        summary="Compare a model with its mistake bound",
        responses=problems_for(
            {409: "No theorem covers the model or its window, or its past is not in the log."}
        ),
    )
    async def bound(request: Request, model: Name, at_least: AtLeast = None) -> CertificateShown:
        """Return the updates of the retained window and the best bounds found on them.

        The window is folded again from the nearest stored state, at most
        `max_bound_events` of it, with the features that left the pipeline.
        """
        async with one_at_a_time:
            live_model = await fresh(request, model, at_least)
            found = await certify(registry_of(request).connection, settings, live_model)
        bounds = {name: BoundShown(*b) for name, b in found.bounds.items()}
        return CertificateShown(**found._asdict() | {"bounds": bounds})

    return routes
