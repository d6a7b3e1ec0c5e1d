"""Penalties on every weight after every event, paid only when a weight is looked at."""

from __future__ import annotations

import math
import sys
from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from hinged.accounting import Accounting
from hinged.state import SIGNED, SUM, Kind
from hinged.vector import WeightVector

__all__ = ["PENALTY_SCALARS", "PENALTY_VECTORS", "LazyPenalty"]

PENALTY_SCALARS: dict[str, Kind] = {"log_shrink": SIGNED, "pull": SUM}
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
    drops every weight and starts L anew; nothing is ever divided by a product.

    With AdaGrad every weight has a step of its own, constant between its updates:
    it remembers the clock, F = f^k and C = c (1 - f^k) / (1 - f) for k events.
    """

    if TYPE_CHECKING:
        steps: str
        learning_rate: Any
        l1: float
        l2: float
        clock: int
        intercept: float
        accounting: Accounting
        _weights: WeightVector
        _squares: WeightVector

    def _start_penalty(self) -> None:
        self._penalised = self.l1 > 0.0 or self.l2 > 0.0
        self.log_shrink = 0.0
        self.pull = 0.0
        self._shrink_marks = WeightVector()
        self._pull_marks = WeightVector()

    @property
    def weights(self) -> Mapping[Any, float]:
        """The weights, penalties included: a live view, or computed where there are some."""
        if not self._penalised:
            return self._weights.view()
        return {name: self._raw_weight(name) for name in self._weights.view()}

    def _penalise(self, shrink: float, pull: float) -> None:
        """Count one event's factor and pull against every weight."""
        if shrink > 0.0:
            self.log_shrink += math.log(shrink)
            self.pull = min(shrink * self.pull + pull, sys.float_info.max)
        else:
            self.log_shrink = 0.0
            self.pull = min(pull, sys.float_info.max)
            for vector in (self._weights, self._shrink_marks, self._pull_marks):
                vector.clear()

    def _mark(self, names: Iterable[Hashable]) -> None:
        """Note that these weights have paid up to now."""
        if self.steps == "adagrad":
            self._pull_marks.put(dict.fromkeys(names, float(self.clock)))
        else:
            names = tuple(names)
            self._shrink_marks.put(dict.fromkeys(names, self.log_shrink))
            self._pull_marks.put(dict.fromkeys(names, self.pull))

    def _raw_weight(self, name: Hashable) -> float:
        """Return a weight after all events so far."""
        if self.steps == "adagrad":
            return self._adagrad_weight(name, self.clock)
        weight = self._weights.get(name)
        if weight == 0.0 or not self._penalised:
            return weight
        shrink, pull = self._shrink_marks.get(name), self._pull_marks.get(name)
        if shrink == self.log_shrink and pull == self.pull:
            return weight
        factor = math.exp(min(0.0, self.log_shrink - shrink))
        size = factor * abs(weight) - (self.pull - factor * pull)
        return math.copysign(max(0.0, size), weight)

    def _adagrad_weight(self, name: Hashable, clock: int) -> float:
        """Return a weight after the events up to `clock`."""
        weight, squares = self._weights.get(name), self._squares.get(name)
        if weight == 0.0 or squares == 0.0 or not self._penalised:
            return weight
        events = max(0.0, clock - self._pull_marks.get(name))
        eta = self.learning_rate / math.sqrt(squares)
        shrink, pull = max(0.0, 1.0 - eta * self.l2), eta * self.l1
        factor = shrink**events
        repeats = events if shrink == 1.0 else (1.0 - factor) / (1.0 - shrink)
        return math.copysign(max(0.0, factor * abs(weight) - pull * repeats), weight)

    def _settle(self) -> None:
        """Pay every weight's penalties now."""
        if self._penalised:
            paid = {name: self._raw_weight(name) for name in self._weights.view()}
            self._weights.put(paid)
            self._mark(paid)

    def _raw_score(self, x: Mapping[Any, Any]) -> float:
        score = self._weights.dot(x)
        if self._penalised and -math.inf < score < math.inf:
            weight = self._raw_weight
            score = 0.0
            for name, value in x.items():
                score += weight(name) * value
        return score + self.intercept

    def _served_score(self, x: Mapping[Any, Any]) -> float:
        return self._raw_score(x)
