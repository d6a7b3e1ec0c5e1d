"""Whether the worker is alive, and whether it can serve."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel

from hinged_service.api.problems import Problem
from hinged_service.api.readiness import Readiness

__all__ = ["router"]

router = APIRouter(tags=["health"])


class Health(BaseModel):
    """The state of the worker that answered."""

    status: Literal["alive", "ready"]


_NOT_READY: dict[int | str, dict[str, Any]] = {
    503: {"model": Problem, "description": "Of worker, redis and models, what is in the way."}
}


@router.get("/healthz", summary="Is the worker alive?")
async def healthz() -> Health:
    """Answer as long as the worker runs, whatever Redis does."""
    return Health(status="alive")


@router.get("/readyz", summary="Can the worker serve?", responses=_NOT_READY)
async def readyz(request: Request) -> Health:
    """Answer 200 if requests may be sent here, else 503 with what is in the way.

    Redis can be reached, is fit to keep models and takes writes; what HINGED_PRELOAD names is
    loaded; the worker was not told to stop. A model that is catching up is no reason: only
    calls for it answer 503.
    """
    readiness: Readiness = request.app.state.readiness
    await readiness.check()
    return Health(status="ready")
