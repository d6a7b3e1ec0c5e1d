"""The OpenAPI document: FastAPI's own, and predict and learn, which are no FastAPI routes."""

from __future__ import annotations

import json
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from hinged_service.api import checkpoints, commands, streams
from hinged_service.api.api_keys import needed
from hinged_service.api.bodies import POSITION_PATTERN
from hinged_service.api.dependencies import PROBA
from hinged_service.api.ndjson.openapi import line_bodies, line_parameters, line_results
from hinged_service.api.open_inference import routes
from hinged_service.api.schemas import ref, wire_schemas
from hinged_service.model.spec import ModelSpec
from hinged_service.wire.proba import PROBA_PATTERN

__all__ = ["install"]

_PROBLEM = {"application/problem+json": {"schema": ref("Problem")}}
_INFERENCE_ERROR = {"application/json": {"schema": ref("InferenceError")}}
_EVERYWHERE = {
    "401": "The service has API keys, and the request has no valid one.",
    "403": "The API key does not allow this call.",
}
_TOO_MANY = "The worker has no room, or the API key's rate is used up. Nothing was taken."
_OF_BODIES = {
    "400": "The body is not JSON.",
    "408": "The body did not come in time. Nothing was taken.",
    "413": "The body is too large, or the answer would be; detail names what to ask for.",
    "415": "The body is not application/json.",
    "422": "The body is wrong; errors names the field.",
}
_REASONS = _OF_BODIES | {
    "404": "There is no such model, or no prediction that waits for that label.",
    "410": "The prediction was given up before its label came.",
    "409": "An event id was used for another event, or the log contradicts at_least.",
    "415": "The body is neither application/json nor lines of it.",
    "422": "An event is wrong; errors names the field. Nothing was taken.",
    "429": "The queue or the worker has no room, or the API key's rate is used up. Nothing was "
    "taken.",
    "503": "Redis does not answer; sending the same ids again is safe.",
}


def install(app: FastAPI) -> None:
    """Make the app describe all of its calls."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _document(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    schemas |= wire_schemas()
    for body in (
        ModelSpec,
        *commands.bodies,
        *checkpoints.bodies,
        *streams.bodies,
        *routes.bodies,
    ):
        schema = body.model_json_schema(ref_template=ref("{model}")["$ref"])
        schemas |= schema.pop("$defs", {}) | {body.__name__: schema}
    document["paths"] |= {
        "/v1/models/{model}/predict": _hot_path(
            "Predict",
            "Question",
            ["Predicted"],
            {"x": {"clicks": 3, "age": 0.4}},
            {"y": True, "score": 1.2, "proba": {"false": 0.23, "true": 0.77}, "position": "1-0"},
        ),
        "/v1/models/{model}/learn": _hot_path(
            "Learn",
            "Event",
            ["Learned", "Duplicate", "Early"],
            {"id": "e1", "x": {"clicks": 3, "age": 0.4}, "y": True},
            {
                "y_pred": False,
                "score": -0.2,
                "mistake": True,
                "updated": True,
                "hinge_loss": 1.2,
                "position": "1-0",
                "duplicate": False,
            },
        ),
    }
    _readable(document)
    _sized(document)
    for schema in schemas.values():
        _untitled(schema)
    _named(document["paths"])
    _errors_as_they_are(document)
    return document


def _named(paths: dict[str, Any]) -> None:
    """Name each call by its function, as methods of generated clients are called."""
    for path, calls in paths.items():
        version = path.split("/")[1]
        for call in calls.values():
            name = call["operationId"].partition(f"_{version}_")[0]
            call["operationId"] = f"v2_{name}" if version == "v2" else name


def _untitled(node: Any, top: bool = True) -> None:
    """Leave out the titles within a schema.

    Clients name their classes after them, and number those that are equal: `LearningRate3`.
    """
    if isinstance(node, list):
        for part in node:
            _untitled(part, False)
    elif isinstance(node, dict):
        if not top and isinstance(node.get("title"), str):
            del node["title"]
        for part in node.values():
            _untitled(part, False)


def _sized(node: Any) -> None:
    """Give every number its size: clients in Go and Java take 32 bits where none is declared."""
    if isinstance(node, list):
        for part in node:
            _sized(part)
    elif isinstance(node, dict):
        kinds = node.get("type")
        for kind, size in (("integer", "int64"), ("number", "double")):
            if kinds == kind:
                node.setdefault("format", size)
        for part in node.values():
            _sized(part)


def _errors_as_they_are(document: dict[str, Any]) -> None:
    """Describe every error in the form it has; FastAPI knows only its own.

    Errors that all calls of a kind share are described here, others at the routes.
    """
    for path, calls in document["paths"].items():
        form = _INFERENCE_ERROR if path.startswith("/v2") else _PROBLEM
        for method, call in calls.items():
            answers = call["responses"]
            for code, text in _shared_errors(path, method, call).items():
                answers.setdefault(code, {"description": text})
            for code, answer in answers.items():
                if code >= "400":
                    answer["content"] = form
            if needed(method.upper(), path) is not None:
                for code, text in _EVERYWHERE.items():
                    answers[code] = {"description": text, "content": _PROBLEM}
                answers.setdefault("429", {"description": _TOO_MANY, "content": _PROBLEM})
    for unused in ("HTTPValidationError", "ValidationError"):
        document["components"]["schemas"].pop(unused, None)


def _shared_errors(path: str, method: str, call: dict[str, Any]) -> dict[str, str]:
    """Return the errors that a call shares with others of its kind."""
    found = dict(_OF_BODIES) if "requestBody" in call else {}
    if path.startswith("/v1"):
        found["503"] = "Redis does not answer; send the same again."
        if "{model}" in path and method != "put":
            found["404"] = "There is no such model."
    if any(parameter["name"] == "at_least" for parameter in call.get("parameters", [])):
        found["409"] = "The log contradicts at_least."
    return found


def _readable(node: Any) -> None:
    """Rewrite the forms that generated clients misread.

    A constant among other forms is an enumeration of one. A default that is an object, or of a
    field that may be one, stands in the description: clients leave out such a field or do not
    compile. Several arrays are any value not of another type: clients take the first array only.
    """
    if isinstance(node, list):
        for part in node:
            _readable(part)
    elif isinstance(node, dict):
        forms = node.get("anyOf", node.get("oneOf"))
        if isinstance(forms, list):
            for form in forms:
                if "const" in form:
                    form["enum"] = [form.pop("const")]
            if sum(form.get("type") == "array" for form in forms) > 1:
                del node["anyOf"]
                node["not"] = {"type": ["boolean", "number", "object"]}
                node["examples"] = [["ham", "spam"], [1, 2, 3], "integers"]
            objects = any("$ref" in form for form in forms)
            if isinstance(node.get("default"), dict) or (objects and node.get("default")):
                default = json.dumps(node.pop("default"))
                node["description"] = (
                    f"{node.get('description', '')} If left out: {default}.".strip()
                )
        for part in node.values():
            _readable(part)


def _hot_path(
    verb: str, body: str, answers: list[str], example: Any, answered: Any
) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [
        {"name": "model", "in": "path", "required": True, "schema": {"type": "string"}}
    ]
    if verb == "Predict":
        position = {"type": "string", "pattern": POSITION_PATTERN}
        parameters.append({"name": "at_least", "in": "query", "schema": position})
        choice = {"type": "string", "pattern": PROBA_PATTERN}
        parameters.append({"name": "proba", "in": "query", "description": PROBA, "schema": choice})
    call = {
        "tags": ["events"],
        "summary": f"{verb} one event or an array of them",
        "operationId": verb.lower(),
        "parameters": parameters + line_parameters(verb),
        "requestBody": {
            "required": True,
            "content": _one_or_many(body, example) | line_bodies(ref(body), example),
        },
        "responses": {
            "200": {
                "description": "The answer, or an array of them in the order of the events.",
                "content": _one_or_many(answers[0], answered, ref(f"{answers[0]}Lines"))
                | line_results(answers),
            },
            **{code: {"description": text} for code, text in _REASONS.items()},
        },
    }
    return {"post": call}


def _one_or_many(name: str, example: Any, *others: dict[str, str]) -> dict[str, Any]:
    forms = [*others, ref(name), {"type": "array", "items": ref(name)}]
    examples = {"one": {"value": example}, "array": {"value": [example]}}
    return {"application/json": {"schema": {"anyOf": forms}, "examples": examples}}
