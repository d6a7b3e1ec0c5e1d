"""The Open Inference Protocol (version 2, REST), for programs that use it already.

An event is a row: every feature is a tensor of its own, or a column of a tensor with
named columns. The answers are those of `/v1/models/{model}/predict`, as tensors.

The file is long: the protocol repeats its documents route by route.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Annotated, Any, Literal, get_args

import msgspec
from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field

import hinged
from hinged_service.api.bodies import (
    POSITION_PATTERN,
    asked_proba,
    parse_position,
    read_json_body,
)
from hinged_service.api.dependencies import Name, Proba, document, fresh, with_model
from hinged_service.api.large_answers import (
    LargeAnswer,
    prediction_bytes,
    predictions_at_once,
    reserve,
)
from hinged_service.api.open_inference.tensors import Datatype, Tensor, rows
from hinged_service.api.problems import as_service_error
from hinged_service.api.readiness import Readiness
from hinged_service.engine.live_model import LiveModel, Predictions
from hinged_service.errors import Conflict, Detail, ServiceError, Unprocessable
from hinged_service.model.predictor import Label, label_text
from hinged_service.model.results import Rejection
from hinged_service.model.spec import ModelSpec
from hinged_service.server.admission import HELD
from hinged_service.settings import LimitSettings
from hinged_service.telemetry.request_context import template
from hinged_service.wire.events import MixedQuestion, Question
from hinged_service.wire.faults import DECODE_ERRORS, MAX_DETAILS, unexplained
from hinged_service.wire.proba import ALL, USUAL

__all__ = ["InferenceError", "bodies", "router"]

Output = Literal["label", "score", "probabilities", "classes"]
_OUTPUTS: tuple[Output, ...] = get_args(Output)
_PLAIN: tuple[Output, ...] = ("label", "score")
_SHARES: frozenset[Output] = frozenset({"probabilities", "classes"})
_FEWER = (
    "Send fewer events at once, or ask for fewer probabilities (?proba=top:3, ?proba=none) or for "
    "other outputs."
)

Version = Annotated[
    str,
    Path(
        description="A position: the answer is of a model that has learned that much.",
        json_schema_extra={"pattern": POSITION_PATTERN},
    ),
]


class InferenceError(BaseModel):
    """Error in the protocol's form: the problem and the next step."""

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
        "k texts in classes [k]. If the model has more classes than proba allows: probabilities "
        "[n, k] and classes [n, k] of the k likeliest classes of each event, the likeliest first."
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


class _Line(JSONResponse):
    """JSON that ends with a newline, as every answer does."""

    def render(self, content: Any) -> bytes:
        """Return the body."""
        return super().render(content) + b"\n"


class _Route(APIRoute):
    """A route whose errors have the protocol's form."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_all(request: Request) -> Response:
            try:
                return await handle(request)
            except Exception as error:  # noqa: BLE001 - logged there
                return _answer_for(as_service_error(error, template(request.scope)))

        return handle_all


bodies = (InferenceRequest,)
_read = msgspec.json.Decoder(_Request).decode


def router(settings: LimitSettings) -> APIRouter:
    """Return the routes."""
    away = _errors({503: "Redis does not answer; send the same again."})
    missing = _errors({404: "There is no such model."}) | away
    wrong = _errors(
        {409: "The log contradicts the version.", 422: "The version is not a position."}
    )
    refusals = _errors(
        {
            400: "The body is not JSON.",
            409: "The model knows no class yet, or the log contradicts the version.",
            413: "More bytes or events than one call takes.",
            415: "The body is not application/json.",
            422: "The tensors are wrong; the text names the place.",
        }
    )
    routes = APIRouter(
        prefix="/v2",
        tags=["open inference protocol"],
        route_class=_Route,
        default_response_class=_Line,
    )

    @routes.get("", summary="About the server")
    async def get_server() -> ServerAbout:
        """Return name and version."""
        return ServerAbout(name="hinged", version=hinged.__version__, extensions=[])

    @routes.get("/health/live", summary="Is the server live?")
    async def get_live() -> Live:
        """Answer as long as the worker runs, also while Redis does not answer."""
        return Live(live=True)

    @routes.get("/health/ready", summary="Is the server ready?", responses=away)
    async def get_ready(request: Request) -> Ready:
        """Answer 200 if requests may be sent here, else 503, as `/readyz` does."""
        readiness: Readiness = request.app.state.readiness
        await readiness.check()
        return Ready(ready=True)

    @routes.get("/models/{model}", summary="About a model", responses=missing)
    async def get_model(request: Request, model: Name) -> ModelAbout:
        """Return the input and output tensors of a model."""
        return await _about(request, model, None)

    @routes.get(
        "/models/{model}/versions/{version}",
        summary="About a model at a position",
        responses=missing | wrong,
    )
    async def get_version(request: Request, model: Name, version: Version) -> ModelAbout:
        """Return the input and output tensors of a model, once it has learned that much."""
        return await _about(request, model, version)

    @routes.get("/models/{model}/ready", summary="Is a model ready?", responses=missing)
    async def get_model_ready(request: Request, model: Name) -> ModelReady:
        """Answer 200 if the model can predict, else 503."""
        await fresh(request, model)
        return ModelReady(name=model, ready=True)

    @routes.get(
        "/models/{model}/versions/{version}/ready",
        summary="Is a model ready at a position?",
        responses=missing | wrong,
    )
    async def get_version_ready(request: Request, model: Name, version: Version) -> ModelReady:
        """Answer 200 if the model can predict, having learned that much, else 503."""
        await fresh(request, model, version, "version")
        return ModelReady(name=model, ready=True)

    @routes.post(
        "/models/{model}/infer",
        summary="Predict events sent as tensors",
        response_model=InferenceAnswer,
        responses=missing | refusals,
        openapi_extra=document(InferenceRequest),
    )
    async def infer(request: Request, model: Name, proba: Proba = None) -> Response:
        """Predict; that changes no model."""
        return await _infer(request, model, None, proba, settings)

    @routes.post(
        "/models/{model}/versions/{version}/infer",
        summary="Predict with a model at a position",
        response_model=InferenceAnswer,
        responses=missing | refusals,
        openapi_extra=document(InferenceRequest),
    )
    async def infer_version(
        request: Request, model: Name, version: Version, proba: Proba = None
    ) -> Response:
        """Predict once the model has learned that much; it may have learned more."""
        return await _infer(request, model, version, proba, settings)

    return routes


def _errors(reasons: dict[int, str]) -> dict[int | str, dict[str, Any]]:
    return {code: {"model": InferenceError, "description": text} for code, text in reasons.items()}


def _answer_for(error: ServiceError) -> Response:
    faults = "".join(f" {fault.field} {fault.reason}." for fault in error.errors)
    body = msgspec.json.encode({"error": error.detail + faults}) + b"\n"
    wait_s = error.retry_after_s
    headers = {} if wait_s is None else {"retry-after": str(wait_s)}
    return Response(body, error.status, headers, "application/json")


async def _about(request: Request, model: str, version: str | None) -> ModelAbout:
    live_model = await fresh(request, model, version, "version")
    spec = live_model.entry.spec
    inputs = [TensorAbout(name="x", datatype="FP64", shape=[-1, -1])]
    if spec.accepts_non_numeric:
        inputs.append(TensorAbout(name="text", datatype="BYTES", shape=[-1, -1]))
    classes = -1 if spec.multiclass else 2
    seen = (await live_model.at_rest()).answers.classes()
    likeliest_only = len(seen) > USUAL
    return ModelAbout(
        name=model,
        versions=[str(live_model.position)],
        platform=f"hinged_{spec.learner.type}",
        inputs=inputs,
        outputs=[
            TensorAbout(name="label", datatype=_label_type(spec, seen), shape=[-1]),
            TensorAbout(name="score", datatype="FP64", shape=[-1]),
            TensorAbout(name="probabilities", datatype="FP64", shape=[-1, classes]),
            TensorAbout(
                name="classes", datatype="BYTES", shape=[-1, -1] if likeliest_only else [classes]
            ),
        ],
    )


async def _infer(
    request: Request, model: str, version: str | None, proba: str | None, settings: LimitSettings
) -> Response:
    body = await read_json_body(request.scope, request.receive, settings.max_body_bytes)
    wanted = _parsed(body)
    most = asked_proba(request.scope)
    names: Iterable[Output] = dict.fromkeys(choice.name for choice in wanted.outputs or ())
    if not names:
        names = _OUTPUTS if most else _PLAIN
    if _SHARES.isdisjoint(names):
        most = 0
    at_least = None if version is None else parse_position(version, "version")
    control = request.scope[HELD].control

    async def predict(live_model: LiveModel) -> _Tensors:
        mixed = live_model.accepts_non_numeric
        kind = MixedQuestion if mixed else Question
        events = rows(wanted.inputs, settings.max_events_per_call, mixed)
        state = await live_model.at_rest()
        each_bytes = prediction_bytes(state, most)
        reserve(request.scope, len(events) * each_bytes, settings.max_answer_bytes, _FEWER)
        tensors = _Tensors(len(events), names)
        at_once = predictions_at_once(state, each_bytes)
        faults: list[tuple[int, Rejection]] = []
        if at_least is not None:
            await live_model.freshness.wait_for_position(at_least)
        for start in range(0, len(events) or 1, at_once):
            questions = [kind(x) for x in events[start : start + at_once]]
            share = ALL if tensors.columns else most
            await control.take_turn()
            size = len(questions) * len(body) // max(1, len(events))
            found = await live_model.predict(questions, size, most=share)
            faults += [(start + i, fault) for i, fault in found.faults]
            if not faults:
                tensors.add(found, live_model, most)  # at once: before the state can be taken
        if faults:
            details = [Detail(f"[{i}].{fault.field}", fault.reason) for i, fault in faults]
            raise Unprocessable("Nothing was predicted.", details[:MAX_DETAILS])
        return tensors

    tensors = await with_model(request, model, predict)
    about: dict[str, Any] = {"model_name": model, "model_version": tensors.position}
    if wanted.id is not None:
        about["id"] = wanted.id
    return LargeAnswer(tensors.answer(about))


def _parsed(body: bytes) -> _Request:
    try:
        return _read(body)
    except msgspec.ValidationError as error:
        reason, _, at = str(error).partition(" - at `$")
        field = at.rstrip("`").lstrip(".") or "body"
        raise Unprocessable("Nothing was predicted.", [Detail(field[:100], reason[:200])]) from None
    except DECODE_ERRORS as error:
        raise unexplained(error) from None


class _Tensors:
    """The tensors of an answer, each as the JSON of its elements, made part by part.

    Parameters
    ----------
    count
        The number of events.
    names
        The outputs that are wanted.

    Attributes
    ----------
    position
        The place in the log up to which the model had learned at the first of them.
    columns
        The texts of the classes, one for each column of the probabilities; `None` if each event
        has classes of its own, the likeliest ones.

    """

    def __init__(self, count: int, names: Iterable[Output]) -> None:
        self.position = ""
        self.columns: list[str] | None = None
        self._count, self._width, self._label = count, 0, ""
        self._data: dict[Output, list[bytes]] = {name: [] for name in names}

    def add(self, found: Predictions, live_model: LiveModel, most: int) -> None:
        """Add the predictions of the next events, with the `most` largest probabilities."""
        if any(prediction.y is None for prediction in found.items):
            raise Conflict("The model knows no class yet. Learn a labelled event first.")
        if not self.position:
            classes = live_model.state.answers.classes()
            texts = [label_text(y) for y in classes]
            self.position, self._label = found.position, _label_type(live_model.entry.spec, classes)
            self._width = min(most, len(texts))
            if len(texts) <= most:
                self.columns = texts
                self._put("classes", texts)
        self._put("label", [p.y for p in found.items])
        self._put("score", [p.score for p in found.items])
        if self.columns is not None:
            columns = self.columns
            self._put("probabilities", [p.proba.get(c, 0.0) for p in found.items for c in columns])
        else:
            self._put("probabilities", [share for p in found.items for share in p.proba.values()])
            self._put("classes", [text for p in found.items for text in p.proba])

    def _put(self, name: Output, elements: list[Any]) -> None:
        if elements and name in self._data:
            piece = msgspec.json.encode(elements)[1:-1]
            self._data[name].append(b"," + piece if self._data[name] else piece)

    def answer(self, about: dict[str, Any]) -> list[bytes]:
        """Return the answer in pieces; `about` are its other fields than the tensors."""
        n, k = self._count, self._width
        table, label = [n, k], self._label
        shapes: dict[Output, tuple[list[int], str]] = {
            "label": ([n], label),
            "score": ([n], "FP64"),
            "probabilities": (table, "FP64"),
            "classes": (table if self.columns is None else [k], "BYTES"),
        }
        pieces = [msgspec.json.encode(about)[:-1] + b',"outputs":[']
        for number, (name, data) in enumerate(self._data.items()):
            shape, datatype = shapes[name]
            head = {"name": name, "shape": shape, "datatype": datatype}
            comma = b"," if number else b""
            pieces += [comma + msgspec.json.encode(head)[:-1] + b',"data":[', *data, b"]}"]
        return [*pieces, b"]}"]


def _label_type(spec: ModelSpec, seen: Sequence[Label]) -> str:
    """Return the datatype of labels, by the classes that the model knows if the spec names none."""
    classes = spec.labels if isinstance(spec.labels, tuple) else seen
    if not classes:
        return "INT64" if spec.labels == "integers" else "BYTES"
    kind = type(classes[0])
    return "BOOL" if kind is bool else "INT64" if kind is int else "BYTES"
