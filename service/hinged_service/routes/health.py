"""Whether the worker is alive, and whether it can serve."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel

from hinged_service.host import Host
from hinged_service.routes.problems import Problem

__all__ = ["router"]

router = APIRouter(tags=["health"])


class Health(BaseModel):
    """The state of the worker that answered."""

    status: Literal["alive", "ready"]


_NOT_READY: dict[int | str, dict[str, Any]] = {
    503: {"model": Problem, "description": "Redis cannot be reached or takes no writes."}
}


@router.get("/healthz", summary="Is the worker alive?")
async def healthz() -> Health:
    """Answer as long as the worker runs, whatever Redis does."""
    return Health(status="alive")


@router.get("/readyz", summary="Can the worker serve?", responses=_NOT_READY)
async def readyz(request: Request) -> Health:
    """Answer 200 if Redis can be reached and takes writes, else 503 with the reason."""
    host: Host = request.app.state.host
    await host.connection.ensure_checked()
    await host.connection.check_writable()
    return Health(status="ready")
