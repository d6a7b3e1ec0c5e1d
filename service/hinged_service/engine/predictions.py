"""Predictions and checks of many events by one state of a model."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import NamedTuple

import hinged
from hinged_service.engine.long_work import portions
from hinged_service.model.predictor import Prediction
from hinged_service.model.results import Rejection
from hinged_service.model.state import ModelState
from hinged_service.wire.events import Event, Question

__all__ = ["Answering", "Predictions", "checking"]


class Predictions(NamedTuple):
    """Predictions of events by one state of a model.

    Attributes
    ----------
    items
        Predictions of the events without a fault, in order.
    position
        Up to which the model had learned, as text.
    stale_s
        Age of the replica in seconds if it is older than allowed, else `None`.
    faults
        Index and fault of the events that the model cannot take.

    """

    items: list[Prediction]
    position: str
    stale_s: float | None
    faults: Sequence[tuple[int, Rejection]] = ()


class Answering:
    """Predictions that are made one by one, with the `most` largest probabilities each.

    Attributes
    ----------
    items, faults
        As in `Predictions`, so far.

    """

    def __init__(self, state: ModelState, questions: Sequence[Question], most: int) -> None:
        self._predict = state.predict if state.can_reject_features else state.answers.predict
        self._questions = enumerate(questions)
        self._most = most
        self.items: list[Prediction] = []
        self.faults: list[tuple[int, Rejection]] = []

    def step(self) -> bool:
        """Answer the next question; tell whether there was one."""
        for i, question in self._questions:
            try:
                self.items.append(self._predict(question.x, self._most))
            except hinged.InvalidEvent as error:
                self.faults.append((i, Rejection(error.field, error.reason)))
            return True
        return False


def checking(
    state: ModelState, events: Sequence[Event]
) -> Generator[None, None, list[tuple[int, Rejection]]]:
    """Return the result of `ModelState.faults`, with a pause after each portion of the events."""
    found: list[tuple[int, Rejection]] = []
    need = 0.0
    for first, some in portions(events):
        faults, more = state.faults_of_each(some)
        found += [(first + i, fault) for i, fault in faults]
        need += more
        yield
    return state.with_room(events, found, need)
