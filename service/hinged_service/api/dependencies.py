"""Dependencies of the routes: the worker's models, an up-to-date one, problems for the OpenAPI."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final, TypeVar

from fastapi import Path, Query, Request
from pydantic import BaseModel, ValidationError

from hinged_service.api.api_keys import Key
from hinged_service.api.bodies import POSITION_PATTERN, parse_position, read_json_body
from hinged_service.api.problems import refused
from hinged_service.engine.lifecycle import ModelLifecycle
from hinged_service.engine.live_model import LiveModel
from hinged_service.engine.registry import ModelRegistry
from hinged_service.errors import Forbidden, ModelGone, NotFound
from hinged_service.wire.proba import PROBA_PATTERN

__all__ = [
    "PROBA",
    "AtLeast",
    "Name",
    "Proba",
    "body_of",
    "document",
    "fresh",
    "lifecycle_of",
    "may_use",
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
    "The probabilities to tell: `all`, `none`, or `top:k`, those of the k likeliest classes, the "
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
    """Return what creates and deletes the worker's models."""
    lifecycle: ModelLifecycle = request.app.state.lifecycle
    return lifecycle


def may_use(request: Request, *names: str | None) -> None:
    """Check that the request's API key, if the service has keys, is for these models and streams.

    Raises
    ------
    Forbidden
        It is not for one of them.

    """
    key: Key | None = request.scope.get("hinged.key")
    for name in names:
        if key is not None and name is not None and not key.may_use(name):
            raise Forbidden(f"The API key {key.name!r} is not for {name!r}.")


async def fresh(request: Request, model: str, at_least: str | None = None) -> LiveModel:
    """Return a model that has read its log.

    Raises
    ------
    NotFound
        There is no such model.
    Unprocessable, Conflict, Unavailable
        About `at_least`, or as the model is opened.

    """
    position = None if at_least is None else parse_position(at_least)

    async def read(live_model: LiveModel) -> LiveModel:
        await live_model.freshness.refresh_if_stale()
        if position is not None:
            await live_model.freshness.wait_for_position(position)
        return live_model

    return await with_model(request, model, read)


async def with_model(
    request: Request, model: str, call: Callable[[LiveModel], Awaitable[Result]]
) -> Result:
    """Call with a model, once more if it turned out to be gone; raise `NotFound` if it is."""
    registry = registry_of(request)
    for _ in range(2):
        live_model = await registry.open(model)
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
    """Return what tells the OpenAPI of a body that a route reads itself."""
    schema = {"$ref": f"#/components/schemas/{kind.__name__}"}
    content = {"application/json": {"schema": schema}}
    return {"requestBody": {"required": True, "content": content}}


def problems_for(reasons: dict[int, str]) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI of some error answers."""
    return {code: {"description": text} for code, text in reasons.items()}
