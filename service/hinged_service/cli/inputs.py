"""Parse command-line arguments and standard input into events, values and JSON documents."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import typer

from hinged_service.client import Event, Label
from hinged_service.wire.encodings import other_encoding, without_marks
from hinged_service.wire.faults import DECODE_ERRORS

__all__ = ["label_of", "pairs", "read_bytes", "read_documents", "read_events", "value_of"]


def value_of(text: str) -> Any:
    """Return the value of a text: a number, true, false, null or quoted text as in JSON, or text.

    `BadParameter` if it is an array or an object.
    """
    try:
        value = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeEncodeError):
        return text
    if isinstance(value, (list, dict)):
        raise typer.BadParameter(f"{text!r} is not a single value.")
    return value


def pairs(texts: Sequence[str], hint: str) -> dict[str, Any]:
    """Return names and values of texts like `name=value`; an error calls them `hint`.

    `BadParameter` names the text that is no such pair, or the name that stands there twice. A value
    may hold further equals signs.
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise typer.BadParameter(f"{text!r} is not like name=value.", param_hint=hint)
        if name in found:
            raise typer.BadParameter(f"{name!r} is given twice.", param_hint=hint)
        found[name] = value_of(value)
    return found


def read_bytes(path: str) -> bytes:
    """Return the contents of a file, or of standard input for `-`."""
    try:
        return sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"Cannot read {path}: {error.strerror}.") from None


def read_documents(text: bytes, what: str) -> tuple[list[Any], bool]:
    """Return the JSON documents of a text: one, an array of them, or one a line.

    Returned is also whether there may be several. `BadParameter` if it is no JSON, or not in UTF-8.
    """
    if (encoding := other_encoding(text)) is not None:
        raise typer.BadParameter(f"{what} is {encoding}: give it in UTF-8.")
    text = without_marks(text)
    try:
        found = msgspec.json.decode(text)
    except DECODE_ERRORS as error:
        first = error
    else:
        return (found, True) if isinstance(found, list) else ([found], False)
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if len(lines) < 2:
        raise typer.BadParameter(f"{what} is not JSON: {first}.")
    documents = []
    for number, line in lines:
        try:
            documents.append(msgspec.json.decode(without_marks(line)))
        except DECODE_ERRORS as error:
            raise typer.BadParameter(f"Line {number} of {what} is not JSON: {error}.") from None
    return documents, True


def read_events(features: list[str] | None, event: str | None) -> tuple[list[dict[str, Any]], bool]:
    """Return the events of a command: arguments, `--event`, or standard input.

    Returned are objects with `"x"` and the fields beside it, and whether there may be several.
    `BadParameter` if there are none, or more than one way was taken.
    """
    if features and event is not None:
        raise typer.BadParameter("Give feature=value or --event, not both.")
    if features:
        return [{"x": pairs(features, "feature=value")}], False
    if event is None and sys.stdin.isatty():
        raise typer.BadParameter("Give feature=value, --event JSON, or events on standard input.")
    try:
        text = sys.stdin.buffer.read() if event is None else os.fsencode(event)
    except UnicodeEncodeError as error:
        raise typer.BadParameter(f"--event is not JSON: {error}.") from None
    if not without_marks(text).strip():
        raise typer.BadParameter(
            "There is no event: give feature=value, --event JSON, or events on standard input."
        )
    documents, many = read_documents(text, "standard input" if event is None else "--event")
    return [_event(document) for document in documents], many


def label_of(text: str, spec: dict[str, Any], classes: Sequence[Label]) -> Label:
    """Return the label of a model that a text denotes, by its spec and its classes.

    `BadParameter` if it has none.
    """
    labels = spec.get("labels")
    if labels is None and "max_classes" in spec["learner"]:
        kind = type(classes[0]) if classes else str  # the learner auto takes any, but of one type
        if kind is str:
            return text
        labels = "integers" if kind is int else (False, True)
    if labels == "integers":
        try:
            return int(text)
        except ValueError:
            raise typer.BadParameter(f"{text!r} is not an integer.", param_hint="--label") from None
    choices = {_text(label): label for label in labels or (False, True)}
    if labels is None:
        choices |= {"0": 0, "1": 1}
    if text not in choices:
        raise typer.BadParameter(
            f"{text!r} is not a label of this model; its labels are {', '.join(choices)}.",
            param_hint="--label",
        )
    return choices[text]


def _event(document: object) -> dict[str, Any]:
    if not isinstance(document, dict):
        raise typer.BadParameter('An event is an object: {"x": {...}}, or the features alone.')
    if "x" not in document and "y" in document and isinstance(document.get("id"), str):
        raise typer.BadParameter(
            "An event has an id and a label but no features: give x. `hinged label` sends the "
            "label of an earlier prediction, `hinged ingest file --labels-only` a file of them."
        )
    if not isinstance(document.get("x"), dict):
        return {"x": document}  # no feature's value is an object, so these are the features
    for field in document:
        if field not in Event._fields:
            choices = ", ".join(Event._fields)
            raise typer.BadParameter(
                f"{field!r} is not a field of an event; the fields are {choices}."
            )
    return document


def _text(label: Label) -> str:
    return label if isinstance(label, str) else json.dumps(label)
