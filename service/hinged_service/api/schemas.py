"""Schemas of the OpenAPI document: events, questions and answers, from their wire types.

A call takes one or an array of events. Programs that generate clients read a union of
objects within an array wrongly or not at all; so there is one schema for all forms
of an event, and one for all forms of an answer.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from hinged_service.api.ndjson.openapi import LINE_SHAPES
from hinged_service.wire import progress, reports, responses
from hinged_service.wire.events import LateEvent, MixedQuestion
from hinged_service.wire.faults import MAX_TEXT, MAX_VALUE

__all__ = ["TEMPLATE", "described", "ref", "wire_schemas"]

TEMPLATE: Final = "#/components/schemas/{name}"
"""The way in which one schema refers to another."""

_SCALAR: Final[dict[str, Any]] = {"not": {"type": ["array", "object"]}}
"""A scalar of any type: a union of types is among what generated clients misread."""
_LABEL: Final = {**_SCALAR, "examples": [True, "spam", 3]}
_VALUE: Final = {
    **_SCALAR,
    "minimum": -MAX_VALUE,
    "maximum": MAX_VALUE,
    "maxLength": MAX_TEXT,
    "examples": [0.4],
}
_NAMES: Final = {
    "CommandResult": "Obeyed",
    "ExpertWeights": "Expert",
    "LabelCounts": "Labels",
    "LateEvent": "Event",
    "MixedQuestion": "Question",
    "ModelGlance": "Glanced",
    "ModelGlances": "Glances",
    "Prediction": "Predicted",
    "Weights": "WeightsAnswer",
}
"""Names in the document from which clients are generated, if they differ from the types."""
_ANSWERS: Final = tuple(
    kind
    for module in (responses, reports, progress)
    for name in module.__all__
    if isinstance(kind := getattr(module, name), type) and issubclass(kind, msgspec.Struct)
)
_DESCRIPTIONS: Final = {
    "Event": "A labelled event. The label of an earlier prediction has the prediction's `id` and "
    "may leave out `x`.",
    "Question": "An event without its label. With an `id` it waits for a label under the same id.",
    "Learned": "The outcome of an event, predicted and scored before it was learned. The answer "
    "for an event that had counted before has only `position` and `duplicate`, which is true; that "
    "for a label that came before its prediction has only `position` and `early`.",
}
_FIELDS: Final[dict[str, dict[str, dict[str, Any]]]] = {
    "Event": {
        "x": {
            "description": "Feature names to finite numbers; what is absent counts as 0. A model "
            "whose pipeline takes them also gets text, true or false, and null for a missing one.",
            "additionalProperties": _VALUE,
            "examples": [{"age": 0.4, "clicks": 3}, {"text": "free entry", "hour": 3}],
        },
        "y": {
            "description": "The label, of the model's label type: true or false, a number or text.",
            "not": {"type": ["array", "null", "object"]},
            "examples": _LABEL["examples"],
        },
    },
    "Predicted": {"y": _LABEL},
    "Learned": {"y_pred": _LABEL},
}


def ref(name: str) -> dict[str, str]:
    """Return the schema that refers to another by its name."""
    return {"$ref": TEMPLATE.format(name=name)}


def described(kind: Any, text: str = "Successful Response") -> dict[str, Any]:
    """Return the OpenAPI of an answer: a struct of `wire.responses`, or `list` of one."""
    item = getattr(kind, "__args__", (kind,))[0]
    schema: dict[str, Any] = ref(_NAMES.get(item.__name__, item.__name__))
    if item is not kind:
        schema = {"type": "array", "items": schema}
    return {"description": text, "content": {"application/json": {"schema": schema}}}


def wire_schemas() -> dict[str, dict[str, Any]]:
    """Return the schemas by name, those of lines included."""
    _, made = msgspec.json.schema_components(
        (LateEvent, MixedQuestion, *_ANSWERS, *LINE_SHAPES), ref_template=TEMPLATE
    )
    for kind in _ANSWERS:
        _describe(kind, made[kind.__name__])
    text = msgspec.json.encode(made).decode()
    for name, public in _NAMES.items():
        text = text.replace(f'"{TEMPLATE.format(name=name)}"', f'"{TEMPLATE.format(name=public)}"')
    renamed: dict[str, dict[str, Any]] = msgspec.json.decode(text)
    schemas = {_NAMES.get(name, name): schema for name, schema in renamed.items()}
    forms = [schemas.pop(name) for name in ("Learned", "Duplicate", "Early")]
    schemas["Learned"] = _one_of_all(*forms)
    for name, fields in _FIELDS.items():
        for field, more in fields.items():
            described = schemas[name]["properties"][field]
            if "not" in more:
                described = {k: v for k, v in described.items() if k not in ("anyOf", "type")}
            schemas[name]["properties"][field] = {**described, **more}
    fields = schemas["Event"]["properties"]
    schemas["Event"]["properties"] = {"x": fields.pop("x"), **fields}
    schemas["Question"]["properties"]["x"] = schemas["Event"]["properties"]["x"]
    for name, text in _DESCRIPTIONS.items():
        schemas[name] |= {"title": name, "description": text}
    for name in ("LearnedLines", "PredictedLines"):  # always whole, unlike an answer
        schemas[name]["required"] = list(schemas[name]["properties"])
    schemas["ModelInfo"]["required"].append("accuracy")
    schemas["Problem"]["required"] = ["title", "status", "detail"]
    return schemas


def _describe(kind: type[msgspec.Struct], schema: dict[str, Any]) -> None:
    """Complete the schema of an answer: its title, and the fields that are always sent."""
    schema["title"] = _NAMES.get(kind.__name__, kind.__name__)
    properties = schema["properties"]
    if "spec" in properties:
        properties["spec"] = ref("ModelSpec")
    whole = not kind.__struct_config__.omit_defaults
    schema["required"] = []
    for name, value in properties.items():
        default = value.pop("default", msgspec.NODEFAULT)
        if default is msgspec.NODEFAULT or (whole and default is not None):
            schema["required"].append(name)


def _one_of_all(first: dict[str, Any], *others: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object that may have any of these forms."""
    properties, required = dict(first["properties"]), list(first["required"])
    for form in others:
        properties |= {k: v for k, v in form["properties"].items() if k not in properties}
        required = [name for name in required if name in form["required"]]
    return {**first, "properties": properties, "required": required}
