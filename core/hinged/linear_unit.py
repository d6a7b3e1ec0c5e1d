"""The linear unit: the delta rule of Widrow and Hoff."""

from __future__ import annotations

import math

from hinged.binary import BinaryLinearClassifier
from hinged.parameters import LearningRate, Rate, checked_flag, rate_at
from hinged.start import InitialWeights

__all__ = ["LinearUnit"]


class LinearUnit(BinaryLinearClassifier):
    r"""ADALINE: a linear unit that learns its target by the delta rule.

    On every event, with target t in {-1, +1} and `score = w . x + b`:

        w += step (t - score) x,  b += step (t - score)

        step = min(learning_rate sample_weight, 1 / (\|x\|^2 + 1))

    The cap is the step that meets the target exactly (with an intercept), so no
    event, however long, can make the score overshoot and the weights diverge. The
    norm is that of all that is updated: features that a full learner ignores do not
    count.
    `capped=False` is the textbook rule, `step = learning_rate sample_weight`.

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
    label_at_zero
        The label predicted at score 0.
    initial_weights
        Weights to start from: `None` for 0, by feature name, or `RandomWeights`.
    initial_intercept
        The intercept to start from.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from hinged import LinearUnit

    >>> model = preprocessing.StandardScaler() | LinearUnit()
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 88.08%

    References
    ----------
    Widrow, B. and Hoff, M. E., 1960. Adaptive switching circuits. IRE WESCON Convention Record, 4.

    """

    learning_rate = LearningRate()
    _learning_rate: Rate
    _update_margin = math.inf

    def __init__(
        self,
        learning_rate: Rate = 0.03,
        capped: bool = True,
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
        self.learning_rate = learning_rate
        self.capped = checked_flag("capped", capped)
        self._compile(LinearUnit, "linear capped" if self.capped else "linear")

    def _step(self, margin: float, norm2: float, w: float) -> float:
        step = rate_at(self._learning_rate, self.clock) * w
        if self.capped:
            step = min(step, 1.0 / (norm2 + 1.0 - self._constant))
        return step * (1.0 - margin)
