"""Models: create, list, look at, delete, and their weights."""

from __future__ import annotations

import asyncio
import heapq
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, Field, ValidationError

from hinged_service.appender import Appender
from hinged_service.errors import ModelGone, NotFound
from hinged_service.host import Host
from hinged_service.routes.bodies import parse_position, read_json_body
from hinged_service.routes.problems import Problem, refused
from hinged_service.settings import Settings
from hinged_service.spec import NAME_PATTERN, ModelSpec

__all__ = ["ModelInfo", "WeightsAnswer", "router"]

_MANY = 10_000

Name = Annotated[str, Path(description="The model's name.", examples=["spam"])]
AtLeast = Annotated[
    str | None, Query(description="Wait until the model is at this position or later.")
]


class ModelListed(BaseModel):
    """A model as the list shows it."""

    name: str
    spec: ModelSpec
    base: str = Field(description="The position at which the model starts.")


class ModelInfo(ModelListed):
    """A model, its position and its account."""

    position: str = Field(description="The place in the log up to which it has learned.")
    events: int = Field(description="Events learned, each once.")
    mistakes: int = Field(description="Events whose predicted label was wrong.")
    updates: int = Field(description="Weight changes; ties change weights without a mistake.")
    hinge_loss: float = Field(description="Sum of max(0, 1 - margin), each before its update.")
    overflows: int = Field(description="Updates left out because a weight would be infinite.")
    rejected: int = Field(description="Events of the stream that this model cannot take.")
    perceptron_loss: float = Field(description="Sum of max(0, -margin), likewise.")
    radius: float = Field(description="The largest norm of an event, its constant included.")
    ignored_features: int = Field(description="Features of updates left out at max_features.")
    features: int = Field(description="Feature names that have a weight.")
    classes: list[bool | int | str] = Field(
        description="Binary: the labels, the negative one first. Multiclass: those seen, in order."
    )
    snapshot: str = Field(description="Entry id of the snapshot in Redis, as far as known here.")
    stale_s: float | None = Field(None, description="Its age while Redis does not answer.")


class LinearWeights(BaseModel):
    """One linear function."""

    weights: dict[str, float] = Field(description="By feature name, largest magnitude first.")
    intercept: float


class Expert(LinearWeights):
    """One expert of a hedge."""

    trust: float = Field(description="Its share of the vote.")


class WeightsAnswer(BaseModel):
    """The weights that predict."""

    position: str
    weights: dict[str, float] | None = Field(
        None, description="Binary: by feature name, largest magnitude first."
    )
    intercept: float | None = Field(None, description="Binary: the intercept.")
    classes: dict[str, LinearWeights] | None = Field(None, description="Multiclass: by label.")
    experts: list[Expert] | None = Field(None, description="Hedge: its experts, in order.")


def router(settings: Settings) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(
        prefix="/v1/models",
        tags=["models"],
        responses=_problems({503: "Redis does not answer; send the same again."}),
    )
    unknown = _problems({404: "There is no such model."})
    contradicted = _problems({409: "The log contradicts at_least."})

    @routes.put(
        "/{model}",
        summary="Create a model",
        response_model=ModelListed,
        responses={
            201: {"model": ModelListed, "description": "It was created."},
            **_problems(
                {
                    400: "The body is not JSON.",
                    409: "There is one with another spec.",
                    413: "The body is too large.",
                    415: "The body is not application/json.",
                    422: "The spec or the name is wrong; errors names the field.",
                }
            ),
        },
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {
                    "application/json": {"schema": {"$ref": "#/components/schemas/ModelSpec"}}
                },
            }
        },
    )
    async def put_model(
        request: Request,
        response: Response,
        model: Annotated[str, Path(pattern=NAME_PATTERN, examples=["spam"])],
    ) -> ModelListed:
        """Create a model from its spec; the same spec again changes nothing."""
        body = await read_json_body(request.scope, request.receive, settings.max_body_bytes)
        try:
            spec = ModelSpec.model_validate_json(body)
        except ValidationError as error:
            raise refused(error, body) from None
        entry, new = await _host(request).create(model, spec)
        response.status_code = 201 if new else 200
        return ModelListed(name=model, spec=entry.spec, base=entry.base or "")

    @routes.get("", summary="List the models")
    async def list_models(request: Request) -> list[ModelListed]:
        """Return every model with its spec, in order of name."""
        entries = await _host(request).entries()
        return [ModelListed(name=n, spec=e.spec, base=e.base or "") for n, e in entries.items()]

    @routes.get("/{model}", summary="Look at a model", responses=unknown | contradicted)
    async def get_model(request: Request, model: Name, at_least: AtLeast = None) -> ModelInfo:
        """Return a model's spec, position and account."""
        appender = await _fresh(request, model, at_least)
        replica, entry = appender.replica, appender.entry
        account, fold = replica.fold.learner.accounting, replica.fold
        return ModelInfo(
            name=model,
            spec=entry.spec,
            base=entry.base or "",
            position=str(replica.position),
            events=account.events,
            mistakes=account.mistakes,
            updates=account.updates,
            hinge_loss=account.hinge_loss,
            overflows=account.overflows,
            rejected=fold.rejected,
            perceptron_loss=account.perceptron_loss,
            radius=account.radius,
            ignored_features=account.ignored,
            features=fold.feature_count(),
            classes=fold.answers.classes(),
            snapshot=replica.stored,
            stale_s=appender.staleness_s(),
        )

    @routes.delete(
        "/{model}",
        status_code=204,
        response_class=Response,
        summary="Delete a model",
        responses=unknown,
    )
    async def delete_model(request: Request, model: Name) -> None:
        """Delete a model; the last one on a stream takes the stream with it."""
        await _host(request).delete(model)

    @routes.get(
        "/{model}/weights",
        summary="Look at the weights",
        response_model=WeightsAnswer,
        responses=unknown | contradicted,
    )
    async def get_weights(
        request: Request,
        model: Name,
        top: Annotated[
            int | None, Query(ge=1, description="Only the largest so many of each vector.")
        ] = None,
        label: Annotated[
            str | None, Query(alias="class", description="Multiclass: of this class only.")
        ] = None,
        at_least: AtLeast = None,
    ) -> Response:
        """Return the weights that predictions use, largest magnitude first.

        The numbers have all their digits: score = intercept + sum of weight times value
        gives the served score.
        """
        appender = await _fresh(request, model, at_least)
        position, fold = str(appender.replica.position), appender.replica.fold
        shown = fold.shown_weights(label)
        if label is not None and not shown.get("classes"):
            raise NotFound(f"The model {model!r} knows no class {label!r}.")
        if fold.feature_count() > _MANY:
            body = await asyncio.to_thread(_weights_body, shown, position, top)
        else:
            body = _weights_body(shown, position, top)
        return Response(body, media_type="application/json")

    return routes


def _weights_body(shown: dict[str, Any], position: str, top: int | None) -> bytes:
    def key(item: tuple[str, float]) -> tuple[float, str]:
        return -abs(item[1]), item[0]

    def cut(value: Any) -> Any:
        if not isinstance(value, dict):
            return [cut(part) for part in value] if isinstance(value, list) else value
        parts = {name: cut(part) for name, part in value.items() if name != "weights"}
        if "weights" not in value:
            return parts
        pairs = value["weights"].items()
        largest = sorted(pairs, key=key) if top is None else heapq.nsmallest(top, pairs, key=key)
        return {"weights": dict(largest), **parts}

    return msgspec.json.encode({**cut(shown), "position": position})


def _problems(reasons: dict[int, str]) -> dict[int | str, dict[str, Any]]:
    return {code: {"model": Problem, "description": text} for code, text in reasons.items()}


async def _fresh(request: Request, model: str, at_least: str | None) -> Appender:
    host = _host(request)
    position = None if at_least is None else parse_position(at_least)
    for _ in range(2):
        appender = await host.open(model)
        try:
            await appender.freshen()
            if position is not None:
                await appender.reach(position)
        except ModelGone:
            host.forget(model, appender)
            continue
        return appender
    raise NotFound(f"There is no model {model!r}.")


def _host(request: Request) -> Host:
    host: Host = request.app.state.host
    return host
