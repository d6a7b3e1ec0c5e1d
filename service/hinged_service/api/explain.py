"""Explanation of a model's prediction."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request

import hinged
from hinged_service.api.bodies import read_json_body
from hinged_service.api.dependencies import AtLeast, Name, fresh, problems_for
from hinged_service.api.struct_route import StructRoute
from hinged_service.errors import Conflict, Detail, NotFound, Unprocessable
from hinged_service.model.inspection import explain_event
from hinged_service.settings import LimitSettings
from hinged_service.wire.decoding import parse_questions
from hinged_service.wire.responses import Explanation

__all__ = ["router"]


def router(settings: LimitSettings) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(prefix="/v1/models/{model}", tags=["models"], route_class=StructRoute)

    @routes.post(
        "/explain",
        summary="Explain a prediction",
        responses=problems_for(
            {
                400: "The body is not JSON.",
                404: "There is no such model or class.",
                409: "The score of this learner is not a sum over features.",
                422: "The event is wrong; errors names the field.",
                503: "Redis does not answer.",
            }
        ),
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {
                    "application/json": {"schema": {"$ref": "#/components/schemas/Question"}}
                },
            }
        },
    )
    async def explain(
        request: Request,
        model: Name,
        label: Annotated[
            str | None, Query(alias="class", description="Multiclass: the class to explain.")
        ] = None,
        at_least: AtLeast = None,
    ) -> Explanation:
        """Return the contribution of each feature of an event to the model's score."""
        body = await read_json_body(request.scope, request.receive, settings.max_body_bytes)
        live_model = await fresh(request, model, at_least)
        questions, _, many = parse_questions(body, 1, live_model.accepts_non_numeric)
        if many:
            raise Unprocessable(
                "Explain one event at a time.", [Detail("body", "must be an object, not an array")]
            )
        try:
            found, position = await live_model.ask(
                lambda state: explain_event(state, questions[0].x, label), len(body)
            )
        except KeyError:
            raise NotFound(f"The model {model!r} knows no class {label!r}.") from None
        except hinged.InvalidEvent as error:
            raise Unprocessable(
                "Nothing was explained: see errors.", [Detail(error.field, error.reason)]
            ) from None
        if found is None:
            raise Conflict("The score of this learner is not a sum over features.")
        for part in ("contributions", "features"):
            pairs = sorted(found[part].items(), key=lambda item: (-abs(item[1]), str(item[0])))
            found[part] = {str(name): value for name, value in pairs}
        return Explanation(**found, position=position)

    return routes
