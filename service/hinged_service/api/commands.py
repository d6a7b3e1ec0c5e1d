"""Commands: entries of the log like events, so every worker applies them at the same place."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import Field, ValidationError

from hinged_service.api.dependencies import (
    Name,
    access_of,
    body_of,
    document,
    found_checkpoint,
    fresh,
    lifecycle_of,
    problems_for,
)
from hinged_service.api.problems import details_of
from hinged_service.api.progress_lines import on_progress_of, progress_answer
from hinged_service.api.struct_route import StructRoute
from hinged_service.engine.live_model import LiveModel
from hinged_service.errors import Detail, Unprocessable
from hinged_service.model.spec import CONFIGURABLE
from hinged_service.settings import LimitSettings
from hinged_service.wire.faults import MAX_DETAILS
from hinged_service.wire.responses import CommandResult, Repaired, Restored, Upgraded
from hinged_service.wire.strict_model import StrictModel

__all__ = ["bodies", "router"]


class Configure(StrictModel):
    """Parameters to change from now on."""

    set: dict[str, Any] = Field(
        min_length=1,
        description="Of learning_rate, C, r, phi, margin, share and forgetting those that it has.",
        examples=[{"learning_rate": 0.1}],
        json_schema_extra={"propertyNames": {"enum": list(CONFIGURABLE)}},
    )


class Restore(StrictModel):
    """The state to go back to."""

    checkpoint: str = Field(max_length=128, description="Name or uid of a checkpoint.")


bodies = (Configure, Restore)


def router(settings: LimitSettings) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(prefix="/v1/models/{model}", tags=["commands"], route_class=StructRoute)
    wrong = problems_for({422: "The body is wrong; errors names the field."})

    @routes.post(
        "/configure",
        summary="Change parameters of the learner",
        responses=wrong,
        openapi_extra=document(Configure),
    )
    async def configure(request: Request, model: Name) -> CommandResult:
        """Change learning rate, aggressiveness and the like; the learned weights stay."""
        wanted = await body_of(request, Configure, settings.max_body_bytes)
        live_model = await fresh(request, model)
        fold = await live_model.at_rest()
        try:
            live_model.entry.spec.configured({**fold.configured, **wanted.set})
        except ValueError as error:
            faults = _faults(error, wanted.set)
            raise Unprocessable("Nothing was changed: see errors.", faults) from None
        return await _do(live_model, {"do": "configure", "set": wanted.set})

    @routes.post("/freeze", summary="Stop learning")
    async def freeze(request: Request, model: Name) -> CommandResult:
        """Only predict from here on; labelled events are still scored in the metrics."""
        return await _do(await fresh(request, model), {"do": "freeze"})

    @routes.post("/unfreeze", summary="Resume learning")
    async def unfreeze(request: Request, model: Name) -> CommandResult:
        """Learn again from here on."""
        return await _do(await fresh(request, model), {"do": "unfreeze"})

    @routes.post("/reset", summary="Reset a model")
    async def reset(request: Request, model: Name) -> CommandResult:
        """Reset learner and pipeline; the counters and metrics continue."""
        return await _do(await fresh(request, model), {"do": "reset"})

    @routes.post(
        "/restore",
        summary="Go back to a checkpoint",
        responses={**wrong, **problems_for({409: "The checkpoint cannot be read."})},
        openapi_extra={**document(Restore), **progress_answer(200)},
    )
    async def restore(request: Request, model: Name) -> Restored:
        """Take the state of a checkpoint, counters and metrics included; the log goes on."""
        wanted = await body_of(request, Restore, settings.max_body_bytes)
        live_model = await fresh(request, model)
        checkpoint = await found_checkpoint(request, live_model, wanted.checkpoint)
        if not live_model.can_restore(checkpoint.spec):
            raise Unprocessable(
                "Nothing was changed: see errors.",
                [
                    Detail(
                        "checkpoint",
                        "is of a model that learns or counts otherwise: see both specs",
                    )
                ],
            )
        was_frozen = (await live_model.at_rest()).frozen
        position = str(await live_model.commands.restore(checkpoint, on_progress_of(request.scope)))
        return Restored(position, (await live_model.at_rest()).frozen, was_frozen)

    @routes.post(
        "/upgrade",
        summary="Hand a model to this version of the service",
        responses=problems_for({409: "This version cannot; nothing was changed."}),
        openapi_extra=progress_answer(200),
    )
    async def upgrade(request: Request, model: Name) -> Upgraded:
        """Go on from the stored snapshot; workers of the version before then answer 503.

        Versions whose arithmetic may differ do not fold the same model. The same again changes
        nothing.
        """
        done = await lifecycle_of(request).upgrade(
            model, access_of(request), on_progress_of(request.scope)
        )
        return Upgraded(str(done.position), done.fold, done.before)

    @routes.post(
        "/repair",
        summary="Repair the log of the model",
        responses=problems_for({409: "The log does not reach back to the model's snapshot."}),
        openapi_extra=progress_answer(200),
    )
    async def repair(
        request: Request,
        model: Name,
        checkpoint: Annotated[
            str | None,
            Query(
                max_length=128,
                description="Name or uid of a checkpoint to go on from, if the snapshot is lost.",
            ),
        ] = None,
    ) -> Repaired:
        """Remove entries that do not follow from the one before; skip damaged ones.

        Ids of removed events still count as seen: send them again under other ids. A damaged
        index entry is put back as the stream notes it, and an inbox whose offset is damaged is read
        from its beginning: what it holds without an id may count again.

        Every worker goes on from the models' snapshots without their events. A log that is sound
        stays as it is. With a checkpoint, a model whose snapshot is lost goes on from that at the
        end of the log; the events in between are not learned again.
        """
        on_progress = on_progress_of(request.scope)
        done = await lifecycle_of(request).repair(
            model, checkpoint, access_of(request), on_progress
        )
        return Repaired(tuple(done.removed), tuple(done.passed_over), tuple(done.records))

    return routes


def _faults(error: ValueError, parameters: dict[str, Any]) -> list[Detail]:
    """Return which parameters are wrong, and why."""
    if isinstance(error, ValidationError):
        found = details_of(error, parameters)[:MAX_DETAILS]
        return [Detail(f"set.{fault.field}", fault.reason) for fault in found]
    return [Detail("set", str(error)[:200])]


async def _do(live_model: LiveModel, command: dict[str, Any]) -> CommandResult:
    return CommandResult(str(await live_model.commands.append(command)))
