"""The Open Inference Protocol (version 2, REST), for what already speaks it.

An event is a row: every feature is a tensor of its own, or a column of a tensor with
named columns. The answers are those of `/v1/models/{model}/predict`, as tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Literal, get_args

import msgspec
from fastapi import APIRouter, Path, Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field

import hinged
from hinged_service.api.bodies import POSITION_PATTERN, parse_position, read_json_body
from hinged_service.api.dependencies import Name, document, fresh, with_model
from hinged_service.api.open_inference.tensors import Datatype, Tensor, rows
from hinged_service.api.problems import internal_error
from hinged_service.api.readiness import Readiness
from hinged_service.engine.live_model import LiveModel, Predictions
from hinged_service.errors import Conflict, Detail, Malformed, ServiceError, Unprocessable
from hinged_service.model.predictor import Label, Prediction, label_text
from hinged_service.model.spec import ModelSpec
from hinged_service.settings import LimitSettings
from hinged_service.telemetry.request_context import template
from hinged_service.wire.events import MixedQuestion, Question
from hinged_service.wire.faults import DECODE_ERRORS, MAX_DETAILS

__all__ = ["InferenceError", "bodies", "router"]

Output = Literal["label", "score", "probabilities", "classes"]
_OUTPUTS: tuple[Output, ...] = get_args(Output)

Version = Annotated[
    str,
    Path(
        description="A position: the answer is of a model that has learned that much.",
        json_schema_extra={"pattern": POSITION_PATTERN},
    ),
]


class InferenceError(BaseModel):
    """Error in the protocol's form: the problem and what to do next."""

    error: str


class InputTensor(BaseModel):
    """A feature of all events, or several features as columns."""

    name: str = Field(description="The feature; of no meaning if the columns have names.")
    shape: list[Annotated[int, Field(ge=0)]] = Field(
        min_length=1,
        max_length=2,
        description="`[n]` or `[n, 1]` for a feature, `[n, k]` for k columns.",
    )
    datatype: Datatype = Field(
        description="BYTES is text. BOOL counts as 1 and 0 unless the model has a pipeline."
    )
    data: list[Any] = Field(description="Row by row, flat or nested.")
    parameters: dict[str, Any] | None = Field(
        None,
        description="`feature_names`: the columns' names, as an array or as text that is a JSON "
        "array.",
    )


class OutputChoice(BaseModel):
    """An output to return."""

    name: Output
    parameters: dict[str, Any] | None = None


class InferenceRequest(BaseModel):
    """Events to predict."""

    id: str | None = Field(None, description="Comes back in the answer.")
    parameters: dict[str, Any] | None = Field(None, description="Not used.")
    inputs: list[InputTensor] = Field(min_length=1)
    outputs: list[OutputChoice] | None = Field(None, description="All if left out.")

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "inputs": [
                        {"name": "age", "shape": [2], "datatype": "FP64", "data": [0.4, 1.5]},
                        {"name": "clicks", "shape": [2, 1], "datatype": "INT64", "data": [3, 0]},
                    ]
                },
                {
                    "id": "42",
                    "inputs": [
                        {
                            "name": "x",
                            "shape": [2, 2],
                            "datatype": "FP64",
                            "parameters": {"feature_names": ["age", "clicks"]},
                            "data": [[0.4, 3.0], [1.5, 0.0]],
                        }
                    ],
                    "outputs": [{"name": "label"}],
                },
            ]
        }
    )


class OutputTensor(BaseModel):
    """A tensor of the answer."""

    name: str
    shape: list[int]
    datatype: str
    data: list[bool | int | float | str]


class InferenceAnswer(BaseModel):
    """Predictions as tensors."""

    model_name: str
    model_version: str = Field(description="The position up to which the model had learned.")
    id: str | None = Field(None, description="Of the request, if it had one.")
    outputs: list[OutputTensor] = Field(
        description="label [n] and score [n]; probabilities [n, k], with a column for each of the "
        "k texts in classes [k]."
    )


class TensorAbout(BaseModel):
    """A tensor of a model."""

    name: str
    datatype: str
    shape: list[int] = Field(description="-1 where any length is right.")


class ModelAbout(BaseModel):
    """Inputs and outputs of a model."""

    name: str
    versions: list[str] = Field(description="The position up to which it has learned.")
    platform: str = Field(description="`hinged_` and the type of the learner.")
    inputs: list[TensorAbout] = Field(
        description="Rows of named columns. A tensor for each feature, of shape [-1], is right too."
    )
    outputs: list[TensorAbout]


class ServerAbout(BaseModel):
    """The server."""

    name: str
    version: str
    extensions: list[str]


class Live(BaseModel):
    """Liveness of the server."""

    live: bool


class Ready(BaseModel):
    """Readiness of the server."""

    ready: bool


class ModelReady(Ready):
    """Readiness of a model."""

    name: str


class _Choice(msgspec.Struct):
    name: Output
    parameters: dict[str, Any] | None = None


class _Request(msgspec.Struct, gc=False):
    inputs: list[Tensor]
    id: str | None = None
    parameters: dict[str, Any] | None = None
    outputs: list[_Choice] | None = None


class _Route(APIRoute):
    """A route whose errors have the protocol's form."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_all(request: Request) -> Response:
            try:
                return await handle(request)
            except ServiceError as error:
                return _answer_for(error)
            except Exception:  # noqa: BLE001 - logged there
                return _answer_for(internal_error(template(request.scope)))

        return handle_all


bodies = (InferenceRequest,)
_read = msgspec.json.Decoder(_Request).decode


def router(settings: LimitSettings) -> APIRouter:
    """Return the routes."""
    away = _errors({503: "Redis does not answer; send the same again."})
    missing = _errors({404: "There is no such model."}) | away
    wrong = _errors({409: "The log contradicts the version.", 422: "The version is no position."})
    refusals = _errors(
        {
            400: "The body is not JSON.",
            409: "The model knows no class yet, or the log contradicts the version.",
            413: "More bytes or events than one call takes.",
            415: "The body is not application/json.",
            422: "The tensors are wrong; the text says where.",
        }
    )
    routes = APIRouter(prefix="/v2", tags=["open inference protocol"], route_class=_Route)

    @routes.get("", summary="About the server")
    async def get_server() -> ServerAbout:
        """Return name and version."""
        return ServerAbout(name="hinged", version=hinged.__version__, extensions=[])

    @routes.get("/health/live", summary="Is the server live?")
    async def get_live() -> Live:
        """Answer as long as the worker runs, whatever Redis does."""
        return Live(live=True)

    @routes.get("/health/ready", summary="Is the server ready?", responses=away)
    async def get_ready(request: Request) -> Ready:
        """Answer 200 if requests may be sent here, else 503, as `/readyz` does."""
        readiness: Readiness = request.app.state.readiness
        await readiness.check()
        return Ready(ready=True)

    @routes.get("/models/{model}", summary="About a model", responses=missing)
    async def get_model(request: Request, model: Name) -> ModelAbout:
        """Return what tensors a model takes and gives."""
        return await _about(request, model, None)

    @routes.get(
        "/models/{model}/versions/{version}",
        summary="About a model that has learned that much",
        responses=missing | wrong,
    )
    async def get_version(request: Request, model: Name, version: Version) -> ModelAbout:
        """Return what tensors a model takes and gives, once it has learned that much."""
        return await _about(request, model, version)

    @routes.get("/models/{model}/ready", summary="Is a model ready?", responses=missing)
    async def get_model_ready(request: Request, model: Name) -> ModelReady:
        """Answer 200 if the model can predict, else 503."""
        await fresh(request, model)
        return ModelReady(name=model, ready=True)

    @routes.get(
        "/models/{model}/versions/{version}/ready",
        summary="Has a model learned that much?",
        responses=missing | wrong,
    )
    async def get_version_ready(request: Request, model: Name, version: Version) -> ModelReady:
        """Answer 200 if the model can predict, having learned that much, else 503."""
        await fresh(request, model, version)
        return ModelReady(name=model, ready=True)

    @routes.post(
        "/models/{model}/infer",
        summary="Predict events given as tensors",
        response_model=InferenceAnswer,
        responses=missing | refusals,
        openapi_extra=document(InferenceRequest),
    )
    async def infer(request: Request, model: Name) -> Response:
        """Predict; that changes no model."""
        return await _infer(request, model, None, settings)

    @routes.post(
        "/models/{model}/versions/{version}/infer",
        summary="Predict with a model that has learned that much",
        response_model=InferenceAnswer,
        responses=missing | refusals,
        openapi_extra=document(InferenceRequest),
    )
    async def infer_version(request: Request, model: Name, version: Version) -> Response:
        """Predict once the model has learned that much; it may have learned more."""
        return await _infer(request, model, version, settings)

    return routes


def _errors(reasons: dict[int, str]) -> dict[int | str, dict[str, Any]]:
    return {code: {"model": InferenceError, "description": text} for code, text in reasons.items()}


def _answer_for(error: ServiceError) -> Response:
    faults = "".join(f" {fault.field} {fault.reason}." for fault in error.errors)
    body = msgspec.json.encode({"error": error.detail + faults})
    wait_s = error.retry_after_s
    headers = {} if wait_s is None else {"retry-after": str(wait_s)}
    return Response(body, error.status, headers, "application/json")


async def _about(request: Request, model: str, version: str | None) -> ModelAbout:
    live_model = await fresh(request, model, version)
    spec = live_model.entry.spec
    inputs = [TensorAbout(name="x", datatype="FP64", shape=[-1, -1])]
    if spec.accepts_non_numeric:
        inputs.append(TensorAbout(name="text", datatype="BYTES", shape=[-1, -1]))
    classes = -1 if spec.multiclass else 2
    return ModelAbout(
        name=model,
        versions=[str(live_model.position)],
        platform=f"hinged_{spec.learner.type}",
        inputs=inputs,
        outputs=[
            TensorAbout(name="label", datatype=_label_type(spec), shape=[-1]),
            TensorAbout(name="score", datatype="FP64", shape=[-1]),
            TensorAbout(name="probabilities", datatype="FP64", shape=[-1, classes]),
            TensorAbout(name="classes", datatype="BYTES", shape=[classes]),
        ],
    )


async def _infer(
    request: Request, model: str, version: str | None, settings: LimitSettings
) -> Response:
    body = await read_json_body(request.scope, request.receive, settings.max_body_bytes)
    wanted = _parsed(body)
    names = dict.fromkeys(choice.name for choice in wanted.outputs or ()) or _OUTPUTS
    at_least = None if version is None else parse_position(version)

    async def predict(live_model: LiveModel) -> tuple[LiveModel, Predictions]:
        mixed = live_model.accepts_non_numeric
        kind = MixedQuestion if mixed else Question
        events = rows(wanted.inputs, settings.max_events_per_call, mixed)
        return live_model, await live_model.predict([kind(x) for x in events], at_least)

    live_model, found = await with_model(request, model, predict)
    if found.faults:
        details = [Detail(f"[{i}].{fault.field}", fault.reason) for i, fault in found.faults]
        raise Unprocessable("Nothing was predicted.", details[:MAX_DETAILS])
    if any(prediction.y is None for prediction in found.items):
        raise Conflict("The model knows no class yet. Learn a labelled event first.")
    classes, label = live_model.state.answers.classes(), _label_type(live_model.entry.spec)
    tensors, position = _tensors(found.items, classes, label), found.position
    answer: dict[str, Any] = {"model_name": model, "model_version": position}
    if wanted.id is not None:
        answer["id"] = wanted.id
    answer["outputs"] = [{"name": name, **tensors[name]} for name in names]
    return Response(msgspec.json.encode(answer), media_type="application/json")


def _parsed(body: bytes) -> _Request:
    try:
        return _read(body)
    except msgspec.ValidationError as error:
        reason, _, at = str(error).partition(" - at `$")
        field = at.rstrip("`").lstrip(".") or "body"
        raise Unprocessable("Nothing was predicted.", [Detail(field[:100], reason[:200])]) from None
    except DECODE_ERRORS as error:
        raise Malformed(f"The body is not valid JSON: {error}.") from None


def _tensors(
    found: list[Prediction], classes: list[Label], label: str
) -> dict[str, dict[str, Any]]:
    columns = [label_text(y) for y in classes]
    n, k = len(found), len(columns)
    shares = [prediction.proba.get(text, 0.0) for prediction in found for text in columns]
    return {
        "label": {"shape": [n], "datatype": label, "data": [p.y for p in found]},
        "score": {"shape": [n], "datatype": "FP64", "data": [p.score for p in found]},
        "probabilities": {"shape": [n, k], "datatype": "FP64", "data": shares},
        "classes": {"shape": [k], "datatype": "BYTES", "data": columns},
    }


def _label_type(spec: ModelSpec) -> str:
    if isinstance(spec.labels, tuple):
        kind = type(spec.labels[0])
        return "BOOL" if kind is bool else "INT64" if kind is int else "BYTES"
    if spec.labels == "integers":
        return "INT64"
    return "BYTES" if spec.multiclass else "BOOL"
