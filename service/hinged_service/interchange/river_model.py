"""Any model as a classifier of River, which pickles as its exported document."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from river import base

from hinged_service.engine.export import document_of, imported
from hinged_service.model.predictor import Label
from hinged_service.wire.events import Event, MixedEvent

__all__ = ["ExportedModel"]

_ENTRY = "0-1"


class ExportedModel(base.Classifier):
    """A model of the service in this process: it predicts and learns as there.

    Labels are those of the model. A number may be an integer. It keeps no log and knows no ids.

    Parameters
    ----------
    document
        An exported document.
    name
        The model's name.

    """

    def __init__(self, document: bytes, name: str = "exported") -> None:
        self.document = document
        self.name = name
        found = imported(document)
        self._spec, self._state = found.spec, found.state
        self._events = 0

    @property
    def _multiclass(self) -> bool:
        return self._state.multiclass

    def predict_one(self, x: dict[Hashable, Any], **kwargs: object) -> Label | None:
        """Return the label of an event; `None` while no class was seen."""
        return self._state.predict(_numbers(x), 0).y

    def score_one(self, x: dict[Hashable, Any]) -> float:
        """Return the score behind the label."""
        return self._state.predict(_numbers(x), 0).score

    def predict_proba_one(self, x: dict[Hashable, Any], **kwargs: object) -> dict[Any, float]:
        """Return the probability of each label."""
        answers = self._state.answers
        _, _, scores = answers.decide(self._state.made_of(_numbers(x)))
        return {answers.label(y): p for y, p in answers.probabilities(scores).items()}

    def learn_one(self, x: dict[Hashable, Any], y: Label, w: float = 1.0) -> None:
        """Learn an event.

        Raises
        ------
        ValueError
            The model cannot take it; nothing has changed.

        """
        kind = MixedEvent if self._state.accepts_non_numeric else Event
        event = kind(_numbers(x), y, float(w))
        if faults := self._state.faults([event]):
            field, reason = faults[0][1]
            raise ValueError(f"{field} {reason}")
        self._state.learn_all([event], frozenset(), _ENTRY)
        self._events += 1

    def exported(self) -> bytes:
        """Return the document of the model as it is now."""
        if self._events:
            return document_of(self.name, self._spec, self._state)
        return self.document

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.exported(), self.name)


def _numbers(x: Mapping[Any, Any]) -> dict[str, Any]:
    return {name: float(v) if type(v) is int else v for name, v in x.items()}
