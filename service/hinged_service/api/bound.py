"""How far a model's past is from what the perceptron's theorem promises."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from hinged_service.api.dependencies import AtLeast, Name, fresh, problems_for, registry_of
from hinged_service.insights.bound_certificate import certify
from hinged_service.settings import Settings

__all__ = ["router"]


class BoundShown(BaseModel):
    """A bound on the updates, and the linear function u that gives it."""

    value: float
    norm: float = Field(description="Norm of u, its intercept included.")
    intercept: float = Field(description="Intercept of u.")
    loss: float = Field(
        description="Sum of max(0, 1 - margin) of u: of general over the updates, else over all "
        "events."
    )


class CertificateShown(BaseModel):
    """What a model did in a window of its past, and what the theorem allows."""

    start: str = Field(description="The position before the window.")
    end: str = Field(description="The position of its last entry.")
    events: int = Field(description="Events of weight 1 learned in it.")
    updates: int = Field(description="Those that moved the weights: what the bounds are about.")
    mistakes: int = Field(description="Those whose label the learner predicted wrong.")
    radius: float = Field(description="R: the largest norm of an event, its constant included.")
    margin: float
    learning_rate: float
    start_norm: float = Field(description="Norm of the weights before the window.")
    bounds: dict[str, BoundShown] = Field(
        description="general: from any weights, over the updates. From zero weights with margin 0 "
        "also, over all events: hinge = R² norm² + 2 loss; sharp, never above it; separable, if "
        "some u separates the events."
    )
    holds: bool = Field(description="Whether updates are within every bound; always true.")
    notes: list[str] = Field(description="Why the window starts there; why a bound is missing.")


def router(settings: Settings) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(prefix="/v1/models/{model}", tags=["models"])
    one_at_a_time = asyncio.Semaphore(1)

    @routes.get(
        "/bound",
        summary="Hold a model against its theorem",
        responses=problems_for(
            {
                404: "There is no such model.",
                409: "No theorem covers the model or its window, or its past is not in the log.",
                503: "Redis does not answer.",
            }
        ),
    )
    async def bound(request: Request, model: Name, at_least: AtLeast = None) -> CertificateShown:
        """Return the updates of the retained window and the best bounds found on them.

        The window is folded again from the nearest known state, at most
        `max_bound_events` of it; what was taught is what left the pipeline.
        """
        async with one_at_a_time:
            live_model = await fresh(request, model, at_least)
            found = await certify(registry_of(request).connection, settings, live_model)
        shown = {name: BoundShown(**b._asdict()) for name, b in found.bounds.items()}
        return CertificateShown(**found._asdict() | {"bounds": shown})

    return routes
