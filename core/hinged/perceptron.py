"""The perceptron: move by the example itself whenever the margin is not positive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hinged.base import BinaryLinearClassifier
from hinged.parameters import PositiveNumber

__all__ = ["Perceptron"]


class Perceptron(BinaryLinearClassifier):
    r"""Rosenblatt's perceptron, learning one event at a time.

    On an event with target t in {-1, +1} and `margin = t (w . x + b)`:

        if margin <= 0:   w += learning_rate * sample_weight * t * x
                          b += learning_rate * sample_weight * t

    Ties (margin 0) update, so a fresh model leaves zero at once and the
    convergence theorem bounds the updates: if some unit vector u separates the
    events with margin gamma and all \|(x, 1)\| <= R, there are at most
    (R / gamma)^2 updates, in any order. An update without a mistake is possible
    (a tie whose predicted label was right), a mistake without an update is not.

    Time per event is linear in the features present; memory is one float per
    feature name ever updated.

    Parameters
    ----------
    learning_rate
        eta > 0, finite. With zero initial weights it only scales the weights
        and scores, never the labels.
    fit_intercept
        Whether to learn the intercept b.

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

    learning_rate = PositiveNumber()

    def __init__(self, learning_rate: float = 1.0, fit_intercept: bool = True) -> None:
        super().__init__(fit_intercept)
        self.learning_rate = learning_rate

    @property
    def _mutable_attributes(self) -> set[str]:
        return {"learning_rate"}

    def _step(self, margin: float, x: Mapping[Any, float], w: float) -> float:
        return self.learning_rate * w
