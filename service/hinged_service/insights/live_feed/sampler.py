"""A sample of what is folded in one tick, encoded for all subscribers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import hinged
from hinged_service.engine.replica import AppliedEntry
from hinged_service.insights.live_feed.messages import message, outcome_data
from hinged_service.model.state import ModelState

__all__ = ["Sampler"]

_MAX_OUTCOMES = 20
_MAX_FEATURE_BYTES = 2**18
_MAX_MARKS = 100


class Sampler:
    """The messages of one tick: the first outcomes, the first commands and drifts.

    Outcomes that are left out are counted.
    """

    def __init__(self) -> None:
        self._shown = self._left_out = 0
        self._plain: list[bytes] = []
        self._full: list[bytes] = []
        self._full_bytes = 0
        self._marks = 0

    def add(self, folded: AppliedEntry, fold: ModelState) -> None:
        """Take note of an entry that was folded; this runs on the way of learning."""
        if folded.results:
            if self._shown < _MAX_OUTCOMES:
                self._add_outcomes(folded, fold)
            else:
                self._left_out += sum(isinstance(r, hinged.Outcome) for r in folded.results)
        if folded.command is None and not folded.detections:
            return
        place = {"position": str(folded.entry.position), "at_ms": folded.entry.position.order[0]}
        if folded.command is not None:
            command = {k: v for k, v in folded.command.items() if k != "model"}
            self._add_mark("command", {**command, **place})
        for detection in folded.detections:
            self._add_mark("drift", {**detection._asdict(), **place})

    def _add_outcomes(self, folded: AppliedEntry, fold: ModelState) -> None:
        position = str(folded.entry.position)
        for number, result in enumerate(folded.results):
            if not isinstance(result, hinged.Outcome):
                continue
            if self._shown >= _MAX_OUTCOMES:
                self._left_out += 1
                continue
            event = folded.events[number]
            if event is not None:
                data = outcome_data(fold, event, result)
                data |= {"position": position, "number": number}
                data["at_ms"] = folded.entry.position.order[0]
                self._add_outcome(data, event.x, position)

    def _add_outcome(self, data: dict[str, Any], x: Mapping[str, Any], position: str) -> None:
        """Add an outcome; with its features while there is room for them."""
        self._shown += 1
        self._plain.append(message("outcome", data, position))
        full = self._plain[-1]
        if self._full_bytes < _MAX_FEATURE_BYTES:
            full = message("outcome", {**data, "x": x}, position)
            self._full_bytes += len(full)
        self._full.append(full)

    def _add_mark(self, event: str, data: dict[str, Any]) -> None:
        """Add a message for all."""
        self._marks += 1
        if self._marks <= _MAX_MARKS:
            encoded = message(event, data, data["position"])
            self._plain.append(encoded)
            self._full.append(encoded)

    def chunks(self) -> tuple[bytes, bytes]:
        """Return the messages without and with features."""
        if self._left_out:
            data = {"shown": self._shown, "left_out": self._left_out}
            self._plain.append(message("sample", data))
            self._full.append(self._plain[-1])
        return b"".join(self._plain), b"".join(self._full)
