"""Coin betting: a learner without a learning rate."""

from __future__ import annotations

import math
from typing import ClassVar

from hinged.binary import BinaryLinearClassifier
from hinged.kernel import add_by_betting
from hinged.kernel.pure import next_bet
from hinged.logistic import residual
from hinged.start import InitialWeights, starts_of
from hinged.state import SIGNED, SUM, ScalarType
from hinged.vector import Numbers, WeightVector, all_finite

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

    A bet grows exponentially while its coin keeps falling on one side, so that the
    distance to the best weights costs its logarithm only. Features of another scale
    give weights of the inverse scale and the same scores. Where a weight has an initial
    value, all this is about its distance to that.

    Time per event is linear in the features present; memory is five floats per
    feature name ever updated.

    Parameters
    ----------
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

    def __init__(
        self,
        fit_intercept: bool = True,
        max_features: int | None = None,
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
        self.intercept_sum = self.intercept_scale = 0.0
        self.intercept_size = self.intercept_reward = 0.0
        self._sums, self._scales = WeightVector(), WeightVector()
        self._sizes, self._rewards = WeightVector(), WeightVector()
        self._compile(CoinBetting, "betting")

    def _update(self, x: Numbers, target: float, margin: float, norm: float, w: float) -> bool:
        slope = target * w * residual(margin)
        if slope == 0.0:
            return False
        own = next_bet(
            slope * self._constant,
            w * self._constant,
            self.initial_intercept,
            self.intercept,
            self.intercept_sum,
            self.intercept_scale,
            self.intercept_size,
            self.intercept_reward,
        )
        vectors = (self._weights, self._sums, self._scales, self._sizes, self._rewards)
        x, start = self._room(x), starts_of(self.initial_weights)
        if not (all_finite(own) and add_by_betting(vectors, x, slope, w, start)):
            return self._overflow()
        self.intercept, self.intercept_sum, self.intercept_scale, *rest = own
        self.intercept_size, self.intercept_reward = rest
        self.accounting.updates += 1
        return True
