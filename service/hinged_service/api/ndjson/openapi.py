"""Description of bodies of lines, and the answers to them, for the OpenAPI document."""

from __future__ import annotations

import json
from typing import Any

from hinged_service.api.bodies import LINE_TYPES
from hinged_service.api.ndjson.answers import (
    DuplicateLine,
    EarlyLine,
    LearnedLine,
    LearnedLines,
    PredictedLine,
    PredictedLines,
    RejectedLine,
)
from hinged_service.wire.faults import MAX_NAME

__all__ = ["LINE_SHAPES", "line_bodies", "line_parameters", "line_results"]

LINE_SHAPES = (
    LearnedLine,
    DuplicateLine,
    EarlyLine,
    PredictedLine,
    RejectedLine,
    LearnedLines,
    PredictedLines,
)

_RESULTS = (
    "For a body of lines only. `each`: a line of the answer per line that is not blank, in order, "
    "written while the body is still being read: a client that does not read will have to wait. "
    "`summary`: one document in the end. A line that is not taken is reported and the rest goes "
    'on. Where the service has to give up, the last line is `{"line": n, "error": problem}`, '
    "or the answer is a problem document with `line`: send again from that line on; with ids, or "
    "the whole body with a source, nothing counts twice."
)
_SOURCE = (
    "A name for a body of lines; with another body it is refused. The service remembers how many "
    "of its lines it has taken, so the same body sent again, whole, goes on where it stopped; "
    "lines need no ids for it. Lines taken before are answered as duplicates, bad ones among them "
    "stay bad: mend them in another body. A body that begins otherwise is 409; one that has grown "
    "goes on."
)


def line_parameters(verb: str) -> list[dict[str, Any]]:
    """Return the query parameters of a call with lines."""
    results = {"type": "string", "enum": ["each", "summary"], "default": "each"}
    parameters = [{"name": "results", "in": "query", "description": _RESULTS, "schema": results}]
    if verb == "Learn":
        name = {"type": "string", "minLength": 1, "maxLength": MAX_NAME}
        parameters.append({"name": "source", "in": "query", "description": _SOURCE, "schema": name})
    return parameters


def line_bodies(line: dict[str, Any], example: Any) -> dict[str, Any]:
    """Return the media types of bodies of lines; the schema is that of one line."""
    text = json.dumps(example)
    return {
        kind: {"schema": line, "examples": {"lines": {"value": f"{text}\n{text}\n"}}}
        for kind in LINE_TYPES
    }


def line_results(answers: list[str]) -> dict[str, Any]:
    """Return the media type of answers line by line; the schema is that of one line."""
    shapes = [{"$ref": f"#/components/schemas/{name}Line"} for name in (*answers, "Rejected")]
    return {"application/x-ndjson": {"schema": {"anyOf": shapes}}}
