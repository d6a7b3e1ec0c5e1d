"""Models: create, list, look at, delete, and their weights."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, Field

from hinged_service.api.api_keys import Key
from hinged_service.api.dependencies import (
    AtLeast,
    Name,
    body_of,
    document,
    fresh,
    lifecycle_of,
    may_use,
    problems_for,
    registry_of,
)
from hinged_service.engine.live_model import LiveModel
from hinged_service.engine.top_weights import largest
from hinged_service.errors import Conflict, NotFound
from hinged_service.model.inspection import feature_count, shown_weights, whole_accuracy
from hinged_service.model.spec import NAME_PATTERN, ModelSpec
from hinged_service.model.start import StartFrom
from hinged_service.settings import Settings

__all__ = ["ModelInfo", "WeightsAnswer", "router"]

_MANY = 10_000


class ModelListed(BaseModel):
    """A model as the list shows it."""

    name: str
    spec: ModelSpec
    base: str = Field(description="The position at which the model starts.")


class Labels(BaseModel):
    """Predictions that waited for their labels; up to `coverage` of the whole stream."""

    predicted: int = Field(description="Predictions that were kept under an id.")
    waiting: int = Field(description="Those whose label has not come.")
    joined: int = Field(description="Those whose label came.")
    defaulted: int = Field(description="Those given the default label.")
    expired: int = Field(description="Those given up without a label.")
    late: int = Field(description="Labels that came too late.")
    unknown: int = Field(description="Labels of no prediction.")
    duplicates: int = Field(description="Labels that had come before.")
    conflicts: int = Field(description="Labels whose prediction had another one.")
    early: int = Field(description="Labels that came first and wait for their prediction.")
    unclaimed: int = Field(description="Those whose prediction never came.")
    coverage: float | None = Field(
        description="The share of the predictions that do not wait any more whose label came."
    )
    labelled: int = Field(description="Events of this model that were such a label.")
    served: int = Field(description="Predictions of this model that have a label, or the default.")
    served_mistakes: int = Field(description="Those that were wrong.")
    mean_delay_s: float | None = Field(description="How long the labels took, on average.")
    longest_delay_s: float = Field(description="How long they took at most.")


class Drift(BaseModel):
    """A drift that a model's detector found."""

    entry: str = Field(description="Id of the log entry; its first part is the time in ms.")
    number: int = Field(description="Number of the event within the entry.")
    events: int = Field(description="Events of the model until then.")


class ModelInfo(ModelListed):
    """A model, its position and its account."""

    position: str = Field(description="The place in the log up to which it has learned.")
    progress: float = Field(
        description="The share of the stream's log that it has learned; below 1 it is catching up."
    )
    events: int = Field(description="Events that counted, each once.")
    judged: int = Field(
        description="Those of them that count in accuracy: of weight above 0, with a prediction "
        "(a multiclass model that knows no class yet has none)."
    )
    mistakes: int = Field(description="Judged events whose predicted label was wrong.")
    accuracy: float | None = Field(description="1 - mistakes / judged; null without one.")
    updates: int = Field(description="Weight changes; ties change weights without a mistake.")
    hinge_loss: float = Field(description="Sum of max(0, 1 - margin), each before its update.")
    overflows: int = Field(
        description="Updates left out because a weight would be infinite, or because the score "
        "that they would come from overflowed. More than a few: the model diverges."
    )
    rejected: int = Field(description="Events of the stream that this model cannot take.")
    excluded: int = Field(description="Events of the stream that its spec leaves out.")
    frozen: bool = Field(description="Whether it only predicts.")
    configured: dict[str, Any] = Field(description="Parameters changed since it was created.")
    metrics: dict[str, Any] = Field(description="Its progressive metrics by name.")
    labels: Labels | None = Field(
        None, description="Predictions and their labels, once one was made with an id."
    )
    drifts: int = Field(description="Drifts that its detector found.")
    detections: list[Drift] = Field(description="The latest of them, oldest first.")
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
        responses=problems_for({503: "Redis does not answer; send the same again."}),
    )
    unknown = problems_for({404: "There is no such model."})
    contradicted = problems_for({409: "The log contradicts at_least."})

    @routes.put(
        "/{model}",
        summary="Create a model",
        response_model=ModelListed,
        responses={
            201: {"model": ModelListed, "description": "It was created."},
            **problems_for(
                {
                    400: "The body is not JSON.",
                    409: "There is one with another spec.",
                    413: "The body is too large.",
                    415: "The body is not application/json.",
                    422: "The spec or the name is wrong; errors names the field.",
                }
            ),
        },
        openapi_extra=document(ModelSpec),
    )
    async def put_model(
        request: Request,
        response: Response,
        model: Annotated[str, Path(pattern=NAME_PATTERN, examples=["spam"])],
    ) -> ModelListed:
        """Create a model from its spec; the same spec again changes nothing."""
        spec = await body_of(request, ModelSpec, settings.max_body_bytes)
        source = spec.start.model if isinstance(spec.start, StartFrom) else None
        may_use(request, spec.stream, source)
        entry, new = await lifecycle_of(request).create(model, spec)
        response.status_code = 201 if new else 200
        return ModelListed(name=model, spec=entry.spec, base=entry.base or "")

    @routes.get("", summary="List the models")
    async def list_models(request: Request) -> list[ModelListed]:
        """Return every model with its spec, in order of name."""
        entries = await registry_of(request).entries()
        key: Key | None = request.scope.get("hinged.key")
        return [
            ModelListed(name=name, spec=entry.spec, base=entry.base or "")
            for name, entry in entries.items()
            if key is None or key.may_use(name)
        ]

    @routes.get("/{model}", summary="Look at a model", responses=unknown | contradicted)
    async def get_model(request: Request, model: Name, at_least: AtLeast = None) -> ModelInfo:
        """Return a model's spec, position and account."""
        live_model = await registry_of(request).open(model)
        if live_model.status.caught_up or at_least is not None:
            live_model = await fresh(request, model, at_least)
        entry, fold = live_model.entry, live_model.state
        account = fold.learner.accounting
        return ModelInfo(
            name=live_model.name,  # that of the model, also through an alias
            spec=entry.spec,
            base=entry.base or "",
            position=str(live_model.position),
            progress=await live_model.freshness.progress(),
            events=fold.events,
            judged=fold.judged,
            mistakes=fold.mistakes,
            accuracy=whole_accuracy(fold),
            updates=account.updates,
            hinge_loss=account.hinge_loss,
            overflows=account.overflows,
            rejected=fold.rejected,
            excluded=fold.excluded,
            frozen=fold.frozen,
            configured=fold.configured,
            metrics=fold.metrics.report() if fold.metrics is not None else {},
            labels=await _labels(live_model),
            drifts=fold.detected,
            detections=[Drift(**d._asdict()) for d in fold.detections],
            perceptron_loss=account.perceptron_loss,
            radius=account.radius,
            ignored_features=account.ignored,
            features=feature_count(fold),
            classes=fold.answers.classes(),
            snapshot=live_model.stored,
            stale_s=live_model.freshness.staleness_s(),
        )

    @routes.delete(
        "/{model}",
        status_code=204,
        response_class=Response,
        summary="Delete a model",
        responses=unknown | problems_for({409: "An alias means this model."}),
    )
    async def delete_model(request: Request, model: Name) -> None:
        """Delete a model; the last one on a stream takes the stream with it."""
        await lifecycle_of(request).delete(model)

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
        live_model = await fresh(request, model, at_least)
        position, fold = str(live_model.position), live_model.state
        shown = shown_weights(fold, label)
        if shown is None:
            raise Conflict("This learner has no weights.")
        if label is not None and not shown.get("classes"):
            raise NotFound(f"The model {model!r} knows no class {label!r}.")
        if feature_count(fold) > _MANY:
            cut = await asyncio.to_thread(largest, shown, top)
        else:
            cut = largest(shown, top)
        body = msgspec.json.encode({**cut, "position": position})
        return Response(body, media_type="application/json")

    return routes


async def _labels(live_model: LiveModel) -> Labels | None:
    fold = live_model.state
    counts = await live_model.delayed.counts()
    if counts is None:
        return None
    done = counts["predicted"] - counts["waiting"]
    return Labels(
        **counts,
        coverage=counts["joined"] / done if done > 0 else None,
        labelled=fold.labelled,
        served=fold.served,
        served_mistakes=fold.served_mistakes,
        mean_delay_s=fold.delay_ms / fold.labelled / 1000 if fold.labelled else None,
        longest_delay_s=fold.longest_delay_ms / 1000,
    )
