"""Liveness and readiness of the worker."""

from __future__ import annotations

from fastapi import APIRouter, Request

from hinged import kernel
from hinged_service.api.dependencies import problems_for
from hinged_service.api.readiness import Readiness
from hinged_service.api.struct_route import StructRoute
from hinged_service.wire.reports import Health

__all__ = ["router"]

router = APIRouter(tags=["health"], route_class=StructRoute)


_NOT_READY = problems_for({503: "Errors names which of worker, redis and models is not ready."})


@router.get("/healthz", summary="Is the worker alive?")
async def healthz() -> Health:
    """Answer as long as the worker runs, also while Redis does not answer."""
    return Health("alive", kernel=kernel.kind())


@router.get("/readyz", summary="Can the worker serve?", responses=_NOT_READY)
async def readyz(request: Request) -> Health:
    """Answer 200 if requests may be sent here, else 503 with the reasons.

    Redis can be reached, is fit to keep models and takes writes; the models of HINGED_PRELOAD are
    loaded; the worker was not asked to stop. A model that is catching up is no reason: only
    calls for it answer 503. Redis is looked at in each call: `warnings` names what it may lose,
    and a disk of the embedded Valkey that is nearly full.
    """
    readiness: Readiness = request.app.state.readiness
    return Health("ready", tuple(await readiness.check()))
