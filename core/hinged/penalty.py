"""Penalties on every weight after every event, applied only when a weight is read."""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING

from hinged.accounting import Accounting
from hinged.errors import InvalidState, shown
from hinged.kernel import adaptive_dot, pulled_dot, set_mark, shrunk_dot
from hinged.kernel.pure import penalised, pulled_since
from hinged.parameters import Rate, rate_at
from hinged.state import SIGNED, SUM, ScalarType
from hinged.vector import Event, Numbers, WeightVector

__all__ = ["PENALTY_SCALARS", "PENALTY_VECTORS", "LazyPenalty"]

PENALTY_SCALARS: dict[str, ScalarType] = {"log_shrink": SIGNED, "pull": SUM}
PENALTY_VECTORS: dict[str, float] = {"shrink_marks": -math.inf, "pull_marks": 0.0}


class LazyPenalty:
    r"""The part of a learner that shrinks and pulls its weights lazily.

    After event t a weight of size a becomes `max(0, f_t a - c_t)`, f_t being the
    factor of the squared and c_t the pull of the absolute penalty. Since 0 stays
    0, events s + 1 to t together are `max(0, F a - C)` with F the product of the
    factors and C the pulls, each times the factors after it. Two running numbers
    give both for any s:

        L_t = L_{t-1} + log f_t,      F = exp(L_t - L_s)
        D_t = f_t D_{t-1} + c_t,      C = D_t - F D_s

    so a weight remembers L and D of the event that last moved it. A factor of 0
    drops every weight and restarts L; nothing is ever divided by a product.

    With AdaGrad every weight has a step of its own, constant between its updates:
    it remembers the clock, F = f^k and C = c (1 - f^k) / (1 - f) for k events.
    """

    if TYPE_CHECKING:
        steps: str
        _learning_rate: Rate
        _l1: float
        _l2: float
        clock: int
        intercept: float
        accounting: Accounting
        _weights: WeightVector
        _squares: WeightVector
        _projects: bool
        intercept_squares: float

    def _start_penalty(self) -> None:
        self._penalised = self._l1 > 0.0 or self._l2 > 0.0
        self._only_shrinks = self._l1 == 0.0 and self.steps != "adagrad"
        self.log_shrink = 0.0
        self.pull = 0.0
        self._shrink_marks = WeightVector()
        self._pull_marks = WeightVector()
        self._ready: list[float] | None = None
        """The event's weights, between its score and its update."""

    @property
    def weights(self) -> Numbers:
        """The weights, penalties included: a live view, or computed where there are some."""
        stored = self._weights.view()
        return dict(zip(stored, self._current(stored), strict=True)) if self._penalised else stored

    def _check_state(
        self, scalars: Mapping[str, float], vectors: Mapping[str, WeightVector]
    ) -> None:
        """Refuse weights without a mark, and marks of later events."""
        if self._only_shrinks and self._penalised:
            weights, marks = vectors["weights"].view(), vectors["shrink_marks"].view()
            if not weights.keys() <= marks.keys():
                unmarked = next(name for name in weights if name not in marks)
                raise InvalidState(f"shrink_marks has no {shown(unmarked)}")
            if min(marks.values(), default=math.inf) < scalars["log_shrink"]:
                raise InvalidState("shrink_marks must be at least log_shrink")

    def _penalise(self, shrink: float, pull: float) -> None:
        """Count one event's factor and pull against every weight."""
        if shrink > 0.0:
            self.log_shrink += math.log(shrink)
            if pull > 0.0 or self.pull > 0.0:
                self.pull = min(shrink * self.pull + pull, sys.float_info.max)
        else:
            self.log_shrink = 0.0
            self.pull = min(pull, sys.float_info.max)
            for vector in (self._weights, self._shrink_marks, self._pull_marks):
                vector.clear()
        if self._projects:  # Pegasos as in its paper: the intercept is a weight like the others
            self.intercept *= shrink
            self.intercept_squares *= shrink * shrink

    def _mark(self, names: Iterable[Hashable]) -> None:
        """Note that these weights have paid up to now."""
        if self.steps == "adagrad":
            set_mark(self._pull_marks, names, float(self.clock))
            return
        if self._l2 > 0.0:
            set_mark(self._shrink_marks, names, self.log_shrink)
        if self._l1 > 0.0:
            set_mark(self._pull_marks, names, self.pull)

    def _raw_weight(self, name: Hashable) -> float:
        """Return a weight after all events so far."""
        return self._current((name,))[0]

    def _current(self, names: Collection[Hashable], clock: int | None = None) -> list[float]:
        """Return weights after all events so far; with AdaGrad, after those up to `clock`."""
        weight = self._weights.lookup
        if not self._penalised:
            return [weight(name, 0.0) for name in names]
        if self.steps == "adagrad":
            clock = self.clock if clock is None else clock
            square, mark = self._squares.lookup, self._pull_marks.lookup
            rates = rate_at(self._learning_rate, clock), self._l1, self._l2
            return [
                penalised(weight(n, 0.0), square(n, 0.0), clock - mark(n, 0.0), *rates)
                for n in names
            ]
        shrunk, paid = self._shrink_marks.lookup, self._pull_marks.lookup
        now = self.log_shrink
        if self._l1 == 0.0:
            dues = [now - shrunk(name, now) for name in names]
            pairs = zip(names, dues, strict=True)
            return [weight(n, 0.0) * (math.exp(due) if due < 0.0 else 1.0) for n, due in pairs]
        dues = [now - shrunk(name, 0.0) if self._l2 > 0.0 else 0.0 for name in names]
        pairs = zip(names, dues, strict=True)
        return [pulled_since(weight(n, 0.0), due, self.pull, paid(n, 0.0)) for n, due in pairs]

    def _due(self, x: Event) -> list[float]:
        """Return the weights of the present event before it, as its score found them."""
        ready, self._ready = self._ready, None
        if ready is None or len(ready) != len(x):
            return self._current(x, self.clock - 1)
        return ready

    def settle(self) -> None:
        """Pay every weight's penalties now."""
        if self._penalised:
            paid = dict(self.weights)
            self._weights.put(paid)
            self._mark(paid)

    def _raw_score(self, x: Event) -> float:
        self._ready = None
        if not self._penalised:
            return self._weights.dot(x) + self.intercept
        weights: list[float] = []
        score = self._penalised_dot(x, weights) + self.intercept
        self._ready = weights
        return score

    def _served_score(self, x: Event) -> float:
        if not self._penalised:
            return self._weights.dot(x) + self.intercept
        return self._penalised_dot(x, []) + self.intercept

    def _penalised_dot(self, x: Event, weights: list[float]) -> float:
        """Return `w . x`, summed in the event's order, and add the weights to a list.

        Without an absolute penalty in one pass, which saves a fifth of `learn_one`. It
        raises `TypeError` for what is no dictionary of numbers, or sums to no float.
        """
        if self._only_shrinks:
            return shrunk_dot(self._weights, self._shrink_marks, x, self.log_shrink, weights)
        if self.steps == "adagrad":
            vectors = self._weights, self._squares, self._pull_marks
            rate = rate_at(self._learning_rate, self.clock)
            return adaptive_dot(vectors, x, self.clock, rate, self._l1, self._l2, weights)
        vectors = self._weights, self._shrink_marks, self._pull_marks
        shrinks = self._l2 > 0.0
        return pulled_dot(vectors, x, self.log_shrink, self.pull, shrinks, weights)
