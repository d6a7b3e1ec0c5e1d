"""Streams with the models that follow them side by side, and aliases."""

from __future__ import annotations

import asyncio
from typing import Annotated, Final, Literal

from fastapi import APIRouter, Path, Request, Response
from pydantic import Field

from hinged_service.api.dependencies import access_of, body_of, document, problems_for, registry_of
from hinged_service.api.schemas import described
from hinged_service.api.struct_route import StructRoute
from hinged_service.engine.registry import ModelRegistry
from hinged_service.engine.state_access import SUMMARY_WAIT_S
from hinged_service.errors import NotFound, ServiceError
from hinged_service.model.inspection import whole_accuracy
from hinged_service.model.start import NAME_PATTERN, Name
from hinged_service.settings import LimitSettings
from hinged_service.wire.responses import (
    AliasInfo,
    Follower,
    Promoted,
    StreamInfo,
    StreamListed,
)
from hinged_service.wire.strict_model import StrictModel

__all__ = ["bodies", "router"]

_CLASSES = 20
_RESULTS: Final[dict[str, Literal["promoted", "refused", "repeated"]]] = {
    "ok": "promoted",
    "moved": "refused",
    "made": "repeated",
}

AliasName = Annotated[str, Path(pattern=NAME_PATTERN, description="The alias.", examples=["live"])]


class AliasSpec(StrictModel):
    """The new model of an alias."""

    model: Name


class Promotion(StrictModel):
    """A decision to point an alias to another model."""

    of: Name = Field(alias="from", description="The model that it points to now.")
    to: Name = Field(description="The model that it points to from now on.")
    decision: str | None = Field(
        None,
        min_length=1,
        max_length=256,
        description="Names the decision: it is carried out once, however often it is sent.",
    )


bodies = (AliasSpec, Promotion)


def router(settings: LimitSettings) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(prefix="/v1", tags=["streams"], route_class=StructRoute)
    wrong = problems_for({409: "The name is taken.", 422: "The body is wrong."})

    @routes.get("/streams", summary="List the streams")
    async def list_streams(request: Request) -> list[StreamListed]:
        """Return every stream with its models and aliases."""
        models, aliases = await registry_of(request).overview()
        return [
            StreamListed(
                stream,
                tuple(name for name, entry in models.items() if entry.stream == stream),
                tuple(alias for alias, (on, _) in aliases.items() if on == stream),
            )
            for stream in sorted({entry.stream for entry in models.values()})
        ]

    @routes.get(
        "/streams/{stream}",
        summary="Compare the models of a stream",
        responses=problems_for({404: "There is no such stream."}),
    )
    async def get_stream(request: Request, stream: str) -> StreamInfo:
        """Return the stream's models side by side; all of them learn from every event."""
        registry = registry_of(request)
        models, aliases = await registry.overview()
        named = {name: entry for name, entry in models.items() if entry.stream == stream}
        if not named:
            raise NotFound(f"There is no stream {stream!r}.")
        meaning = {alias: model for alias, (on, model) in aliases.items() if on == stream}
        found = await asyncio.gather(*(_follower(registry, name, meaning) for name in named))
        found.sort(key=lambda f: (-(f.accuracy or 0.0), f.name))
        return StreamInfo(stream, meaning, tuple(found))

    @routes.get("/aliases", summary="List the aliases")
    async def list_aliases(request: Request) -> list[AliasInfo]:
        """Return every alias with the model that it points to."""
        _, aliases = await registry_of(request).overview()
        return [AliasInfo(a, s, m) for a, (s, m) in aliases.items()]

    @routes.put(
        "/aliases/{alias}",
        summary="Make an alias",
        responses={
            201: described(AliasInfo, "The alias was created."),
            **wrong,
            **problems_for({404: "There is no such model."}),
        },
        openapi_extra=document(AliasSpec),
    )
    async def put_alias(request: Request, response: Response, alias: AliasName) -> AliasInfo:
        """Make an alias: it can be used in place of the name of a model."""
        wanted = await body_of(request, AliasSpec, settings.max_body_bytes)
        access_of(request).check(wanted.model)
        await _check_meaning(request, alias)
        stream, new = await registry_of(request).aliases.set(alias, wanted.model)
        response.status_code = 201 if new else 200
        return AliasInfo(alias, stream, wanted.model)

    @routes.post(
        "/aliases/{alias}/promote",
        summary="Promote a model",
        responses={**wrong, **problems_for({404: "There is no such alias or model."})},
        openapi_extra=document(Promotion),
    )
    async def promote(request: Request, alias: AliasName) -> Promoted:
        """Move the alias, if it still points to `from` and the decision is new."""
        wanted = await body_of(request, Promotion, settings.max_body_bytes)
        registry, access = registry_of(request), access_of(request)
        for name in (wanted.of, wanted.to):
            access.check(name)
        await _check_meaning(request, alias)
        made = await registry.aliases.promote(alias, wanted.of, wanted.to, wanted.decision)
        _, aliases = await registry.overview()
        meant = aliases.get(alias, ("", None))[1]
        return Promoted(
            _RESULTS[made.kind],  # "gone" was raised
            meant if meant is None or access.includes(meant) else None,
        )

    @routes.delete(
        "/aliases/{alias}",
        status_code=204,
        response_class=Response,
        summary="Delete an alias",
        responses=problems_for({404: "There is no such alias."}),
    )
    async def delete_alias(request: Request, alias: AliasName) -> None:
        """Forget the alias; the model stays."""
        await _check_meaning(request, alias)
        await registry_of(request).aliases.delete(alias)

    return routes


async def _check_meaning(request: Request, alias: str) -> None:
    """Raise `Forbidden` if the request may not touch the model that an alias points to."""
    _, aliases = await registry_of(request).overview()
    meant = aliases.get(alias, ("", None))[1]
    if meant is not None:
        access_of(request).check(meant, f"the model that {alias!r} points to")


async def _follower(registry: ModelRegistry, name: str, meaning: dict[str, str | None]) -> Follower:
    aliases = tuple(alias for alias, model in meaning.items() if model == name)
    try:
        live_model = await registry.open(name)
        await live_model.freshness.refresh_if_stale()
        fold = await live_model.at_rest(SUMMARY_WAIT_S)
    except ServiceError as error:
        return Follower(name, aliases, learner="", problem=error.detail)
    return Follower(
        name,
        aliases,
        learner=live_model.entry.spec.learner.type,
        position=str(live_model.position),
        events=fold.events,
        judged=fold.judged,
        mistakes=fold.mistakes,
        accuracy=whole_accuracy(fold),
        metrics=fold.metrics.report(_CLASSES) if fold.metrics is not None else {},
        drifts=fold.detected,
    )
