"""All models at a glance, for the page."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from hinged_service.api.api_keys import Key
from hinged_service.api.dependencies import problems_for
from hinged_service.insights.overview import Overview

__all__ = ["router"]


class Glanced(BaseModel):
    """A model at a glance."""

    name: str
    stream: str
    learner: str = Field(description="The type of its learner.")
    at_ms: int | None = Field(description="When the last entry that it learned was made.")
    events: int | None
    judged: int | None = Field(description="Events that count in accuracy: 1 - mistakes / judged.")
    mistakes: int | None
    updates: int | None
    metrics: dict[str, Any] | None = Field(description="Its progressive metrics by name.")
    drifts: int | None
    drifts_at_ms: tuple[int, ...] = Field(description="When the last of them were found.")
    frozen: bool
    stale_s: float | None = Field(description="How old what is known of the log is.")
    problem: str | None = Field(description="Why it cannot be served here and now.")


class Glances(BaseModel):
    """Some models at a glance."""

    total: int = Field(description="How many models match.")
    models: list[Glanced] = Field(description="The first of them, in order of name.")


def router() -> APIRouter:
    """Return the routes."""
    routes = APIRouter(prefix="/v1", tags=["models"])

    @routes.get(
        "/overview",
        summary="See all models at a glance",
        responses=problems_for({503: "Redis does not answer."}),
    )
    async def overview(
        request: Request,
        match: Annotated[
            str, Query(max_length=128, description="Only models whose names contain this.")
        ] = "",
        count: Annotated[int, Query(ge=1, le=100, description="How many at most.")] = 50,
    ) -> Glances:
        """Return how models stand, at most a second old: however many look, it costs the same."""
        models: Overview = request.app.state.overview
        key: Key | None = request.scope.get("hinged.key")
        found = {
            name: entry
            for name, entry in (await models.entries()).items()
            if match in name and (key is None or key.may_use(name))
        }
        first = dict(list(found.items())[:count])
        shown = [Glanced(**one._asdict()) for one in await models.glances(first)]
        return Glances(total=len(found), models=shown)

    return routes
