"""The online temperature: one number that turns scores into probabilities one can trust."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp

from hinged import state
from hinged.errors import InvalidState
from hinged.events import Label
from hinged.state import SIGNED, SUM, ScalarType

__all__ = ["LIMIT", "MOST_WEIGHT", "Temperature"]

LIMIT = 15.0
"""The largest log-odds: the least probability is 1 / (1 + exp(LIMIT)), about 3e-7."""
_KEPT = 0.998
"""The part of the curvature kept at each event: what the steps are divided by lasts 500 events."""
_LEAST_CURVATURE = 0.01
_LONGEST_STEP = 1.0
_LEAST_LOG_SCALE, _MOST_LOG_SCALE = -700.0, 20.0
MOST_WEIGHT = 1e6
"""The most that the weight of an event counts."""


class Temperature:
    """A factor above 0 for scores, learned online so that they become log-odds.

    The scale a = exp(theta) starts at 1. With the log-odds z = a score, limited to
    `[-LIMIT, LIMIT]`, the probability p = 1 / (1 + exp(-z)), a label t of 1 or 0 and
    the sample weight w, an event does one damped Newton step on its log loss:

        c = 0.998 c + w p (1 - p) z^2
        theta -= w (p - t) z / (c + 0.01), at most by 1 either way

    Of many classes, z are the scores less the highest, times a, none below -LIMIT; p is
    their softmax. The gradient is `sum of p z`, less z of the right class, and the
    curvature is the variance of z under p; of two classes that is the formula above.

    The order of the scores stays, and with it every label. Any finite score gives a
    finite result, and a probability that is neither 0 nor 1. The state is two numbers.

    Attributes
    ----------
    log_scale : float
        theta, from -700 to 20; the temperature is exp(-theta).
    curvature : float
        c, at least 0.
    scale : float
        a, derived from theta.

    Examples
    --------
    A score of 8 that is right three times of four is no log-odds of 8:

    >>> import math
    >>> from hinged.temperature import Temperature
    >>> temperature = Temperature()
    >>> for i in range(400):
    ...     temperature.learn(temperature.log_odds(8.0), i % 4 > 0)
    >>> round(temperature.log_odds(8.0), 1), round(math.log(3.0), 1)
    (1.1, 1.1)

    References
    ----------
    Guo, C., Pleiss, G., Sun, Y. and Weinberger, K. Q., 2017. On calibration of modern neural
    networks. ICML 34.

    """

    __slots__ = ("curvature", "log_scale", "scale")

    def __init__(self) -> None:
        self.log_scale = 0.0
        self.curvature = 0.0
        self.scale = 1.0

    def log_odds(self, score: float) -> float:
        """Return the log-odds of a finite score, from -LIMIT to LIMIT."""
        z = self.scale * score
        return LIMIT if z > LIMIT else -LIMIT if z < -LIMIT else z

    def learn(self, z: float, positive: bool, w: float = 1.0) -> None:
        """Learn from the label of an event whose log-odds, as `log_odds` gave them, were `z`."""
        odds = exp(-abs(z))
        low = odds / (1.0 + odds)
        high = 1.0 - low
        wrong = low if positive is (z > 0.0) else high
        self._move(-wrong * z if positive else wrong * z, low * high * z * z, w)

    def log_shares(self, scores: Mapping[Label, float]) -> dict[Label, float]:
        """Return scaled scores by class, whose softmax are probabilities, from -LIMIT to 0."""
        top = max(scores.values(), default=0.0)
        scale = self.scale
        return {y: max(-LIMIT, scale * (score - top)) for y, score in scores.items()}

    def learn_class(self, z: Mapping[Label, float], label: Label, w: float = 1.0) -> None:
        """Learn from the class of an event whose `log_shares` were `z`; one not in `z` is left."""
        if label not in z:
            return
        total = mean = square = 0.0
        for value in z.values():
            odds = exp(value)
            total += odds
            mean += odds * value
            square += odds * value * value
        mean /= total
        self._move(mean - z[label], max(0.0, square / total - mean * mean), w)

    def _move(self, gradient: float, curvature: float, w: float) -> None:
        if w > MOST_WEIGHT:
            w = MOST_WEIGHT
        self.curvature = total = _KEPT * self.curvature + w * curvature
        step = w * gradient / (total + _LEAST_CURVATURE)
        if step > _LONGEST_STEP:
            step = _LONGEST_STEP
        elif step < -_LONGEST_STEP:
            step = -_LONGEST_STEP
        theta = self.log_scale - step
        if theta > _MOST_LOG_SCALE:
            theta = _MOST_LOG_SCALE
        elif theta < _LEAST_LOG_SCALE:
            theta = _LEAST_LOG_SCALE
        self.log_scale = theta
        self.scale = exp(theta)

    @staticmethod
    def kinds(suffix: str = "") -> dict[str, ScalarType]:
        """Return the names of the saved scalars, each with `suffix`, and their types."""
        return {f"log_scale{suffix}": SIGNED, f"curvature{suffix}": SUM}

    def scalars(self, suffix: str = "") -> dict[str, float]:
        """Return the scalars to save, by the names of `kinds`."""
        return {f"log_scale{suffix}": self.log_scale, f"curvature{suffix}": self.curvature}

    def set_state(self, saved: object) -> None:
        """Take over what `scalars` returned, or raise `InvalidState` and change nothing."""
        kinds = self.kinds()
        given = state.part({"temperature": saved}, "temperature", kinds)
        one = self.restored(
            {name: state.scalar(name, kind, given[name]) for name, kind in kinds.items()}
        )
        self.log_scale, self.curvature, self.scale = one.log_scale, one.curvature, one.scale

    @classmethod
    def restored(cls, scalars: Mapping[str, float], suffix: str = "") -> Temperature:
        """Return the temperature of saved scalars, or raise `InvalidState`."""
        one = cls()
        one.log_scale, one.curvature = (scalars[name] for name in cls.kinds(suffix))
        if not _LEAST_LOG_SCALE <= one.log_scale <= _MOST_LOG_SCALE:
            raise InvalidState(f"log_scale{suffix} must be from -700 to 20, not {one.log_scale!r}")
        one.scale = exp(one.log_scale)
        return one
