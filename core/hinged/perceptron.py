"""The perceptron: move by the example itself whenever the margin is not positive."""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterable

from hinged.binary import BinaryLinearClassifier
from hinged.errors import InvalidParameter
from hinged.parameters import (
    LearningRate,
    NonNegativeNumber,
    Rate,
    checked_choice,
    rate_at,
)
from hinged.start import InitialWeights
from hinged.vector import Features, Numbers

__all__ = ["Perceptron", "random_weights"]


class Perceptron(BinaryLinearClassifier):
    r"""Rosenblatt's perceptron, learning one event at a time.

    On an event with target t in {-1, +1} and `score = w . x + b`:

        if t * score <= margin:   w += learning_rate * sample_weight * t * x
                                  b += learning_rate * sample_weight * t

    Ties (score 0) update, so a fresh model leaves zero at once and the
    convergence theorem bounds the updates: if some unit vector u separates the
    events with margin gamma and all \|(x, 1)\| <= R, there are at most
    (R / gamma)^2 updates, in any order. An update without a mistake is possible
    (a tie whose predicted label was right), a mistake without an update is not.

    Time per event is linear in the features present; memory is one float per
    feature name ever updated.

    Parameters
    ----------
    learning_rate
        eta > 0, finite, or one of River's schedulers (`InverseScaling(eta, 0.5)`
        is eta / sqrt(t), `InverseScaling(eta, 1)` is eta / t, t counted from 1).
        With zero initial weights a constant only scales weights and scores,
        never the labels.
    fit_intercept
        Whether to learn the intercept b, the weight of a constant feature 1. Read
        it as `threshold` (-b) for the form with a feature of -1.
    margin
        gamma >= 0: update whenever `t * score <= margin`.
    update_on
        `"tie"`: update when the score is on the wrong side or 0. `"mistake"`:
        only when the predicted label is wrong; needs `margin=0`.
    label_at_zero
        The label predicted at score 0.
    initial_weights
        Weights to start from: `None` for 0, by feature name, or `RandomWeights`.
    initial_intercept
        The intercept to start from.
    max_features
        The most feature names kept, or `None` for no limit.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from hinged import Perceptron

    >>> model = preprocessing.StandardScaler() | Perceptron()
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 85.84%

    >>> model["Perceptron"].accounting.mistakes
    177

    References
    ----------
    Rosenblatt, F., 1958. The perceptron: a probabilistic model for information storage and
    organization in the brain. Psychological Review, 65(6).
    Novikoff, A. B. J., 1962. On convergence proofs on perceptrons. Symposium on the Mathematical
    Theory of Automata, 12.

    """

    learning_rate = LearningRate()
    _learning_rate: Rate
    margin = NonNegativeNumber()

    def __init__(
        self,
        learning_rate: Rate = 1.0,
        fit_intercept: bool = True,
        margin: float = 0.0,
        update_on: str = "tie",
        label_at_zero: bool = False,
        initial_weights: InitialWeights = None,
        initial_intercept: float = 0.0,
        max_features: int | None = None,
    ) -> None:
        super().__init__(
            fit_intercept,
            max_features,
            label_at_zero=label_at_zero,
            initial_weights=initial_weights,
            initial_intercept=initial_intercept,
        )
        self.learning_rate = learning_rate
        self.margin = margin
        self.update_on = checked_choice("update_on", update_on, ("tie", "mistake"))
        if self.update_on == "mistake" and self.margin > 0.0:
            raise InvalidParameter('update_on="mistake" needs margin=0: it asks only for the label')
        self._update_margin = self.margin
        self._on_tie = self.update_on == "tie"
        self._compile(Perceptron, "perceptron")

    def _update(self, x: Numbers, target: float, margin: float, norm: float, w: float) -> bool:
        rate = self._learning_rate  # `super` looks for room first: 7 % of a call with a cap
        step = rate if type(rate) is float else rate_at(rate, self.clock)
        return self._move(x, step * w * target, norm)


def random_weights(names: Iterable[Hashable], seed: int, scale: float = 1.0) -> Features:
    """Return seeded random initial weights of some names, normal with mean 0.

    `RandomWeights` has a weight for any name, and the same on every platform.

    Parameters
    ----------
    names
        Feature names, in the order in which the weights are drawn.
    seed
        The same seed gives the same weights, in every process.
    scale
        Standard deviation, at least 0.

    Examples
    --------
    >>> from hinged import Perceptron, random_weights
    >>> start = random_weights(["height", "width"], seed=1)
    >>> Perceptron(initial_weights=start).score_one({"height": 1.0}) == start["height"]
    True

    """
    draw = random.Random(seed)  # noqa: S311
    return {name: draw.gauss(0.0, scale) for name in names}
