"""Multiclass passive-aggressive learning: the smallest step that beats the rival by 1."""

from __future__ import annotations

from collections.abc import Mapping

from hinged.binary import refuse_fraction
from hinged.events import Label, checked_weight
from hinged.multiclass import DEFAULT_CLASSES
from hinged.multiclass_linear import ClassWeightsByName
from hinged.multiclass_perceptron import TwoClassStep
from hinged.parameters import PositiveNumber, checked_choice
from hinged.passive_aggressive import MODES, step_length

__all__ = ["MulticlassPassiveAggressive"]


class MulticlassPassiveAggressive(TwoClassStep):
    r"""Passive-aggressive classification of any number of classes, in its three forms.

    With the scores s_k = w_k . x + b_k, y the event's class, r its rival, the
    best-scoring wrong class, and l = max(0, 1 - (s_y - s_r)) above 0:

        w_y += tau x,  w_r -= tau x,  with n = 2 (\|x\|^2 + 1)

    and tau as in `PassiveAggressive`. Two vectors move, therefore the 2: after an
    uncapped step the right class leads its rival by exactly 1. Features that a full
    learner ignores do not count in n.

    Time per event is linear in the features present, times the classes; memory is
    one float per class and feature name ever updated.

    Parameters
    ----------
    C
        Aggressiveness, above 0 and finite; without effect when uncapped.
    mode
        `"uncapped"`, `"I"` or `"II"`. Uncapped, a sample weight must be 0 or 1.
    fit_intercept
        Whether every class learns an intercept.
    max_classes
        The most classes, or `None` for no limit; an event of one more is refused.
    max_features
        The most feature names kept, or `None` for no limit.
    initial_weights
        Weights to start from: `None` for 0; by class, then by feature name, classes
        that are known from the start; or `RandomWeights`, others for each class.
    initial_intercepts
        Intercepts to start from, by class, known from the start likewise.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from hinged import MulticlassPassiveAggressive

    >>> model = preprocessing.StandardScaler() | MulticlassPassiveAggressive()
    >>> evaluate.progressive_val_score(datasets.ImageSegments(), model, metrics.Accuracy())
    Accuracy: 85.10%

    References
    ----------
    Crammer, K., Dekel, O., Keshet, J., Shalev-Shwartz, S. and Singer, Y., 2006. Online
    passive-aggressive algorithms. Journal of Machine Learning Research, 7.

    """

    _CLASS_RULE = "aggressive"
    C = PositiveNumber(mutable=True)
    _C: float
    _update_margin = 1.0

    def __init__(
        self,
        C: float = 1.0,
        mode: str = "I",
        fit_intercept: bool = True,
        max_classes: int | None = DEFAULT_CLASSES,
        max_features: int | None = None,
        initial_weights: ClassWeightsByName = None,
        initial_intercepts: Mapping[Label, float] | None = None,
    ) -> None:
        super().__init__(
            fit_intercept,
            max_classes,
            max_features,
            initial_weights=initial_weights,
            initial_intercepts=initial_intercepts,
        )
        self.C = C
        self.mode = checked_choice("mode", mode, MODES)

    def check_weight(self, w: object) -> float:
        """Return the sample weight as a float, or raise `InvalidEvent`."""
        weight = checked_weight(w)
        return refuse_fraction(weight) if self.mode == "uncapped" else weight

    def _step(self, margin: float, norm2: float, w: float) -> float:
        return step_length(self.mode, self._C * w, 1.0 - margin, norm2)
