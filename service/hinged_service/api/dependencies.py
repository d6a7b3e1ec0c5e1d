"""Dependencies of the routes: the worker's models, an up-to-date one, problems for the OpenAPI."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final, TypeVar

from fastapi import Path, Query, Request
from pydantic import BaseModel, ValidationError

from hinged_service.api import access
from hinged_service.api.bodies import POSITION_PATTERN, parse_position, read_json_body
from hinged_service.api.problems import refused
from hinged_service.engine.lifecycle import ModelLifecycle
from hinged_service.engine.live_model import LiveModel
from hinged_service.engine.name_access import NameAccess
from hinged_service.engine.registry import ModelRegistry
from hinged_service.errors import ModelGone, NotFound
from hinged_service.store.checkpoints import Checkpoint
from hinged_service.wire.proba import PROBA_PATTERN

__all__ = [
    "PROBA",
    "AtLeast",
    "Name",
    "Proba",
    "access_of",
    "body_of",
    "document",
    "found_checkpoint",
    "fresh",
    "lifecycle_of",
    "problems_for",
    "registry_of",
    "with_model",
]

Name = Annotated[str, Path(description="The name of a model or alias.", examples=["spam"])]
AtLeast = Annotated[
    str | None,
    Query(
        description="Wait until the model is at this position or later.",
        json_schema_extra={"pattern": POSITION_PATTERN},
    ),
]

PROBA: Final = (
    "The probabilities to return: `all`, `none`, or `top:k`, those of the k likeliest classes, the "
    "likeliest first; `top:10` if left out."
)
"""Description of the choice of probabilities."""
Proba = Annotated[
    str | None, Query(description=PROBA, json_schema_extra={"pattern": PROBA_PATTERN})
]

Body = TypeVar("Body", bound=BaseModel)
Result = TypeVar("Result")


def registry_of(request: Request) -> ModelRegistry:
    """Return the worker's models."""
    registry: ModelRegistry = request.app.state.registry
    return registry


def lifecycle_of(request: Request) -> ModelLifecycle:
    """Return the object that creates and deletes the worker's models."""
    lifecycle: ModelLifecycle = request.app.state.lifecycle
    return lifecycle


def access_of(request: Request) -> NameAccess:
    """Return the names that the request may touch."""
    return access.name_access(request.scope)


async def fresh(
    request: Request, model: str, at_least: str | None = None, field: str = "at_least"
) -> LiveModel:
    """Return a model that has read its log, up to the position in a field of the call.

    Raises
    ------
    NotFound, Forbidden
        There is no such model; the request's API key is not for it.
    Unprocessable, Conflict, Unavailable
        About `at_least`, or as the model is opened.

    """
    position = None if at_least is None else parse_position(at_least, field)

    async def read(live_model: LiveModel) -> LiveModel:
        await live_model.freshness.refresh_if_stale()
        if position is not None:
            await live_model.freshness.wait_for_position(position)
        return live_model

    return await with_model(request, model, read)


async def found_checkpoint(request: Request, live_model: LiveModel, name: str) -> Checkpoint:
    """Return a checkpoint of a model's stream by its name or uid.

    Raises
    ------
    NotFound, Forbidden
        There is none; it is of a model that the request may not touch.

    """
    found = await live_model.checkpoints.find(name)
    access_of(request).check(found.model, "the model of this checkpoint")
    return found


async def with_model(
    request: Request, model: str, call: Callable[[LiveModel], Awaitable[Result]]
) -> Result:
    """Call with a model, once more if it turned out to be gone; raise `NotFound` if it is."""
    registry = registry_of(request)
    for _ in range(2):
        live_model = await access.open_model(request.scope, registry, model)
        try:
            return await call(live_model)
        except ModelGone:
            registry.forget(model, live_model)
    raise NotFound(f"There is no model {model!r}.")


async def body_of(request: Request, kind: type[Body], max_bytes: int) -> Body:
    """Read a JSON body, strictly.

    Raises
    ------
    Malformed, Unprocessable, TooLarge, WrongMediaType
        Naming what is wrong.

    """
    body = await read_json_body(request.scope, request.receive, max_bytes)
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        raise refused(error, body) from None


def document(kind: type[BaseModel]) -> dict[str, Any]:
    """Return the OpenAPI of a body that a route reads itself."""
    schema = {"$ref": f"#/components/schemas/{kind.__name__}"}
    content = {"application/json": {"schema": schema}}
    return {"requestBody": {"required": True, "content": content}}


def problems_for(reasons: dict[int, str]) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI of some error answers."""
    return {code: {"description": text} for code, text in reasons.items()}
