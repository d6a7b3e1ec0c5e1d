"""The labels of a model and how its answers read: as JSON has them, types kept apart."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

import hinged
from hinged.binary import probabilities
from hinged.hedge import vote_probabilities
from hinged.multiclass import best, softmax
from hinged.vector import saturated
from hinged_service.model.spec import ModelSpec
from hinged_service.river_support.learners import RiverBinary
from hinged_service.wire.faults import MAX_NAME, shown

__all__ = [
    "Answers",
    "BinaryPredictor",
    "Label",
    "MulticlassPredictor",
    "Prediction",
    "answers_for",
    "label_text",
]

Label = bool | int | str
_INT64 = 2**63


class Prediction(msgspec.Struct, gc=False):
    """An answer.

    Parameters
    ----------
    y
        The predicted label; `None` while no class is known.
    score
        The score that decided it.
    proba
        Per label, by its text.

    """

    y: Label | None
    score: float
    proba: dict[str, float]


class BinaryPredictor:
    """The two labels of a binary model.

    Parameters
    ----------
    pair
        Negative and positive label; `None` for true and false or 0 and 1.
    learner
        A binary learner, whose label is decided by the sign of its score.

    Attributes
    ----------
    label
        From a label of the learner to the label as JSON has it.

    """

    def __init__(self, pair: Any, learner: Any) -> None:
        negative, positive = pair if pair is not None else (False, True)
        self._labels: tuple[Label, Label] = (negative, positive)
        self.label: Callable[[bool], Label] = self._labels.__getitem__
        self._texts = label_text(negative), label_text(positive)
        self._targets: dict[Any, bool] = {negative: False, positive: True}
        self._types: tuple[type, ...] = (bool, int) if pair is None else (type(negative),)
        self._learner = learner
        self._at_zero: bool = getattr(learner, "label_at_zero", False)
        votes = not isinstance(learner, hinged.BinaryLinearClassifier)
        self.probabilities: Callable[[Any], dict[Any, float]] = (
            vote_probabilities if votes else probabilities
        )
        """From what `decide` gives to the probability of each label of the learner."""

    def target(self, y: object) -> bool | None:
        """Return the learner's label for `y`; `None` if it is not one of the two."""
        return self._targets.get(y) if type(y) in self._types else None

    def expected(self) -> str:
        """Say which labels there are, for an error message."""
        if self._types == (bool, int):
            return (
                "must be true or false (or 1 or 0); the spec of a model with other labels names "
                'both, the negative one first, as in "labels": [-1, 1]'
            )
        return f"must be {shown(self._labels[0])} or {shown(self._labels[1])}"

    def classes(self) -> list[Label]:
        """Return the labels, the negative one first."""
        return list(self._labels)

    def decide(self, x: dict[str, float]) -> tuple[bool, float, Any]:
        """Return the learner's label, its score, and what the probabilities come from."""
        score: float = self._learner.score_one(x)
        return score > 0.0 or (self._at_zero and score == 0.0), score, score

    def predict(self, x: dict[str, float]) -> Prediction:
        """Return the answer for one event."""
        score: float = self._learner.score_one(x)
        positive = score > 0.0 or (self._at_zero and score == 0.0)
        return self._prediction(positive, score, self.probabilities(score))

    def margin(self, y: bool, score: float, scores: Any) -> float:
        """Return how far what `decide` gave is on the side of the learner's label `y`."""
        return score if y else -score

    def _prediction(self, positive: bool, score: float, proba: dict[Any, float]) -> Prediction:
        negative_text, positive_text = self._texts
        return Prediction(
            self._labels[positive],
            score,
            {negative_text: proba[False], positive_text: proba[True]},
        )


class RiverAnswers(BinaryPredictor):
    """The two labels of a binary River classifier, whose probabilities are River's own.

    Its score, 2 P(true) - 1, would lose the digits of a small one.
    """

    def __init__(self, pair: Any, learner: RiverBinary) -> None:
        super().__init__(pair, learner)
        self.probabilities = dict

    def decide(self, x: dict[str, float]) -> tuple[bool, float, Any]:
        """Return the learner's label, its score, and its probabilities."""
        score, proba = self._learner.answer_one(x)
        return score > 0.0, score, proba

    def predict(self, x: dict[str, float]) -> Prediction:
        """Return the answer for one event."""
        return self._prediction(*self.decide(x))


class MulticlassPredictor:
    """The labels of a multiclass model: of one JSON type, listed or found in the events.

    Parameters
    ----------
    labels
        All labels; `"integers"`; or `None` for any text.
    learner
        A multiclass learner.

    """

    def __init__(self, labels: Any, learner: Any) -> None:
        self._allowed: frozenset[Label] | None = None
        if isinstance(labels, tuple):
            self._allowed = frozenset(labels)
            self._type: type = type(labels[0])
        else:
            self._type = int if labels == "integers" else str
        self._learner = learner
        linear = isinstance(learner, hinged.LinearClassifier)
        self.probabilities: Callable[[dict[Any, float]], dict[Any, float]] = (
            softmax if linear else dict
        )
        """From the scores of the classes to their probabilities."""

    def target(self, y: object) -> Label | None:
        """Return `y` if it is a label of this model, else `None`."""
        if type(y) is not self._type:
            return None
        if self._allowed is not None:
            return y if y in self._allowed else None
        if isinstance(y, str):
            return y if len(y) <= MAX_NAME else None
        return y if isinstance(y, int) and -_INT64 <= y < _INT64 else None

    def expected(self) -> str:
        """Say which labels there are, for an error message."""
        if self._allowed is not None:
            return f"must be one of the {len(self._allowed)} labels of the spec"
        return "must be an integer" if self._type is int else f"must be text of up to {MAX_NAME}"

    def label(self, y_pred: Any) -> Label | None:
        """Return the label as JSON has it for a label of the learner."""
        return y_pred  # type: ignore[no-any-return]

    def classes(self) -> list[Label]:
        """Return the classes seen so far, in that order."""
        return list(self._learner.classes)

    def decide(self, x: dict[str, float]) -> tuple[Any, float, dict[Any, float]]:
        """Return the learner's label, its score, and what the probabilities come from."""
        scores: dict[Any, float] = self._learner.scores_one(x)
        y = best(scores)
        return y, 0.0 if y is None else scores[y], scores

    def margin(self, y: Label, score: float, scores: Mapping[Any, float]) -> float:
        """Return the score of the class `y` minus that of the best other one, 0 without one."""
        others = [value for label, value in scores.items() if label != y]
        return saturated(scores.get(y, 0.0) - max(others)) if others else 0.0

    def predict(self, x: dict[str, float]) -> Prediction:
        """Return the answer for one event."""
        y, score, scores = self.decide(x)
        proba = {label_text(c): p for c, p in self.probabilities(scores).items()}
        return Prediction(y, score, proba)


Answers = BinaryPredictor | MulticlassPredictor


def answers_for(spec: ModelSpec, learner: Any) -> Answers:
    """Return how the model of `spec` answers with `learner`."""
    if spec.multiclass:
        return MulticlassPredictor(spec.labels, learner)
    kind = RiverAnswers if isinstance(learner, RiverBinary) else BinaryPredictor
    return kind(spec.labels, learner)


def label_text(label: Label) -> str:
    """Return a label as text, for the keys of JSON objects."""
    return label if isinstance(label, str) else json.dumps(label)
