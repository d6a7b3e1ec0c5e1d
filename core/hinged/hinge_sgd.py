"""Stochastic sub-gradient descent on the hinge loss, with lazy penalties."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any, ClassVar

from hinged import arithmetic
from hinged.binary import BinaryLinearClassifier
from hinged.errors import InvalidParameter
from hinged.events import as_floats
from hinged.kernel import add_adaptively, add_penalised, add_pulled, add_shrunk
from hinged.parameters import (
    LearningRate,
    NonNegativeNumber,
    Rate,
    checked_choice,
    checked_flag,
    is_schedule,
    rate_at,
)
from hinged.penalty import PENALTY_SCALARS, PENALTY_VECTORS, LazyPenalty
from hinged.start import InitialWeights, RandomWeights
from hinged.state import SUM, ScalarType
from hinged.vector import Numbers, WeightVector

__all__ = ["STEPS", "HingeSGD"]

STEPS = ("adagrad", "constant", "sqrt", "pegasos")
_ROUNDED_AWAY = 1e-6
"""The share of the ball's squared radius up to which a norm kept as 0 may come of rounding."""


class _SettledRate(LearningRate):
    """A learning rate whose change first applies the penalties due at the old one."""

    def __set__(self, instance: object, value: Rate) -> None:
        assert isinstance(instance, HingeSGD)  # noqa: S101
        if hasattr(instance, "_penalised"):  # it has begun
            instance.settle()
        if instance.steps != "constant" and is_schedule(value):
            raise InvalidParameter(f'a schedule needs steps="constant", not {instance.steps!r}')
        super().__set__(instance, value)


class HingeSGD(LazyPenalty, BinaryLinearClassifier):
    r"""The linear support vector machine, trained online.

    The event of clock t, with target y and step eta_t, does:

        w *= max(0, 1 - eta_t l2)
        if y (w . x + b) <= 1:  w += eta_t sample_weight y x,  b += eta_t sample_weight y
        w = sign(w) max(0, \|w\| - eta_t l1)

    the margin being that before the event. The intercept is not penalised, but for Pegasos.
    The step eta_t is

        constant:  learning_rate, or a schedule's value
        sqrt:      learning_rate / sqrt(t)
        pegasos:   1 / (l2 t)
        adagrad:   learning_rate / sqrt(G_i) for the feature i, G_i being the sum
                   of (sample_weight x_i)^2 over its updates, the present one included

    Pegasos, unless `project` is false or l1 is above 0, is that of the paper: the
    intercept is the weight of a constant feature, shrunk like the others, and after
    an update all of them are projected onto the ball that holds the solution:

        (w, b) *= min(1, 1 / (sqrt(l2) \|(w, b)\|))

    Without it the first steps, 1 / l2 long, are felt for very long: in passes over the
    same events the margin grows slowly. On one pass over fewer than some 10 / l2 events
    it may predict better without.

    Both penalties reach features that an event lacks. They are applied when a
    weight is next read or moved, with the result they would have had at once;
    a weight pulled to 0 is exactly 0.

    `accounting.updates` counts the events that moved the weights along x. Time
    per event is linear in the features present; memory is one float per feature
    name, and up to three more for AdaGrad and the penalties.

    Parameters
    ----------
    learning_rate
        eta > 0, finite; a schedule of River's with constant steps. Without
        effect on Pegasos.
    steps
        `"adagrad"`, `"constant"`, `"sqrt"` or `"pegasos"`.
    l2
        Strength of the squared penalty, at least 0; above 0 for Pegasos.
    l1
        Strength of the absolute penalty, at least 0.
    project
        Whether Pegasos projects; without effect on other steps, and with l1.
    fit_intercept
        Whether to learn the intercept b.
    max_features
        The most feature names kept, or `None` for no limit.
    label_at_zero
        The label predicted at score 0.
    initial_weights
        Weights to start from: `None` for 0, by feature name, or `RandomWeights`.
    initial_intercept
        The intercept to start from.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from hinged import HingeSGD

    >>> model = preprocessing.StandardScaler() | HingeSGD()
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 89.60%

    References
    ----------
    Shalev-Shwartz, S., Singer, Y. and Srebro, N., 2007. Pegasos: primal estimated sub-gradient
    solver for SVM. ICML 24.
    Duchi, J., Hazan, E. and Singer, Y., 2011. Adaptive subgradient methods for online learning and
    stochastic optimization. Journal of Machine Learning Research, 12.
    Duchi, J. and Singer, Y., 2009. Efficient online and batch learning using forward backward
    splitting. Journal of Machine Learning Research, 10.

    """

    _weights: WeightVector
    # Pegasos, which has no G, keeps as `intercept_squares` the squared norm of (w, b).
    _SCALARS: ClassVar[dict[str, ScalarType]] = {"intercept_squares": SUM, **PENALTY_SCALARS}
    _VECTORS: ClassVar[dict[str, float]] = {
        "weights": -math.inf,
        "squares": 0.0,
        **PENALTY_VECTORS,
    }
    _update_margin = math.inf
    learning_rate = _SettledRate()
    l2 = NonNegativeNumber()
    l1 = NonNegativeNumber()

    def __init__(
        self,
        learning_rate: Rate = 0.3,
        steps: str = "adagrad",
        l2: float = 0.0,
        l1: float = 0.0,
        fit_intercept: bool = True,
        max_features: int | None = None,
        project: bool = True,
        label_at_zero: bool = False,
        initial_weights: InitialWeights = None,
        initial_intercept: float = 0.0,
    ) -> None:
        super().__init__(
            fit_intercept,
            max_features,
            label_at_zero=label_at_zero,
            initial_weights=initial_weights,
            initial_intercept=initial_intercept,
        )
        self.steps = checked_choice("steps", steps, STEPS)
        self.learning_rate = learning_rate
        self.l2 = l2
        self.l1 = l1
        if self.steps == "pegasos" and self._l2 == 0.0:
            raise InvalidParameter("0 < l2 must hold for Pegasos, whose step is 1 / (l2 t)")
        self.intercept_squares = 0.0
        self._squares = WeightVector()
        self._start_penalty()
        self.project = checked_flag("project", project)
        if self._penalised:
            if isinstance(initial_weights, RandomWeights):
                raise InvalidParameter(
                    "random initial_weights need l1=0 and l2=0: penalties reach stored weights only"
                )
            self._mark(self._weights.view())
        self._projects = project and self.steps == "pegasos" and self._l1 == 0.0
        if self._projects:
            self.intercept_squares = self._squared_norm()
        penalty = "shrunk" if self._l1 == 0.0 else "pulled"
        if self.steps == "adagrad":
            penalty = "penalised"
        self._compile(HingeSGD, f"{self.steps} {penalty}" if self._penalised else self.steps)

    @property
    def numbers_per_name(self) -> int:
        """The numbers stored for a name: weight, sum of squares, and marks of the penalties."""
        if self.steps == "adagrad":
            return 3 if self._penalised else 2
        return 1 + (self._l2 > 0.0) + (self._l1 > 0.0)

    def _update(self, x: Numbers, target: float, margin: float, norm: float, w: float) -> bool:
        hit = margin <= 1.0
        if self.steps == "adagrad":
            return hit and self._adagrad(self._room(x), target, w)
        if not self._penalised:
            return hit and super()._update(x, target, margin, norm, w)
        eta = self._eta()
        if not eta < math.inf:  # no step to take, and none to penalise by
            return self._overflow()
        lost, pull = eta * self._l2, eta * self._l1
        shrink = 1.0 - lost if lost < 1.0 else 0.0
        if not hit:
            self._penalise(shrink, pull)
            return False
        x = self._room(x)
        weights_before = self._due(x)
        self._penalise(shrink, pull)
        step = eta * w * target
        intercept = self.intercept + step * self._constant
        squares = self._squares_after(x, weights_before, shrink, step) if self._projects else 0.0
        if not (math.isfinite(intercept + squares) and self._weights.fits(x, step, norm)):
            return self._overflow()
        if self._l1 == 0.0:
            vectors, mark = (self._weights, self._shrink_marks), self.log_shrink
            add_shrunk(vectors, x, weights_before, shrink, step, mark)
        else:
            add_pulled(self._weights, x, weights_before, shrink, step, pull)
            self._mark(x)
        self.intercept = intercept
        if self._projects:
            self._project(squares)
        self.accounting.updates += 1
        return True

    def _squares_after(self, x: Numbers, before: list[float], shrink: float, step: float) -> float:
        """Return the squared norm of (w, b) after a step, given the weights before the event."""
        move = step * self._constant
        squares = self.intercept_squares + move * (2.0 * self.intercept + move)
        for value, weight in zip(x.values(), before, strict=True):
            move = step * float(value)
            squares += move * (2.0 * shrink * weight + move)
        return squares if squares > 0.0 else 0.0

    def _project(self, squares: float) -> None:
        """Scale (w, b), of that squared norm, into the ball of radius 1 / sqrt(l2)."""
        self.intercept_squares = squares
        if squares * self._l2 > 1.0:
            self._penalise(1.0 / math.sqrt(squares) / math.sqrt(self._l2), 0.0)
            self.intercept_squares = 1.0 / self._l2

    def set_state(self, saved: Mapping[str, Any]) -> None:
        """Take over a saved state, or raise `InvalidState` and change nothing."""
        super().set_state(saved)
        if self._projects and self.intercept_squares == 0.0:
            squares = self._squared_norm()
            if squares * self._l2 > _ROUNDED_AWAY:  # a state of a version that did not keep it
                self.intercept_squares = squares

    def _squared_norm(self) -> float:
        """Return the squared norm of (w, b), summed anew."""
        norm = arithmetic.norm([*self.weights.values(), self.intercept])
        return min(norm * norm, sys.float_info.max)

    def _adagrad(self, x: Numbers, target: float, w: float) -> bool:
        rate = rate_at(self._learning_rate, self.clock)
        square = self.intercept_squares + w * w
        step = rate / math.sqrt(square) * w * target if square > 0.0 else 0.0
        intercept = self.intercept + step * self._constant
        if not (math.isfinite(intercept) and math.isfinite(square)):
            return self._overflow()
        if self._penalised:
            moved = self._penalised_adagrad(as_floats(x), rate, target, w)
        else:
            moved = add_adaptively(self._weights, self._squares, x, rate, target, w)
        if not moved:
            return self._overflow()
        self.intercept, self.intercept_squares = intercept, square
        self.accounting.updates += 1
        return True

    def _penalised_adagrad(self, x: Numbers, rate: float, target: float, w: float) -> bool:
        vectors, before = (self._weights, self._squares), self._due(x)
        if not add_penalised(vectors, x, before, rate, target, w, self._l1, self._l2):
            return False
        self._mark(x)
        return True

    def _eta(self) -> float:
        if self.steps == "pegasos":
            return 1.0 / (self._l2 * self.clock)
        rate = self._learning_rate
        eta = rate if type(rate) is float else rate_at(rate, self.clock)
        return eta / math.sqrt(self.clock) if self.steps == "sqrt" else eta

    def _step(self, margin: float, norm2: float, w: float) -> float:
        return self._eta() * w
