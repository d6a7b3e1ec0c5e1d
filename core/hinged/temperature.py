"""The online temperature: one number that turns scores into calibrated probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp

from hinged import state
from hinged.errors import InvalidState
from hinged.kernel import Scaling
from hinged.kernel.pure import LEAST_LOG_SCALE, LIMIT, MOST_LOG_SCALE
from hinged.state import SIGNED, SUM, ScalarType

__all__ = ["LIMIT", "Temperature"]


class Temperature(Scaling):
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

    __slots__ = ()

    @staticmethod
    def kinds(suffix: str = "") -> dict[str, ScalarType]:
        """Return the names of the saved scalars, each with `suffix`, and their types."""
        return {f"log_scale{suffix}": SIGNED, f"curvature{suffix}": SUM}

    def scalars(self, suffix: str = "") -> dict[str, float]:
        """Return the scalars to save, by the names of `kinds`."""
        return {f"log_scale{suffix}": self.log_scale, f"curvature{suffix}": self.curvature}

    def set_state(self, saved: object) -> None:
        """Restore the values of `scalars`, or raise `InvalidState` and change nothing."""
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
        if not LEAST_LOG_SCALE <= one.log_scale <= MOST_LOG_SCALE:
            raise InvalidState(f"log_scale{suffix} must be from -700 to 20, not {one.log_scale!r}")
        one.scale = exp(one.log_scale)
        return one
