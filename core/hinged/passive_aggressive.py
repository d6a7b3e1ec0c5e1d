"""Passive-aggressive learning: the smallest step that reaches margin 1."""

from __future__ import annotations

import math

from hinged.binary import BinaryLinearClassifier, refuse_fraction
from hinged.events import checked_weight
from hinged.parameters import PositiveNumber, checked_choice
from hinged.start import InitialWeights

__all__ = ["MODES", "PassiveAggressive", "step_length"]

MODES = ("uncapped", "I", "II")


class PassiveAggressive(BinaryLinearClassifier):
    r"""Passive-aggressive classification, in its three forms.

    On an event whose hinge loss l = max(0, 1 - t (w . x + b)) is above 0:

        w += tau t x,  b += tau t,  with n = \|x\|^2 + 1

        uncapped:  tau = l / n
        I:         tau = min(C sample_weight, l / n)
        II:        tau = l / (n + 1 / (2 C sample_weight))

    n is the squared norm of all that is updated, so the 1 is there with an
    intercept only, features that a full learner ignores are not, and after an
    uncapped step the event's margin is exactly 1.
    Where n underflows to 0 or overflows, nothing is divided: uncapped and I leave
    the event out; II, whose divisor is 0 only where C sample_weight overflows,
    steps unless x is all zero.

    Time per event is linear in the features present; memory is one float per
    feature name ever updated.

    Parameters
    ----------
    C
        Aggressiveness, above 0 and finite; without effect when uncapped.
    mode
        `"uncapped"`, `"I"` or `"II"`. Uncapped, a sample weight must be 0 or 1.
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
    >>> from hinged import PassiveAggressive

    >>> model = preprocessing.StandardScaler() | PassiveAggressive()
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 85.68%

    References
    ----------
    Crammer, K., Dekel, O., Keshet, J., Shalev-Shwartz, S. and Singer, Y., 2006. Online
    passive-aggressive algorithms. Journal of Machine Learning Research, 7.

    """

    C = PositiveNumber(mutable=True)
    _C: float
    _update_margin = 1.0

    def __init__(
        self,
        C: float = 1.0,
        mode: str = "I",
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
        self.C = C
        self.mode = checked_choice("mode", mode, MODES)
        self._compile(PassiveAggressive, self.mode)

    def check_weight(self, w: object) -> float:
        """Return the sample weight as a float, or raise `InvalidEvent`."""
        weight = checked_weight(w)
        return refuse_fraction(weight) if self.mode == "uncapped" else weight

    def _step(self, margin: float, norm2: float, w: float) -> float:
        return step_length(self.mode, self._C * w, 1.0 - margin, norm2)


def step_length(mode: str, cap: float, loss: float, norm2: float) -> float:
    """Return tau; 0 where the squared norm is of no use.

    Parameters
    ----------
    mode
        One of `MODES`.
    cap
        C times the sample weight, at least 0; may be infinite.
    loss
        The hinge loss of the event, at least 0; no step is known if it is not finite.
    norm2
        The squared norm of all that moves; may be 0 or infinite.

    Examples
    --------
    >>> step_length("uncapped", 1.0, 1.0, 25.0), step_length("I", 0.01, 1.0, 25.0)
    (0.04, 0.01)
    >>> step_length("II", 0.5, 1.0, 4.0), step_length("uncapped", 1.0, 1.0, 0.0)
    (0.2, 0.0)

    """
    if not loss < math.inf:
        return math.nan
    if norm2 == math.inf:
        return 0.0
    if mode == "II":
        divisor = norm2 + 0.5 / cap if cap > 0.0 else 0.0
        return loss / divisor if divisor > 0.0 else 0.0
    if norm2 == 0.0:
        return 0.0
    tau = loss / norm2
    if mode == "I":
        return min(cap, tau)
    return tau if tau < math.inf else 0.0
