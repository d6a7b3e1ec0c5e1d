"""A model as a fold: a learner, its labels and its counters, moved only by log entries.

Nothing here reads a clock, a setting or the environment: the same entries from
the same state give the same state, on every worker.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import hinged
from hinged_service.events import Event
from hinged_service.labels import answers_for, label_text
from hinged_service.spec import ModelSpec

__all__ = ["Fold", "Refused", "Result"]


class Refused(NamedTuple):
    """An event that stands in the log but that the model could not take.

    Parameters
    ----------
    field
        The event's field at fault.
    reason
        What must hold there.

    """

    field: str
    reason: str


Result = hinged.Outcome | Refused | None
"""What an event did; why the model could not take it; `None` if it had counted before."""


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
    answers
        The model's labels.
    rejected
        Events in the log that this model could not take: not an event, a label
        of another model, one class too many.

    """

    def __init__(self, spec: ModelSpec) -> None:
        self.learner: Any = spec.learner.build(spec.max_features)
        self.answers = answers_for(spec, self.learner)
        self.rejected = 0
        self._multiclass = spec.multiclass
        self._vectors: dict[str, hinged.WeightVector] | None = None

    def learn_all(self, events: Iterable[Event | None], skip: frozenset[int]) -> list[Result]:
        """Fold the events of one entry in.

        Parameters
        ----------
        events
            Decoded events; `None` for one that could not be decoded.
        skip
            Indices of those that do not count.

        Returns
        -------
        Per event what it did; why this model cannot take it, which is counted and
        changes nothing else; `None` for one that does not count.

        """
        target, learn = self.answers.target, self.learner.predict_learn_one
        results: list[Result] = []
        for number, event in enumerate(events):
            if number in skip:
                results.append(None)
                continue
            try:
                known = None if event is None else target(event.y)
                if event is None or known is None:
                    results.append(self._refuse(event))
                else:
                    results.append(learn(event.x, known, event.w))
            except hinged.InvalidEvent as error:
                self.rejected += 1
                results.append(Refused(error.field, error.reason))
        return results

    def _refuse(self, event: Event | None) -> Refused:
        self.rejected += 1
        if event is None:
            return Refused("", "is not an event")
        return Refused("y", self.answers.expected())

    def refuses_weight(self, w: float) -> str | None:
        """Return why the learner takes no event of this sample weight, `None` if it does."""
        try:
            self.learner.check_weight(w)
        except hinged.InvalidEvent as error:
            return error.reason
        return None

    def feature_count(self) -> int:
        """Return how many feature names have a weight."""
        weights = [v for name, v in self.vectors().items() if "weights" in name]
        if len(weights) == 1:
            return len(weights[0])
        return len({name for vector in weights for name in vector.view()})

    def shown_weights(self, label: str | None) -> dict[str, Any]:
        """Return copies of the weights that predict, as the service shows them.

        Parameters
        ----------
        label
            The text of a class of a multiclass model, to see that one only.

        """
        learner = self.learner
        if isinstance(learner, hinged.Hedge):
            experts = zip(learner.experts, learner.trust, strict=True)
            return {"experts": [{**_linear(e), "trust": trust} for e, trust in experts]}
        if isinstance(learner, hinged.BinaryLinearClassifier):
            return _linear(learner)
        weights, intercepts = learner.weights, learner.intercepts
        return {
            "classes": {
                label_text(y): {
                    "weights": dict(weights[y]),
                    "intercept": intercepts[y],
                }
                for y in learner.classes
                if label in (None, label_text(y))
            }
        }

    def scalars(self) -> dict[str, Any]:
        """Return all of the state but the vectors, as JSON-like data."""
        learner = self.learner.get_state()
        del learner["vectors"]
        return {"learner": learner, "rejected": self.rejected}

    def vectors(self) -> dict[str, hinged.WeightVector]:
        """Return the live vectors of the learner by name."""
        if self._vectors is not None:
            return self._vectors
        vectors: dict[str, hinged.WeightVector] = self.learner.get_state()["vectors"]
        if not self._multiclass:  # nothing but another state gives a binary learner other vectors
            self._vectors = vectors
        return vectors

    def restore(self, scalars: dict[str, Any], vectors: dict[str, dict[Any, float]]) -> None:
        """Take over a state that `scalars` and `vectors` described.

        Raises
        ------
        hinged.InvalidState
            If it is not the state of such a learner.

        """
        learner, rejected = scalars.get("learner"), scalars.get("rejected")
        if not isinstance(learner, dict) or type(rejected) is not int:
            raise hinged.InvalidState("the stored counters are damaged")
        self.learner.set_state({**learner, "vectors": vectors})
        self._vectors = None
        self.rejected = rejected


def _linear(learner: Any) -> dict[str, Any]:
    return {"weights": dict(learner.weights), "intercept": 0.0 - learner.threshold}
