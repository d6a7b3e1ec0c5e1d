"""NDJSON: each line is an event exactly as `POST learn` takes it."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from hinged_service.errors import ServiceError
from hinged_service.events import parse_events
from hinged_service.files.linewise import Linewise
from hinged_service.files.options import FileOptions
from hinged_service.files.record import BadRecord
from hinged_service.files.values import map_label

__all__ = ["Ndjson"]

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Ndjson(Linewise):
    """A line is an event as JSON; the service's own reader decides what is one.

    Parameters
    ----------
    options
        Of which only `labels` matters.

    """

    def __init__(self, options: FileOptions) -> None:
        self._labels = options.labels

    def describe(self) -> str:
        """Say how lines are read."""
        return "reading each line as an event, as POST learn takes it"

    def event(self, line: bytes) -> dict[str, Any]:
        """Return a line as an event."""
        try:
            _, _, is_array = parse_events(line, 1, mixed=True)
        except ServiceError as error:
            faults = [f"{detail.field} {detail.reason}" for detail in error.errors]
            reason = "; ".join(faults) or error.detail.removeprefix("The body ").rstrip(".")
            raise BadRecord(reason) from None
        if is_array:
            raise BadRecord("is an array: a line is one event")
        event = _decode(line.strip())
        if self._labels:
            y = event["y"]
            event["y"] = map_label(self._labels, y if isinstance(y, str) else json.dumps(y))
        return event
