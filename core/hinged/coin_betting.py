"""Coin betting: a learner without a learning rate."""

from __future__ import annotations

import math
from typing import ClassVar

from hinged.binary import BinaryLinearClassifier
from hinged.events import as_floats
from hinged.logistic import residual
from hinged.state import SIGNED, SUM, ScalarType
from hinged.vector import Features, Numbers, WeightVector, put_all

__all__ = ["CoinBetting"]


class CoinBetting(BinaryLinearClassifier):
    r"""Logistic regression that bets on the sign of each gradient: nothing to tune.

    Every weight is a bet. On every event with target t and margin `m = t (w . x + b)`, for
    each feature i whose value is not 0, and for the intercept as that of a constant
    feature 1, the outcome c of the coin, the largest that it might have been L, the sum
    of sizes G, the winnings R and the sum of outcomes H become:

        c = sample_weight t x_i / (1 + exp(m))
        L = max(L, sample_weight \|x_i\|)
        G = G + \|c\|,  R = max(0, R + c w_i),  H = H + c

    and the next bet is a share of a wealth of 1 and the winnings, which is the surer
    the more the outcomes agree:

        w_i = H / (G + L) (1 + R) / L

    A weight grows exponentially while its coin keeps falling on one side, so that the
    distance to the best weights costs its logarithm only. Features of another scale
    give weights of the inverse scale and the same scores.

    Time per event is linear in the features present; memory is five floats per
    feature name ever updated.

    Parameters
    ----------
    fit_intercept
        Whether to learn the intercept b.
    max_features
        The most feature names kept, or `None` for no limit.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from hinged import CoinBetting

    >>> model = preprocessing.StandardScaler() | CoinBetting()
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 88.88%

    References
    ----------
    Orabona, F. and Pal, D., 2016. Coin betting and parameter-free online learning. NIPS 29.
    Orabona, F. and Tommasi, T., 2017. Training deep networks without learning rates through coin
    betting. NIPS 30.

    """

    _SCALARS: ClassVar[dict[str, ScalarType]] = {
        "intercept_sum": SIGNED,
        "intercept_scale": SUM,
        "intercept_size": SUM,
        "intercept_reward": SUM,
    }
    _VECTORS: ClassVar[dict[str, float]] = {
        "weights": -math.inf,
        "sums": -math.inf,
        "scales": 0.0,
        "sizes": 0.0,
        "rewards": 0.0,
    }
    _update_margin = math.inf

    def __init__(self, fit_intercept: bool = True, max_features: int | None = None) -> None:
        super().__init__(fit_intercept, max_features)
        self.intercept_sum = self.intercept_scale = 0.0
        self.intercept_size = self.intercept_reward = 0.0
        self._sums, self._scales = WeightVector(), WeightVector()
        self._sizes, self._rewards = WeightVector(), WeightVector()

    def _update(self, x: Numbers, target: float, margin: float, norm: float, w: float) -> bool:
        slope = target * w * residual(margin)
        if slope == 0.0:
            return False
        weights: Features = {}
        sums: Features = {}
        scales: Features = {}
        sizes: Features = {}
        rewards: Features = {}
        weight_of, sum_of, scale_of = self._weights.lookup, self._sums.lookup, self._scales.lookup
        size_of, reward_of = self._sizes.lookup, self._rewards.lookup
        for name, value in as_floats(self._room(x)).items():
            weights[name], sums[name], scales[name], sizes[name], rewards[name] = _next_bet(
                slope * value,
                w * abs(value),
                weight_of(name, 0.0),
                sum_of(name, 0.0),
                scale_of(name, 0.0),
                size_of(name, 0.0),
                reward_of(name, 0.0),
            )
        own = _next_bet(
            slope * self._constant,
            w * self._constant,
            self.intercept,
            self.intercept_sum,
            self.intercept_scale,
            self.intercept_size,
            self.intercept_reward,
        )
        moves = (
            (self._weights, weights),
            (self._sums, sums),
            (self._scales, scales),
            (self._sizes, sizes),
            (self._rewards, rewards),
        )
        if not put_all(moves, *own):
            return self._overflow()
        self.intercept, self.intercept_sum, self.intercept_scale, *rest = own
        self.intercept_size, self.intercept_reward = rest
        self.accounting.updates += 1
        return True


def _next_bet(
    coin: float,
    most: float,
    weight: float,
    total: float,
    scale: float,
    size: float,
    reward: float,
) -> tuple[float, float, float, float, float]:
    """Return the weight, and the sums that give it, after the outcome of one coin."""
    if coin == 0.0:
        return weight, total, scale, size, reward
    scale = max(scale, most)
    size += abs(coin)
    reward = max(0.0, reward + coin * weight)
    total += coin
    return total / (size + scale) * ((1.0 + reward) / scale), total, scale, size, reward
