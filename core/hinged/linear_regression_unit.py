"""The linear unit for real targets: least squares, one event at a time."""

from __future__ import annotations

import math
import sys
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from river import base

from hinged import frames, state
from hinged.base import INTERCEPT
from hinged.errors import InvalidParameter
from hinged.events import checked_features, checked_weight, real_target
from hinged.kernel import norm_of
from hinged.parameters import (
    LearningRate,
    Parameter,
    Rate,
    checked_cap,
    checked_flag,
    checked_real,
    rate_at,
)
from hinged.start import InitialWeights, RandomWeights, StartedVector, started
from hinged.state import COUNT, SIGNED, SUM, ScalarType
from hinged.vector import Event, Features, Numbers, room, saturated, wide_dot

__all__ = ["LinearRegressionUnit", "RegressionAccounting", "RegressionOutcome"]

MAX = sys.float_info.max


class RegressionOutcome(NamedTuple):
    """Outcome of one event: predicted first, learned after.

    Parameters
    ----------
    y_pred
        The output before learning; always finite.
    error
        `y - y_pred`, saturated at the largest float.
    updated
        Whether the weights moved.

    """

    y_pred: float
    error: float
    updated: bool


@dataclass(slots=True)
class RegressionAccounting:
    """Running totals of a regressor, all taken before each event is learned.

    Parameters
    ----------
    events
        Events seen, those of weight 0 included.
    updates
        Weight changes.
    squared_loss
        Sum of (y - y_pred)^2 / 2 over the events of weight above 0; it saturates at the
        largest float.
    absolute_loss
        Sum of |y - y_pred|, likewise.
    overflows
        Updates left out because a weight would have become infinite.
    ignored
        Features of updates left out because the learner was full.

    """

    events: int = 0
    updates: int = 0
    squared_loss: float = 0.0
    absolute_loss: float = 0.0
    overflows: int = 0
    ignored: int = 0


_SCALARS: dict[str, ScalarType] = {"intercept": SIGNED, "clock": COUNT}
_ACCOUNT: dict[str, ScalarType] = {
    name: SUM if name.endswith("loss") else COUNT for name in RegressionAccounting.__slots__
}


class LinearRegressionUnit(base.MiniBatchRegressor):
    r"""ADALINE's linear unit with real targets, learning by the delta rule.

    On every event, with target y and output o = w . x + b:

        w += step (y - o) x,  b += step (y - o)

        step = min(learning_rate sample_weight, 1 / (\|x\|^2 + 1))

    The cap is the step that meets the target exactly (with an intercept), so no event,
    however long, can make the weights diverge. `capped=False` is the textbook rule,
    `step = learning_rate sample_weight`. The errors' mean squares over the events so far
    are `2 accounting.squared_loss / clock`.

    Time per event is linear in the features present; memory is one float per
    feature name ever updated.

    Parameters
    ----------
    learning_rate
        eta > 0, finite, or one of River's schedulers.
    capped
        Whether the step is capped.
    fit_intercept
        Whether to learn the intercept b.
    max_features
        The most feature names kept, or `None` for no limit.
    initial_weights
        Weights to start from: `None` for 0, by feature name, or `RandomWeights`.
    initial_intercept
        The intercept to start from.

    Attributes
    ----------
    intercept : float
        b of the output.
    accounting : RegressionAccounting
        Events, updates and losses so far.
    clock : int
        Events of weight above 0 so far.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from hinged import LinearRegressionUnit

    >>> model = preprocessing.StandardScaler() | LinearRegressionUnit()
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    MAE: 1.08208

    References
    ----------
    Widrow, B. and Hoff, M. E., 1960. Adaptive switching circuits. IRE WESCON Convention Record, 4.

    """

    learning_rate = LearningRate()
    _learning_rate: Rate

    def __init__(
        self,
        learning_rate: Rate = 0.03,
        capped: bool = True,
        fit_intercept: bool = True,
        max_features: int | None = None,
        initial_weights: InitialWeights = None,
        initial_intercept: float = 0.0,
    ) -> None:
        self.learning_rate = learning_rate
        self.capped = checked_flag("capped", capped)
        self.fit_intercept = checked_flag("fit_intercept", fit_intercept)
        self.max_features = checked_cap("max_features", max_features)
        self.initial_weights = initial_weights
        self.initial_intercept = checked_real("initial_intercept", initial_intercept)
        if self.initial_intercept != 0.0 and not self.fit_intercept:
            raise InvalidParameter("initial_intercept needs fit_intercept=True")
        self._constant = 1.0 if self.fit_intercept else 0.0
        self.intercept = self.initial_intercept
        self._weights = started(initial_weights, self.max_features)
        self.accounting = RegressionAccounting()
        self.clock = 0

    @property
    def _mutable_attributes(self) -> set[str]:
        found = vars(type(self)).items()
        return {name for name, value in found if isinstance(value, Parameter) and value.mutable}

    @property
    def weights(self) -> Numbers:
        """A live, read-only view of the weights; reading never creates one."""
        return self._weights.view()

    def learn_one(self, x: Event, y: float, w: float = 1.0) -> None:
        """Learn from one event with its target.

        Parameters
        ----------
        x
            Feature names to finite real numbers. An absent feature counts as 0, one of NaN
            or `None` as absent.
        y
            The target, a finite real number.
        w
            Sample weight, finite and at least 0. Weight 0 moves nothing.

        Raises
        ------
        InvalidEvent
            Naming the field; the learner has not changed.

        """
        self.predict_learn_one(x, y, w)

    def predict_learn_one(self, x: Event, y: float, w: float = 1.0) -> RegressionOutcome:
        """Predict, then learn: one step of progressive validation."""
        target, w = real_target(y), checked_weight(w)
        numbers, output = self._output(x)
        y_pred = saturated(output)
        error = saturated(target - y_pred)
        account = self.accounting
        account.events += 1
        if w == 0.0:
            return RegressionOutcome(y_pred, error, False)
        self.clock += 1
        account.absolute_loss = min(account.absolute_loss + abs(error), MAX)
        account.squared_loss = min(account.squared_loss + error * error / 2.0, MAX)
        return RegressionOutcome(y_pred, error, self._update(numbers, target - output, w))

    def _update(self, x: Numbers, error: float, w: float) -> bool:
        account = self.accounting
        kept = room(x, self._weights, len(self._weights), self.max_features)
        account.ignored += len(x) - len(kept)
        norm = norm_of(kept)
        step = rate_at(self._learning_rate, self.clock) * w
        if self.capped:
            step = min(step, 1.0 / (norm * norm + 1.0))
        step *= error
        if step == 0.0:
            return False
        intercept = self.intercept + step * self._constant
        if not (math.isfinite(intercept) and self._weights.move(kept, step, norm)):
            account.overflows += 1
            return False
        self.intercept = intercept
        account.updates += 1
        return True

    def _output(self, x: Event) -> tuple[Numbers, float]:
        """Return the event, cleaned if need be, and the output, infinite if beyond the floats."""
        try:
            output = self._weights.dot(x) + self.intercept
            if math.isfinite(output):
                return x, output  # type: ignore[return-value] # only numbers sum to this
        except TypeError:
            pass
        clean = checked_features(x)
        output = self._weights.dot(clean) + self.intercept
        if not math.isfinite(output):
            output = wide_dot(self._weights.get, clean) + self.intercept
        return clean, output

    def predict_one(self, x: Event, **kwargs: object) -> float:
        """Return the output `w . x + b`, saturated at the largest float."""
        return saturated(self._output(x)[1])

    def learn_many(self, X: frames.Frame, y: frames.Series, w: float | frames.Series = 1.0) -> None:
        """Learn the rows of a frame one after the other, as `learn_one` would.

        Parameters
        ----------
        X
            A frame of n rows (pandas, Polars, PyArrow); a null or NaN is an absent feature.
        y
            A series of n targets.
        w
            One sample weight for all rows, or a series of n.

        Raises
        ------
        InvalidEvent
            Naming row and field, before any row has been learned.

        """
        for x, target, weight in frames.checked_rows(X, y, w, _check_targets, checked_weight):
            self.learn_one(x, target, weight)

    def predict_many(self, X: frames.Frame) -> frames.Series:
        """Return the outputs of the rows of `X` as a series, index kept."""
        return frames.numbers([self.predict_one(x) for x in frames.rows(X)], X)

    def explain_one(self, x: Event) -> Features:
        """Return each feature's contribution to the output, the intercept under `INTERCEPT`."""
        parts: dict[Hashable, float] = {
            name: value * self._weights.get(name) for name, value in checked_features(x).items()
        }
        return {**parts, INTERCEPT: self.intercept}

    def get_state(self) -> dict[str, Any]:
        """Return all that is needed to go on learning, as `LinearClassifier.get_state` says."""
        account = {name: getattr(self.accounting, name) for name in _ACCOUNT}
        return {
            "version": state.STATE_VERSION,
            "type": type(self).__name__,
            "scalars": {name: getattr(self, name) for name in _SCALARS} | account,
            "vectors": {"weights": self._weights},
        }

    def set_state(self, saved: Mapping[str, Any]) -> None:
        """Take over a saved state, or raise `InvalidState` and change nothing."""
        saved = state.checked_header(saved, type(self).__name__)
        kinds = {**_SCALARS, **_ACCOUNT}
        given = state.part(saved, "scalars", kinds)
        scalars = {name: state.scalar(name, kind, given[name]) for name, kind in kinds.items()}
        weights = state.vector("weights", state.part(saved, "vectors", ("weights",))["weights"])
        if isinstance(self.initial_weights, RandomWeights):
            stored = dict(weights.view())
            weights = StartedVector(self.initial_weights, self.max_features, stored)
        account = RegressionAccounting()
        for name, value in scalars.items():
            setattr(account if name in _ACCOUNT else self, name, value)
        self._weights, self.accounting = weights, account


def _check_targets(targets: list[Any]) -> None:
    frames.each_row(targets, real_target)
