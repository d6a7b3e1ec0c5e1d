"""A model as a fold: a learner, its labels and its counters, moved only by log entries.

Nothing here reads a clock, a setting or the environment: the same entries from
the same state give the same state, on every worker.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import hinged
from hinged_service.events import Event, shown
from hinged_service.spec import ModelSpec

__all__ = ["Fold", "Labels"]

Label = bool | int | str


class Labels:
    """The two labels of a model, compared by value and JSON type.

    Parameters
    ----------
    pair
        Negative and positive label; `None` for true and false or 0 and 1.

    Attributes
    ----------
    negative, positive
        The two labels.
    texts
        The same two as text, for the keys of JSON objects.

    """

    def __init__(self, pair: tuple[Label, Label] | None) -> None:
        negative, positive = pair if pair is not None else (False, True)
        self.negative: Label = negative
        self.positive: Label = positive
        self.texts = _text(negative), _text(positive)
        self._targets: dict[Any, bool] = {negative: False, positive: True}
        self._types: tuple[type, ...] = (bool, int) if pair is None else (type(negative),)

    def target(self, y: object) -> bool | None:
        """Return whether `y` is the positive label; `None` if it is neither."""
        return self._targets.get(y) if type(y) in self._types else None

    def take_all(self, events: Iterable[Event]) -> bool:
        """Tell whether every event has one of the labels."""
        return None not in map(self.target, [event.y for event in events])

    def expected(self) -> str:
        """Say which labels there are, for an error message."""
        if self._types == (bool, int):
            return "must be true or false (or 1 or 0)"
        return f"must be {shown(self.negative)} or {shown(self.positive)}"


def _text(label: Label) -> str:
    return label if isinstance(label, str) else json.dumps(label)


class Fold:
    """The state of one model.

    Parameters
    ----------
    spec
        The model's spec.

    Attributes
    ----------
    learner
        The learner; its weights, intercept and accounting are the model's.
    rejected
        Events in the log that this model could not take (not an event, or a
        label of another model).
    ignored_features
        Features left out because the model already knew `max_features` names.

    """

    def __init__(self, spec: ModelSpec) -> None:
        self.learner = spec.learner.build()
        self.labels = Labels(spec.labels)
        self.rejected = 0
        self.ignored_features = 0
        self._max_features = spec.max_features
        self._room = 0  # features that certainly fit; counted anew when it is used up

    def learn(self, event: Event | None) -> hinged.Outcome | None:
        """Fold one event in.

        Parameters
        ----------
        event
            A decoded event; `None` for one that could not be decoded.

        Returns
        -------
        What it did, or `None` if this model cannot take it: then it is counted
        as rejected and nothing else changes.

        """
        target = None if event is None else self.labels.target(event.y)
        if event is None or target is None:
            self.rejected += 1
            return None
        x = event.x
        self._room -= len(x)
        if self._room < 0:
            x = self._within_cap(x)
        try:
            return self.learner.predict_learn_one(x, target, event.w)
        except hinged.HingedError:
            self.rejected += 1
            return None

    def _within_cap(self, x: dict[str, float]) -> dict[str, float]:
        weights = self.learner.weights
        room = self._max_features - len(weights)
        self._room = room - len(x)
        if self._room >= 0:
            return x
        kept: dict[str, float] = {}
        for name, value in x.items():
            if name in weights:
                kept[name] = value
            elif room > 0:
                room -= 1
                kept[name] = value
        self.ignored_features += len(x) - len(kept)
        return kept

    def scalars(self) -> dict[str, Any]:
        """Return all of the state but the vectors, as JSON-like data."""
        state = self.learner.get_state()
        return {
            "learner": {key: state[key] for key in ("version", "type", "scalars")},
            "rejected": self.rejected,
            "ignored_features": self.ignored_features,
        }

    def vectors(self) -> dict[str, hinged.WeightVector]:
        """Return the live vectors of the learner by name."""
        vectors: dict[str, hinged.WeightVector] = self.learner.get_state()["vectors"]
        return vectors

    def restore(self, scalars: dict[str, Any], vectors: dict[str, dict[Any, float]]) -> None:
        """Take over a state that `scalars` and `vectors` described.

        Raises
        ------
        hinged.InvalidState
            If it is not the state of such a learner.

        """
        learner = scalars.get("learner")
        counts = scalars.get("rejected"), scalars.get("ignored_features")
        if not isinstance(learner, dict) or not all(type(n) is int for n in counts):
            raise hinged.InvalidState("the stored counters are damaged")
        self.learner.set_state({**learner, "vectors": vectors})
        self.rejected, self.ignored_features = scalars["rejected"], scalars["ignored_features"]

    def learn_all(
        self, events: Iterable[Event | None], skip: frozenset[int]
    ) -> list[hinged.Outcome | None]:
        """Fold the events of one entry in, but those at the indices in `skip`."""
        learn = self.learn
        if not skip:
            return [learn(event) for event in events]
        return [None if i in skip else learn(event) for i, event in enumerate(events)]
