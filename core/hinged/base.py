"""The common part of all binary linear learners: score, account, step, add."""

from __future__ import annotations

import abc
import math
import sys
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from river import base

from hinged import frames
from hinged.accounting import Accounting, Outcome
from hinged.errors import InvalidState, shown
from hinged.events import binary_target, checked_features, checked_weight
from hinged.losses import hinge_loss
from hinged.parameters import checked_flag
from hinged.vector import Features, WeightVector

__all__ = ["BinaryLinearClassifier"]

STATE_VERSION = 1
_LARGEST = sys.float_info.max


class BinaryLinearClassifier(base.MiniBatchClassifier):
    """A linear classifier that learns one event at a time.

    A concrete rule is one method, `_step`: how far to move along `t x`, given
    the margin. Everything else is here: validation before any change, the
    score, the accounting, the weight change that happens whole or not at all.

    Parameters
    ----------
    fit_intercept
        Whether an intercept is learned beside the weights, as the weight of a
        constant feature of value 1.

    Attributes
    ----------
    intercept : float
        b in `score = w . x + b`.
    accounting : Accounting
        Events, mistakes, updates, hinge loss and overflows so far.

    Notes
    -----
    Targets t are +1 for true and -1 for false; `margin = t * score`. At score
    0 the negative label is predicted, as River does.

    """

    _update_margin = 0.0
    """The rule is asked for a step when the margin is at most this."""

    def __init__(self, fit_intercept: bool = True) -> None:
        self.fit_intercept = checked_flag("fit_intercept", fit_intercept)
        self.intercept = 0.0
        self.accounting = Accounting()
        self._weights = WeightVector()

    @abc.abstractmethod
    def _step(self, margin: float, x: Mapping[Any, float], w: float) -> float:
        """Return the step tau >= 0; the update is `w += tau t x` and `b += tau t`.

        Parameters
        ----------
        margin
            `t * score`, at most `_update_margin`.
        x
            The event's features, all finite.
        w
            The sample weight, above 0.

        """

    @property
    def weights(self) -> Mapping[Any, float]:
        """A live, read-only view of the weights; reading never creates one."""
        return self._weights.view()

    def learn_one(self, x: Mapping[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn from one labelled event.

        Parameters
        ----------
        x
            Feature names to finite real numbers. An absent feature counts as 0.
        y
            The label: true or false (or 1 or 0).
        w
            Sample weight, finite and at least 0. Weight 0 moves nothing.

        Raises
        ------
        InvalidEvent
            Naming the field; the learner has not changed.

        """
        self._learn(x, y, w)

    def predict_learn_one(self, x: Mapping[Any, Any], y: Any, w: float = 1.0) -> Outcome:
        """Predict, score, then learn: one step of progressive validation.

        Same parameters, effect and errors as `learn_one`.

        Returns
        -------
        What was predicted before learning, and what learning did.

        """
        score, weighted, target, updated = self._learn(x, y, w)
        positive = score > 0.0
        if not weighted:
            return Outcome(positive, score, False, False, 0.0)
        return Outcome(
            positive, score, positive is not (target > 0.0), updated, hinge_loss(target * score)
        )

    def _learn(self, x: Mapping[Any, Any], y: Any, w: float) -> tuple[float, bool, float, bool]:
        target = 1.0 if y is True else -1.0 if y is False else binary_target(y)
        if type(w) is not float or w != 1.0:
            w = checked_weight(w)
        try:
            score = self._weights.dot(x) + self.intercept
        except TypeError:
            x = checked_features(x)
            score = self._weights.dot(x) + self.intercept
        if not -math.inf < score < math.inf:
            x = checked_features(x)
            score = self._saturated_score(x)
        account = self.accounting
        account.events += 1
        if w == 0.0:
            return score, False, target, False
        margin = target * score
        if margin < 1.0:
            loss = account.hinge_loss + (1.0 - margin)
            account.hinge_loss = loss if loss < _LARGEST else _LARGEST
        if (score > 0.0) is not (target > 0.0):
            account.mistakes += 1
        if margin > self._update_margin:
            return score, True, target, False
        return score, True, target, self._update(x, target, margin, w)

    def _update(self, x: Mapping[Any, float], target: float, margin: float, w: float) -> bool:
        step = self._step(margin, x, w) * target
        if step == 0.0:
            return False
        intercept = self.intercept + step if self.fit_intercept else self.intercept
        if not (math.isfinite(intercept) and math.isfinite(step) and self._weights.add(x, step)):
            self.accounting.overflows += 1
            return False
        self.intercept = intercept
        self.accounting.updates += 1
        return True

    def score_one(self, x: Mapping[Any, Any]) -> float:
        """Return the score `w . x + b`: finite, its sign is the label.

        Parameters
        ----------
        x
            Feature names to finite real numbers.

        Raises
        ------
        InvalidEvent
            Naming the feature that is not a finite real number.

        """
        try:
            score = self._weights.dot(x) + self.intercept
        except TypeError:
            score = math.nan
        if -math.inf < score < math.inf:
            return score
        return self._saturated_score(checked_features(x))

    def _saturated_score(self, x: Features) -> float:
        score = self._weights.saturated_dot(x) + self.intercept
        return max(-sys.float_info.max, min(sys.float_info.max, score))

    def predict_one(self, x: Mapping[Any, Any], **kwargs: Any) -> bool:
        """Return the label of `x`: true only if the score is above 0."""
        try:
            score = self._weights.dot(x) + self.intercept
        except TypeError:
            score = math.nan
        if -math.inf < score < math.inf:
            return score > 0.0
        return self.score_one(x) > 0.0

    def predict_proba_one(self, x: Mapping[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """Return `{False: 1 - p, True: p}` with p the logistic function of the score.

        A linear margin is no calibrated probability: p orders events and puts
        0.5 at the boundary, nothing more. It is never NaN.

        """
        return probabilities(self.score_one(x))

    def learn_many(self, X: Any, y: Any, w: Any = 1.0) -> None:
        """Learn the rows of a frame one after the other.

        Equal, bit for bit, to calling `learn_one` on each row in order, with the
        features in column order.

        Parameters
        ----------
        X
            A frame of n rows (pandas, Polars, PyArrow, whatever narwhals takes);
            a null is an absent feature.
        y
            A series of n labels.
        w
            One sample weight for all rows, or a series of n.

        Raises
        ------
        InvalidEvent
            Naming row and field, before any row has been learned.

        """
        for x, label, weight in frames.checked_rows(X, y, w):
            self._learn(x, label, weight)

    def predict_many(self, X: Any) -> Any:
        """Return the labels of the rows of `X` as a series, index kept."""
        return frames.series([self.predict_one(x) for x in frames.rows(X)], like=X)

    def predict_proba_many(self, X: Any) -> Any:
        """Return a frame with the columns `False` and `True`, index kept."""
        probas = [self.predict_proba_one(x) for x in frames.rows(X)]
        return frames.frame({c: [p[c] for p in probas] for c in (False, True)}, like=X)

    def get_state(self) -> dict[str, Any]:
        """Return all that is needed to go on learning exactly where this stands.

        Returns
        -------
        `{"version", "type", "scalars": {name: number}, "vectors": {name:
        WeightVector}}`. Scalars are copies, the vectors are the live ones.

        """
        return {
            "version": STATE_VERSION,
            "type": type(self).__name__,
            "scalars": {name: owner_get(self) for name, owner_get, _ in self._scalars()},
            "vectors": {"weights": self._weights},
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take over a state that `get_state` gave, here or in another process.

        Parameters
        ----------
        state
            As `get_state` returns it. A `WeightVector` is copied; a plain
            dictionary in its place, as read from a store, is taken over.

        Raises
        ------
        InvalidState
            If it is of another version or learner, lacks a part, or holds
            anything but finite numbers, or a negative count. The learner has not
            changed.

        """
        if not isinstance(state, Mapping):
            raise InvalidState(f"must be a mapping, not {type(state).__name__}")
        version, kind = state.get("version"), state.get("type")
        if type(version) is not int or (version, kind) != (STATE_VERSION, type(self).__name__):
            raise InvalidState(
                f"not a version {STATE_VERSION} state of {type(self).__name__}: "
                f"version {version!r}, type {kind!r}"
            )
        kinds = {name: kind for name, _, kind in self._scalars()}
        given = _part(state, "scalars", kinds)
        scalars = {name: _restored(name, kind, given[name]) for name, kind in kinds.items()}
        vectors = {
            name: _restored_vector(name, vector)
            for name, vector in _part(state, "vectors", {"weights"}).items()
        }
        self.intercept = scalars.pop("intercept")
        self.accounting = Accounting(**scalars)
        self._weights = vectors["weights"]

    def _scalars(self) -> Iterator[tuple[str, Any, type]]:
        yield "intercept", lambda self: self.intercept, float
        for name in Accounting.__slots__:
            kind = float if name == "hinge_loss" else int
            yield name, lambda self, name=name: getattr(self.accounting, name), kind


def probabilities(score: float) -> dict[Any, float]:
    """Return `{False: 1 - p, True: p}`, p = 1 / (1 + exp(-score)), without overflow."""
    if score >= 0.0:
        p = 1.0 / (1.0 + math.exp(-score))
        return {False: 1.0 - p, True: p}
    odds = math.exp(score)
    p = odds / (1.0 + odds)
    return {False: 1.0 - p, True: p}


def _part(state: Mapping[str, Any], part: str, names: Collection[str]) -> Mapping[str, Any]:
    given = state.get(part)
    if not isinstance(given, Mapping) or set(given) != set(names):
        found = list(given) if isinstance(given, Mapping) else type(given).__name__
        raise InvalidState(f"the {part} must be {sorted(names)}, not {found}")
    return given


def _restored(name: str, kind: type, value: Any) -> Any:
    """Counters and sums are never negative; the intercept may have either sign."""
    try:
        right = type(value) is int or (kind is float and type(value) is float)
        right = right and math.isfinite(value) and (value >= 0 or name == "intercept")
    except OverflowError:  # an integer beyond every float
        right = False
    if not right:
        least = "" if name == "intercept" else " of at least 0"
        raise InvalidState(f"{name} must be a finite {kind.__name__}{least}, not {shown(value)}")
    return kind(value)


def _restored_vector(name: str, values: Any) -> WeightVector:
    if isinstance(values, WeightVector):
        return WeightVector(dict(values.view()))
    if not isinstance(values, dict):
        raise InvalidState(f"the vector {name} must be a dict, not {type(values).__name__}")
    for key, value in values.items():
        if type(value) is not float or not math.isfinite(value):
            raise InvalidState(f"{name}[{key!r}] must be a finite float, not {shown(value)}")
    return WeightVector(values)
