"""How the OpenAPI document describes events, questions and the answers to them.

A call takes one or an array of them. Programs that generate clients read a union of
objects within an array wrongly or not at all; so there is one schema for all forms
of an event, and one for all forms of an answer.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from hinged_service.api import events
from hinged_service.api.ndjson.openapi import LINE_SHAPES
from hinged_service.wire.events import LateEvent, MixedQuestion
from hinged_service.wire.faults import MAX_TEXT, MAX_VALUE

__all__ = ["event_schemas"]

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
_NAMES: Final = {"LateEvent": "Event", "MixedQuestion": "Question"}
_DESCRIPTIONS: Final = {
    "Event": "A labelled event. The label of an earlier prediction has the prediction's `id` and "
    "may leave out `x`.",
    "Question": "An event without its label. With an `id` it waits for a label under the same id.",
    "Predicted": "A prediction.",
    "Learned": "What an event did, predicted and scored before it was learned. The answer for an "
    "event that had counted before has only `position` and `duplicate`, which is true; that for a "
    "label that came before its prediction has only `position` and `early`.",
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
    "Predicted": {
        "y": {
            "description": "The predicted label; null while a multiclass model knows no class.",
            **_LABEL,
        },
        "score": {
            "description": "The score that decided it: `w . x + b`, the vote of a hedge, or the "
            "highest score of all classes."
        },
        "proba": {
            "description": "Per label, by its text: the logistic function of the score, the "
            "softmax of all scores, or the trust in the label; uncalibrated."
        },
        "position": {"description": "The place in the log up to which the model had learned."},
        "stale_s": {"description": "Only while Redis does not answer: the model's age in seconds."},
    },
    "Learned": {
        "y_pred": {"description": "The label predicted before learning.", **_LABEL},
        "score": {"description": "The score that decided it, before learning."},
        "mistake": {"description": "Whether the predicted label was wrong."},
        "updated": {"description": "Whether the weights moved."},
        "hinge_loss": {"description": "`max(0, 1 - margin)` before learning."},
        "position": {"description": "A place in the log at which the event is in the model."},
        "duplicate": {"description": "Whether the event had counted before."},
        "early": {"description": "True for a label that came before its prediction."},
    },
}


def event_schemas(ref_template: str) -> dict[str, dict[str, Any]]:
    """Return the schemas by name, those of lines included.

    Parameters
    ----------
    ref_template
        How one refers to another; `{name}` stands for its name.

    """
    shapes = (
        *(LateEvent, MixedQuestion, events.Predicted),
        *(events.Learned, events.Duplicate, events.Early),
        *LINE_SHAPES,
    )
    _, made = msgspec.json.schema_components(shapes, ref_template=ref_template)
    schemas = {_NAMES.get(name, name): schema for name, schema in made.items()}
    forms = [schemas.pop(name) for name in ("Learned", "Duplicate", "Early")]
    schemas["Learned"] = _one_of_all(*forms)
    for name, fields in _FIELDS.items():
        for field, said in fields.items():
            known = schemas[name]["properties"][field]
            if "not" in said:
                known = {k: v for k, v in known.items() if k not in ("anyOf", "type")}
            schemas[name]["properties"][field] = {**known, **said}
    fields = schemas["Event"]["properties"]
    schemas["Event"]["properties"] = {"x": fields.pop("x"), **fields}
    schemas["Question"]["properties"]["x"] = schemas["Event"]["properties"]["x"]
    for name, text in _DESCRIPTIONS.items():
        schemas[name] |= {"title": name, "description": text}
    for name in ("LearnedLines", "PredictedLines"):  # always whole, unlike an answer
        schemas[name]["required"] = list(schemas[name]["properties"])
    return schemas


def _one_of_all(first: dict[str, Any], *others: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object that may have any of these forms."""
    properties, required = dict(first["properties"]), list(first["required"])
    for form in others:
        properties |= {k: v for k, v in form["properties"].items() if k not in properties}
        required = [name for name in required if name in form["required"]]
    without_default = {
        name: {k: v for k, v in schema.items() if k != "default"}
        for name, schema in properties.items()
    }
    return {**first, "properties": without_default, "required": required}
