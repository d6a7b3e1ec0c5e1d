"""Models: create, list, look at, delete, and their weights."""

from __future__ import annotations

import asyncio
import functools
import sys
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response

from hinged_service.api.access import open_model
from hinged_service.api.dependencies import (
    AtLeast,
    Name,
    access_of,
    body_of,
    document,
    fresh,
    lifecycle_of,
    problems_for,
    registry_of,
)
from hinged_service.api.large_answers import LargeAnswer, pieces_of, reserve
from hinged_service.api.progress_lines import on_progress_of, progress_answer
from hinged_service.api.schemas import described
from hinged_service.api.struct_route import StructRoute
from hinged_service.engine.top_weights import largest, weights_bytes
from hinged_service.errors import Conflict, NotFound
from hinged_service.model.index_entry import IndexEntry
from hinged_service.model.inspection import account, feature_count, weights_of, whole_accuracy
from hinged_service.model.spec import NAME_PATTERN, ModelSpec
from hinged_service.model.state import ModelState
from hinged_service.settings import LimitSettings
from hinged_service.wire.responses import (
    Damage,
    Drift,
    LabelCounts,
    ModelInfo,
    ModelListed,
    Weights,
)

__all__ = ["listed", "router"]

_MANY = 10_000
_FEWER = (
    "Ask for fewer: ?top=1000, and for the next ones ?top=1000&skip=1000; or for one class, "
    "?class=."
)


def router(settings: LimitSettings) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(prefix="/v1/models", tags=["models"], route_class=StructRoute)

    @routes.put(
        "/{model}",
        summary="Create a model",
        responses={
            201: described(ModelListed, "The model was created."),
            **problems_for(
                {
                    409: "There is a model of this name with another spec.",
                    422: "The spec or the name is wrong; errors names the field.",
                }
            ),
        },
        openapi_extra={**document(ModelSpec), **progress_answer(201)},
    )
    async def put_model(
        request: Request,
        response: Response,
        model: Annotated[str, Path(pattern=NAME_PATTERN, examples=["spam"])],
    ) -> ModelListed:
        """Create a model from its spec; the same spec again changes nothing."""
        spec = await body_of(request, ModelSpec, settings.max_body_bytes)
        entry, new = await lifecycle_of(request).create(
            model, spec, access_of(request), on_progress_of(request.scope)
        )
        response.status_code = 201 if new else 200
        return listed(model, entry)

    @routes.get("", summary="List the models")
    async def list_models(request: Request) -> list[ModelListed]:
        """Return every model with its spec, in order of name."""
        entries, access = await registry_of(request).entries(), access_of(request)
        return [listed(name, entry) for name, entry in entries.items() if access.includes(name)]

    @routes.get("/{model}", summary="Get a model", openapi_extra=progress_answer(200))
    async def get_model(request: Request, model: Name, at_least: AtLeast = None) -> ModelInfo:
        """Return a model's spec, position and account."""
        live_model = await open_model(request.scope, registry_of(request), model)
        if live_model.status.caught_up or at_least is not None:
            live_model = await fresh(request, model, at_least)
        stale_s = live_model.freshness.staleness_s()  # not with the time that the rest takes
        progress, counts = await live_model.freshness.progress(), await live_model.delayed.counts()
        damaged = tuple(Damage(what, at) for at, what in (await live_model.damage()).items())
        doors = await live_model.doors()
        entry, fold = live_model.entry, await live_model.at_rest()
        learned = fold.learner.accounting
        return ModelInfo(
            name=live_model.name,  # that of the model, also through an alias
            spec=_spec(entry),
            base=entry.base or "",
            position=str(live_model.position),
            progress=progress,
            **account(fold),
            accuracy=whole_accuracy(fold),
            doors=doors,
            excluded=fold.excluded,
            configured=fold.configured,
            label_counts=_label_counts(fold, counts),
            detections=tuple(Drift(*d) for d in fold.detections),
            perceptron_loss=learned.perceptron_loss,
            radius=learned.radius,
            ignored_features=learned.ignored,
            features=feature_count(fold),
            bytes=fold.stored_bytes(),
            max_bytes=fold.max_bytes,
            classes=tuple(fold.answers.classes()),
            calibrated=entry.spec.calibrated,
            snapshot=live_model.stored,
            stale_s=stale_s,
            damaged=damaged,
        )

    @routes.delete(
        "/{model}",
        status_code=204,
        response_class=Response,
        summary="Delete a model",
        responses=problems_for({409: "An alias points to this model."}),
    )
    async def delete_model(request: Request, model: Name) -> None:
        """Delete a model; the last one on a stream takes the stream with it."""
        await lifecycle_of(request).delete(model)

    @routes.get(
        "/{model}/weights",
        summary="Get the weights",
        response_class=Response,
        responses={
            200: described(Weights),
            **problems_for({413: "There are too many for one answer: use top and skip."}),
        },
    )
    async def get_weights(
        request: Request,
        model: Name,
        top: Annotated[
            int | None,
            Query(ge=1, description="Number of weights of each vector, the largest first."),
        ] = None,
        label: Annotated[
            str | None, Query(alias="class", description="Multiclass: of this class only.")
        ] = None,
        skip: Annotated[
            int,
            Query(ge=0, description="Number of the largest weights of each vector to leave out."),
        ] = 0,
        at_least: AtLeast = None,
    ) -> Response:
        """Return the weights that predictions use, largest magnitude first.

        The numbers have all their digits: score = intercept + sum of weight times value
        gives the served score.
        """
        live_model = await fresh(request, model, at_least)
        fold = await live_model.at_rest()
        many = feature_count(fold) > _MANY
        look = functools.partial(weights_of, label=label)
        weights, position = await live_model.ask(look, sys.maxsize if many else 0)
        if weights is None:
            raise Conflict("This learner has no weights.")
        if label is not None and not weights.get("classes"):
            raise NotFound(f"The model {model!r} knows no class {label!r}.")
        if many:
            found, size = await asyncio.to_thread(_cut, weights, top, skip)
        else:
            found, size = _cut(weights, top, skip)
        reserve(request.scope, size, settings.max_answer_bytes, _FEWER)
        return LargeAnswer(pieces_of({"position": position, **found}))

    return routes


def _cut(weights: dict[str, Any], top: int | None, skip: int) -> tuple[dict[str, Any], int]:
    """Return the weights to answer with, and how many bytes they may have."""
    found = largest(weights, top, skip)
    return found, weights_bytes(found)


def listed(name: str, entry: IndexEntry) -> ModelListed:
    """Return an entry of the index as the list has it."""
    return ModelListed(name, _spec(entry), entry.base or "")


def _spec(entry: IndexEntry) -> dict[str, Any]:
    return entry.spec.model_dump(mode="json", by_alias=True)


def _label_counts(fold: ModelState, counts: dict[str, int] | None) -> LabelCounts | None:
    if counts is None:
        return None
    done = counts["predicted"] - counts["waiting"]
    return LabelCounts(
        **counts,
        coverage=counts["joined"] / done if done > 0 else None,
        labelled=fold.labelled,
        served=fold.served,
        served_mistakes=fold.served_mistakes,
        mean_delay_s=fold.delay_ms / fold.labelled / 1000 if fold.labelled else None,
        longest_delay_s=fold.longest_delay_ms / 1000,
    )
