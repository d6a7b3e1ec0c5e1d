"""The newest events of a model's stream."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from hinged_service.api.dependencies import AtLeast, Name, fresh, problems_for, registry_of
from hinged_service.insights.recent_events import recent

__all__ = ["router"]


class RecentEvent(BaseModel):
    """A labelled event, and what the model says of it now that it has learned from it."""

    position: str
    number: int = Field(description="Its number within the entry of the log.")
    at_ms: int = Field(description="When it arrived, in milliseconds since 1970.")
    id: str | None
    x: dict[str, Any] = Field(description="The features.")
    y: bool | int | str = Field(description="The label.")
    w: float
    y_pred: bool | int | str | None = Field(description="The label that the model predicts now.")
    score: float = Field(description="Its score now.")


def router() -> APIRouter:
    """Return the routes."""
    routes = APIRouter(prefix="/v1/models/{model}", tags=["models"])

    @routes.get(
        "/recent",
        summary="Look at the newest events",
        responses=problems_for({404: "There is no such model.", 503: "Redis does not answer."}),
    )
    async def get_recent(
        request: Request,
        model: Name,
        count: Annotated[int, Query(ge=1, le=500, description="How many at most.")] = 100,
        at_least: AtLeast = None,
    ) -> list[RecentEvent]:
        """Return the newest events of the model's stream that it can take, the newest first.

        They are read from the log: what was trimmed is not told, nor what lies behind a MB
        of newer events.
        """
        live_model = await fresh(request, model, at_least)
        found = await recent(registry_of(request).connection, live_model, count)
        return [RecentEvent(**one._asdict()) for one in found]

    return routes
