"""The metrics of all workers, for Prometheus."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from hinged_service.insights.model_metrics import Scraping

__all__ = ["router"]

_TEXT: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"text/plain": {"schema": {"type": "string"}}},
        "description": "In the requested format.",
    }
}


def router() -> APIRouter:
    """Return the route."""
    routes = APIRouter(tags=["health"])

    @routes.get(
        "/metrics",
        summary="Get the metrics of all workers",
        response_class=Response,
        responses=_TEXT,
    )
    async def metrics(request: Request) -> Response:
        """Return the metrics of all workers, in the text format of Prometheus or OpenMetrics.

        Any worker answers for all of them. No model is loaded for it.
        """
        scraping: Scraping = request.app.state.scraping
        text, media_type = await scraping.scrape(request.headers.get("accept", ""))
        return Response(text, headers={"content-type": media_type})

    return routes
