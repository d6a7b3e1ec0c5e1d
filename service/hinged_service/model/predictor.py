"""Predictors: the labels of a model and its answers, as JSON has them, types kept apart.

The file is long: one class for each kind of labels, alike in all they offer.
"""

from __future__ import annotations

import functools
import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

import hinged
from hinged.binary import probabilities
from hinged.multiclass import MulticlassClassifier, best, softmax
from hinged.temperature import Temperature
from hinged.vector import saturated
from hinged_service.model.spec import ModelSpec
from hinged_service.river_support.learners import (
    Features,
    Label,
    Learner,
    MulticlassLearner,
    RiverBinary,
    RiverMulticlass,
)
from hinged_service.wire.faults import MAX_NAME, abbreviated
from hinged_service.wire.proba import USUAL

__all__ = [
    "BinaryPredictor",
    "Label",
    "MulticlassPredictor",
    "Prediction",
    "Predictor",
    "label_text",
    "predictor_for",
]

_INT64 = 2**63
_LEAST = 1e-300
"""The probability that 0 counts as, where its logarithm is scaled."""
_SHARE_BYTES = 26
"""Bytes of a probability in JSON at most, with the signs around it."""
Scores = TypeVar("Scores")


class Prediction(msgspec.Struct, gc=False):
    """An answer.

    Parameters
    ----------
    y
        The predicted label; `None` while no class was seen.
    score
        The score that decided it.
    proba
        Per label, by its text; if some are left out, the likeliest first.

    """

    y: Label | None
    score: float
    proba: dict[str, float]


class Predictor(Protocol[Scores]):
    """A predictor of a model: it knows the labels, and asks the learner.

    Attributes
    ----------
    label
        From a label of the learner to the label as JSON has it.
    probabilities
        From the scores that `decide` gives to the probability of each label of the learner.

    """

    @property
    def label(self) -> Callable[[Any], Label | None]: ...  # noqa: D102 - an attribute

    @property
    def probabilities(self) -> Callable[[Any], dict[Any, float]]: ...  # noqa: D102

    def target(self, y: object) -> Label | None:
        """Return the learner's label for `y`; `None` if it is none of this model."""

    def targets(self, ys: Sequence[object]) -> Sequence[Label | None]:
        """Return what `target` returns for each of several."""

    def expected(self) -> str:
        """Return the possible labels, as text for an error message."""

    def classes(self) -> list[Label]:
        """Return the labels seen so far, in a fixed order."""

    def admit(self, y: Label) -> None:
        """Raise `InvalidEvent` for a label that the learner has no room for."""

    def decide(self, x: Features) -> tuple[Label | None, float, Scores]:
        """Return the learner's label, its score, and the scores of all labels."""

    def margin(self, y: Label, score: float, scores: Scores) -> float:
        """Return the margin of an event of the learner's label `y`."""

    def calibrate(self, y: Label, scores: Scores, w: float) -> None:
        """Let the temperature, if there is one, learn from the learner's label `y` of an event."""

    def predict(self, x: Features, most: int = USUAL) -> Prediction:
        """Return the answer for one event, with the `most` largest probabilities."""

    def answer_bytes(self, most: int) -> int:
        """Return how many bytes of JSON label and probabilities of an answer may have."""


@functools.lru_cache(maxsize=1_000, typed=True)
def _of_pair(negative: Label, positive: Label, default: bool) -> _OfPair:
    """Return the parts of the predictors of two labels; `default` ones may also be 0 and 1."""
    labels = negative, positive
    return _OfPair(
        labels,
        (label_text(negative), label_text(positive)),
        {negative: False, positive: True},
        (bool, int) if default else (type(negative),),
        labels.__getitem__,
    )


class _OfPair(NamedTuple):
    """Parts of a predictor that follow from the negative and the positive label."""

    labels: tuple[Label, Label]
    texts: tuple[str, str]
    targets: Mapping[Any, bool]
    types: tuple[type, ...]
    label: Callable[[bool], Label]


class BinaryPredictor:
    """The two labels of a binary model.

    Parameters
    ----------
    pair
        Negative and positive label; `None` for true and false or 0 and 1.
    learner
        A binary learner, whose label is decided by the sign of its score.
    temperature
        What calibrates the probabilities; `None` to leave them as they are.

    """

    def __init__(
        self,
        pair: tuple[Label, Label] | None,
        learner: Learner,
        temperature: Temperature | None = None,
    ) -> None:
        found = _of_pair(*((False, True, True) if pair is None else (*pair, False)))
        self._labels, self._texts, self._targets, self._types, self.label = found
        self._learner = learner
        self._at_zero: bool = getattr(learner, "label_at_zero", False)
        self._temperature = temperature
        self.probabilities: Callable[[Any], dict[Any, float]] = (
            probabilities if temperature is None else self._calibrated
        )

    def _calibrated(self, scores: object) -> dict[Any, float]:
        assert self._temperature is not None  # noqa: S101
        return probabilities(self._temperature.log_odds(self._log_odds(scores)))

    def _log_odds(self, scores: object) -> float:
        """Return what a temperature scales, of what `decide` gave."""
        assert isinstance(scores, float)  # noqa: S101
        return scores

    def calibrate(self, y: Label, scores: object, w: float) -> None:
        """Let the temperature, if there is one, learn from the learner's label `y` of an event."""
        temperature = self._temperature
        if temperature is not None and w > 0.0:
            temperature.learn(temperature.log_odds(self._log_odds(scores)), y is True, w)

    def target(self, y: object) -> bool | None:
        """Return the learner's label for `y`; `None` if it is not one of the two."""
        return self._targets.get(y) if type(y) in self._types else None

    def targets(self, ys: Sequence[object]) -> Sequence[bool | None]:
        """Return what `target` returns for each of several."""
        if set(map(type, ys)).issubset(self._types):
            return list(map(self._targets.get, ys))
        return list(map(self.target, ys))

    def expected(self) -> str:
        """Return the possible labels, as text for an error message."""
        if self._types == (bool, int):
            return (
                "must be true or false (or 1 or 0); the spec of a model with other labels names "
                'both, the negative one first, as in "labels": [-1, 1]'
            )
        return f"must be {abbreviated(self._labels[0])} or {abbreviated(self._labels[1])}"

    def classes(self) -> list[Label]:
        """Return the labels, the negative one first."""
        return list(self._labels)

    def admit(self, y: Label) -> None:
        """Do nothing: both labels are fixed."""

    def decide(self, x: Features) -> tuple[bool, float, object]:
        """Return the learner's label, its score, and what the probabilities come from."""
        score = self._learner.score_one(x)
        return score > 0.0 or (self._at_zero and score == 0.0), score, score

    def margin(self, y: Label, score: float, scores: object) -> float:
        """Return how far what `decide` gave is on the side of the learner's label `y`."""
        return score if y else -score

    def predict(self, x: Features, most: int = USUAL) -> Prediction:
        """Return the answer for one event, with the `most` largest probabilities."""
        positive, score, scores = self.decide(x)
        if most == 0:
            return Prediction(self._labels[positive], score, {})
        proba = self.probabilities(scores)
        negative_text, positive_text = self._texts
        if most == 1:
            likeliest = {self._texts[positive]: proba[positive]}
            return Prediction(self._labels[positive], score, likeliest)
        texts = {negative_text: proba[False], positive_text: proba[True]}
        return Prediction(self._labels[positive], score, texts)

    def answer_bytes(self, most: int) -> int:
        """Return how many bytes of JSON label and probabilities of an answer may have."""
        return _answer_bytes(self._texts, most)


class RiverPredictor(BinaryPredictor):
    """The two labels of a binary River classifier, whose probabilities are River's own.

    Its score, 2 P(true) - 1, would lose the digits of a small one.
    """

    def __init__(
        self,
        pair: tuple[Label, Label] | None,
        learner: RiverBinary,
        temperature: Temperature | None = None,
    ) -> None:
        super().__init__(pair, learner, temperature)
        self._river = learner
        if temperature is None:
            self.probabilities = dict

    def _log_odds(self, scores: object) -> float:
        assert isinstance(scores, dict)  # noqa: S101
        return _log(scores[True]) - _log(scores[False])

    def decide(self, x: Features) -> tuple[bool, float, object]:
        """Return the learner's label, its score, and its probabilities."""
        score, proba = self._river.answer_one(x)
        return score > 0.0, score, proba


class MulticlassPredictor:
    """The labels of a multiclass model: of one JSON type, listed or found in the events.

    Parameters
    ----------
    labels
        All labels; `"integers"`; or `None` for any text, and for `hinged.Auto` for labels of
        the type of the first one.
    learner
        A multiclass learner.
    cap
        The most classes that it learns.
    temperature
        What calibrates the probabilities; `None` to leave them as they are.

    """

    def __init__(
        self,
        labels: tuple[Label, ...] | str | None,
        learner: MulticlassLearner,
        cap: int,
        temperature: Temperature | None = None,
    ) -> None:
        self._allowed: frozenset[Label] | None = None
        if isinstance(labels, tuple):
            self._allowed = frozenset(labels)
            self._type: type | None = type(labels[0])
        elif labels == "integers":
            self._type = int
        else:
            self._type = None if isinstance(learner, hinged.Auto) else str
        self._learner = learner
        self._cap = cap
        self._linear = isinstance(learner, hinged.LinearClassifier)
        self._temperature = temperature
        self.probabilities: Callable[[dict[Any, float]], dict[Any, float]] = (
            self._calibrated if temperature is not None else softmax if self._linear else dict
        )

    def _calibrated(self, scores: dict[Any, float]) -> dict[Any, float]:
        return softmax(self._scaled(scores))

    def _scaled(self, scores: dict[Any, float]) -> dict[Any, float]:
        """Return what softmax makes probabilities of."""
        if self._temperature is None:
            return scores
        logits = scores if self._linear else {y: _log(p) for y, p in scores.items()}
        return self._temperature.log_shares(logits)

    def calibrate(self, y: Label, scores: dict[Any, float], w: float) -> None:
        """Let the temperature, if there is one, learn from the label of an event."""
        if self._temperature is not None and w > 0.0:
            self._temperature.learn_class(self._scaled(scores), y, w)

    def target(self, y: object) -> Label | None:
        """Return `y` if it is a label of this model, else `None`."""
        if type(y) is not self._type and not (self._type is None and self._fits(y)):
            return None
        if self._allowed is not None:
            return y if y in self._allowed else None
        if isinstance(y, str):
            return y if len(y) <= MAX_NAME else None
        return y if isinstance(y, int) and -_INT64 <= y < _INT64 else None

    def targets(self, ys: Sequence[object]) -> Sequence[Label | None]:
        """Return what `target` returns for each of several."""
        return list(map(self.target, ys))

    def _fits(self, y: object) -> bool:
        """Return whether `y` is of the type of the labels so far; any is if there are none."""
        classes = self._learner.classes
        return type(y) is type(classes[0]) if classes else isinstance(y, (str, int))

    def expected(self) -> str:
        """Return the possible labels, as text for an error message."""
        if self._allowed is not None:
            return f"must be one of the {len(self._allowed)} labels of the spec"
        if self._type is None:
            return (
                f"must be text of up to {MAX_NAME} characters, an integer of 64 bits or a boolean, "
                "of the type of the labels before"
            )
        if self._type is int:
            return "must be an integer of 64 bits"
        return f"must be text of up to {MAX_NAME} characters"

    def label(self, y_pred: Label | None) -> Label | None:
        """Return the label as JSON has it for a label of the learner."""
        return y_pred

    def classes(self) -> list[Label]:
        """Return the classes seen so far, in that order."""
        return self._learner.classes

    def admit(self, y: Label) -> None:
        """Raise `InvalidEvent` for one class too many."""
        classes = self._learner.classes
        if len(classes) >= self._cap and y not in classes:
            raise hinged.InvalidEvent("y", f"would be class {self._cap + 1} of at most {self._cap}")

    def decide(self, x: Features) -> tuple[Label | None, float, dict[Any, float]]:
        """Return the learner's label, its score, and the scores of the classes."""
        scores = self._learner.scores_one(x)
        y: Label | None = best(scores)
        return y, 0.0 if y is None else scores[y], scores

    def margin(self, y: Label, score: float, scores: dict[Any, float]) -> float:
        """Return the score of the class `y` minus that of the best other one, 0 without one."""
        others = [value for label, value in scores.items() if label != y]
        return saturated(scores.get(y, 0.0) - max(others)) if others else 0.0

    def predict(self, x: Features, most: int = USUAL) -> Prediction:
        """Return the answer for one event, with the `most` largest probabilities."""
        y, score, scores = self.decide(x)
        if most == 0:
            return Prediction(y, score, {})
        if len(scores) <= most:
            shares = self.probabilities(scores)
        else:
            likeliest = heapq.nlargest(most, scores, key=scores.__getitem__)
            if self._linear or self._temperature is not None:
                shares = softmax(self._scaled(scores), likeliest)
            else:
                shares = {c: scores[c] for c in likeliest}
        return Prediction(y, score, {label_text(c): p for c, p in shares.items()})

    def answer_bytes(self, most: int) -> int:
        """Return how many bytes of JSON label and probabilities of an answer may have."""
        return _answer_bytes([label_text(y) for y in self._learner.classes], most)


def predictor_for(
    spec: ModelSpec, learner: Learner, temperature: Temperature | None
) -> Predictor[Any]:
    """Return the predictor of the model of `spec` with `learner`."""
    if isinstance(learner, (MulticlassClassifier, RiverMulticlass)) or (
        isinstance(learner, hinged.Auto) and spec.multiclass
    ):
        return MulticlassPredictor(spec.labels, learner, spec.max_classes or 0, temperature)
    if isinstance(learner, RiverBinary):
        return RiverPredictor(spec.pair, learner, temperature)
    return BinaryPredictor(spec.pair, learner, temperature)


def _log(p: float) -> float:
    return math.log(max(p, _LEAST))


def _answer_bytes(texts: Sequence[str], most: int) -> int:
    """Return the most bytes of the JSON of one of the labels, and of `most` of them as keys."""
    sizes = [len(msgspec.json.encode(text)) for text in texts]
    keys = sizes if most >= len(sizes) else heapq.nlargest(most, sizes)
    return max(sizes, default=0) + sum(keys) + _SHARE_BYTES * len(keys)


def label_text(label: Label) -> str:
    """Return a label as text, for the keys of JSON objects."""
    return label if isinstance(label, str) else msgspec.json.encode(label).decode()
