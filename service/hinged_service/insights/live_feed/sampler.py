"""A sample of the entries applied in one tick, encoded for all subscribers."""

from __future__ import annotations

from typing import Any

import msgspec

import hinged
from hinged_service.engine.replica import AppliedEntry
from hinged_service.insights.live_feed.messages import message, outcome_of
from hinged_service.model.state import ModelState
from hinged_service.wire import live_feed

__all__ = ["Sampler"]

_MAX_OUTCOMES = 20
_MAX_FEATURE_BYTES = 2**18
_MAX_MARKS = 100


class Sampler:
    """The messages of one tick: the first outcomes, the first commands and drifts.

    Outcomes that are left out are counted.
    """

    def __init__(self) -> None:
        self._taken = self._left_out = 0
        self._plain: list[bytes] = []
        self._full: list[bytes] = []
        self._full_bytes = 0
        self._marks = 0

    def add(self, folded: AppliedEntry, fold: ModelState) -> None:
        """Take note of an entry that was folded; this runs on the way of learning."""
        if folded.results:
            if self._taken < _MAX_OUTCOMES:
                self._add_outcomes(folded, fold)
            else:
                self._left_out += sum(isinstance(r, hinged.Outcome) for r in folded.results)
        if folded.command is None and not folded.detections:
            return
        position, at_ms = str(folded.entry.position), folded.entry.position.order.ms
        if folded.command is not None:
            command = {k: v for k, v in folded.command.items() if k != "model"}
            self._add_mark("command", {**command, "position": position, "at_ms": at_ms}, position)
        for detection in folded.detections:
            self._add_mark("drift", live_feed.LiveDrift(*detection, position, at_ms), position)

    def _add_outcomes(self, folded: AppliedEntry, fold: ModelState) -> None:
        for number, result in enumerate(folded.results):
            if not isinstance(result, hinged.Outcome):
                continue
            if self._taken >= _MAX_OUTCOMES:
                self._left_out += 1
                continue
            event = folded.events[number]
            if event is not None:
                outcome = outcome_of(fold, event, result, folded.entry.position, number)
                self._add_outcome(outcome, dict(event.x))

    def _add_outcome(self, outcome: live_feed.LiveOutcome, x: Any) -> None:
        """Add an outcome; with its features while there is room for them."""
        self._taken += 1
        self._plain.append(message("outcome", outcome, outcome.position))
        full = self._plain[-1]
        if self._full_bytes < _MAX_FEATURE_BYTES:
            full = message("outcome", msgspec.structs.replace(outcome, x=x), outcome.position)
            self._full_bytes += len(full)
        self._full.append(full)

    def _add_mark(self, event: str, data: Any, position: str) -> None:
        """Add a message for all."""
        self._marks += 1
        if self._marks <= _MAX_MARKS:
            encoded = message(event, data, position)
            self._plain.append(encoded)
            self._full.append(encoded)

    def chunks(self) -> tuple[bytes, bytes]:
        """Return the messages without and with features."""
        if self._left_out:
            sample = live_feed.LiveSample(self._taken, self._left_out)
            self._plain.append(message("sample", sample))
            self._full.append(self._plain[-1])
        return b"".join(self._plain), b"".join(self._full)
