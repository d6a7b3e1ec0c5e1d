"""Checkpoints, and models as portable documents."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from pydantic import Field

from hinged_service.api.bodies import read_json_body
from hinged_service.api.dependencies import (
    Name,
    access_of,
    body_of,
    document,
    found_checkpoint,
    fresh,
    lifecycle_of,
    problems_for,
    registry_of,
)
from hinged_service.api.large_answers import LargeAnswer
from hinged_service.api.models import listed
from hinged_service.api.progress_lines import on_progress_of, progress_answer
from hinged_service.api.struct_route import StructRoute
from hinged_service.engine import export as portable
from hinged_service.engine.live_model import LiveModel
from hinged_service.errors import Conflict
from hinged_service.model.spec import Learner
from hinged_service.model.start import NAME_PATTERN, Exclude
from hinged_service.model.start import Name as PlainName
from hinged_service.server.admission import HELD
from hinged_service.settings import LimitSettings
from hinged_service.store import checkpoints as stored
from hinged_service.wire.codec import DamagedState
from hinged_service.wire.progress import SIZE_HEADER
from hinged_service.wire.responses import Checkpoint, ModelListed
from hinged_service.wire.strict_model import StrictModel

__all__ = ["bodies", "router"]


class CheckpointRequest(StrictModel):
    """The name of a new checkpoint."""

    name: PlainName | None = Field(None, description="Unique on the stream; none if left out.")


class Replay(StrictModel):
    """Rules for rebuilding a model beside the old one."""

    name: PlainName = Field(description="The new model's name.")
    checkpoint: str | None = Field(
        None,
        max_length=128,
        description="Start from this checkpoint; from the oldest event that the stream still has "
        "if left out.",
    )
    exclude: Exclude | None = Field(None, description="Events to leave out.")
    learner: Learner | None = Field(None, description="Another learner or other parameters.")


bodies = (CheckpointRequest, Replay)
CheckpointName = Annotated[str, Path(max_length=128, description="Name or uid of the checkpoint.")]


def router(settings: LimitSettings) -> APIRouter:
    """Return the routes."""
    importing, exporting = asyncio.Lock(), asyncio.Lock()
    routes = APIRouter(
        prefix="/v1/models/{model}",
        tags=["checkpoints"],
        route_class=StructRoute,
        responses=problems_for({404: "There is no such model or checkpoint."}),
    )
    wrong = problems_for({409: "The name is taken.", 422: "The body is wrong."})

    @routes.post(
        "/checkpoints",
        status_code=201,
        summary="Make a checkpoint",
        responses=wrong,
        openapi_extra={**document(CheckpointRequest), **progress_answer(201)},
    )
    async def make_checkpoint(request: Request, model: Name) -> Checkpoint:
        """Keep the model's present state, permanently."""
        wanted = await body_of(request, CheckpointRequest, settings.max_body_bytes)
        live_model = await fresh(request, model)
        await live_model.freshness.read()
        return _listed(
            await live_model.checkpoints.make(wanted.name, on_progress_of(request.scope))
        )

    @routes.get("/checkpoints", summary="List the checkpoints")
    async def list_checkpoints(request: Request, model: Name) -> list[Checkpoint]:
        """Return the checkpoints of the models on the model's stream, oldest first.

        Those whose description is damaged are left out; the model's `damaged` names them.
        """
        live_model = await fresh(request, model)
        found, access = await live_model.checkpoints.listed(), access_of(request)
        return [_listed(one) for one in found if access.includes(one.model)]

    @routes.delete(
        "/checkpoints/{checkpoint}",
        status_code=204,
        response_class=Response,
        summary="Delete a checkpoint",
        responses=problems_for({409: "A model still needs it."}),
    )
    async def delete_checkpoint(request: Request, model: Name, checkpoint: CheckpointName) -> None:
        """Delete it, unless a model starts with it or is about to restore it.

        One whose description is damaged is named by its uid.
        """
        live_model = await fresh(request, model)
        user = await _dropped(request, live_model, checkpoint)
        if user is not None:
            names = {e.uid: name for name, e in (await registry_of(request).entries()).items()}
            name = names.get(user, user)
            who = f"The model {name!r}" if access_of(request).includes(name) else "Another model"
            raise Conflict(
                f"{who} needs it: it starts with it, or its snapshot is not past the command that "
                "restores it."
            )

    @routes.get(
        "/checkpoints/{checkpoint}/export",
        summary="Export a checkpoint",
        response_class=Response,
        responses={
            200: {
                "content": {"application/json": {"schema": {"type": "object"}}},
                "description": f"The document; `{SIZE_HEADER}` is its approximate size.",
            }
        },
        openapi_extra=progress_answer(200),
    )
    async def export(request: Request, model: Name, checkpoint: CheckpointName) -> Response:
        """Return spec and state as one JSON document, for another server to import."""
        live_model = await fresh(request, model)
        found = await found_checkpoint(request, live_model, checkpoint)
        async with exporting:  # their states are counted once they are read
            loaded = await live_model.checkpoints.read(found, on_progress_of(request.scope))
            pieces = portable.exported(found, loaded)
            request.scope[HELD].add_answer(portable.exported_bytes(loaded))
        size = {SIZE_HEADER: str(portable.document_bytes(loaded))}
        return LargeAnswer(_in_thread(pieces), size)

    @routes.post(
        "/import",
        status_code=201,
        summary="Import a model",
        responses=wrong,
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": {"type": "object"}}},
            },
            **progress_answer(201),
        },
    )
    async def import_model(
        request: Request, model: Annotated[str, Path(pattern=NAME_PATTERN)]
    ) -> ModelListed:
        """Make a model of an exported document; it goes on from the next event of its stream."""
        scope, receive, most = request.scope, request.receive, settings.max_import_bytes
        lifecycle, on_progress = lifecycle_of(request), on_progress_of(request.scope)
        async with importing:  # no two of these big bodies at once
            body = await read_json_body(scope, receive, most, counted=False)
            await lifecycle.check_free(model)  # to read a large one takes long
            document = await asyncio.to_thread(portable.imported, body, on_progress)
        entry = await lifecycle.create_imported(model, document, access_of(request), on_progress)
        return listed(model, entry)

    @routes.post(
        "/replay",
        status_code=201,
        summary="Rebuild a model beside the old one",
        responses=wrong,
        openapi_extra={**document(Replay), **progress_answer(201)},
    )
    async def replay(request: Request, model: Name) -> ModelListed:
        """Make a model that learns the past again, without some events or by another learner.

        It catches up in the background and answers 503 with its progress until then.
        """
        wanted = await body_of(request, Replay, settings.max_body_bytes)
        access = access_of(request)
        access.check(wanted.name)
        live_model = await fresh(request, model)
        entry, _ = await lifecycle_of(request).replay(
            *(live_model, wanted.name, wanted.checkpoint, wanted.exclude, wanted.learner),
            access,
            on_progress_of(request.scope),
        )
        return listed(wanted.name, entry)

    return routes


async def _dropped(request: Request, live_model: LiveModel, checkpoint: str) -> str | None:
    """Delete a checkpoint of a model's stream, or return the uid of a model that needs it."""
    try:
        found = await found_checkpoint(request, live_model, checkpoint)
    except DamagedState:  # it does not name its model
        for name, entry in (await registry_of(request).entries()).items():
            if entry.stream == live_model.entry.stream:
                access_of(request).check(name, "every model that the checkpoint may be of")
        return await live_model.checkpoints.drop(checkpoint)
    return await live_model.checkpoints.drop(found.uid, found.name)


async def _in_thread(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the pieces, each made in a thread."""
    while piece := await asyncio.to_thread(next, pieces, b""):
        yield piece


def _listed(checkpoint: stored.Checkpoint) -> Checkpoint:
    return Checkpoint(**checkpoint.model_dump(mode="json", by_alias=True))
