"""Curved: a binary learner behind random Fourier features, as one learner."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from hinged.arow import AROW
from hinged.binary import BinaryLinearClassifier
from hinged.fourier_features import FourierFeatures, width
from hinged.lifted import LiftedBinary
from hinged.parameters import checked_count
from hinged.state import COUNT, ScalarType
from hinged.vector import VALUE_BYTES, Event, Numbers, name_bytes

__all__ = ["Curved", "curved_pool"]


class Curved(LiftedBinary):
    """A binary learner that learns `FourierFeatures` of the event instead of its features.

    Its boundary is a curve. The features should be scaled: put `AutoScaler` before.
    For few and dense features: from an event of none, or of more than `max_width`, that are not
    0, only the intercept learns.

    Time is `n_components` times the features; memory that of the learner for
    `n_components` names, for any names of the events.

    Parameters
    ----------
    learner
        A binary learner of this package, never touched: what learns is a clone. `None` is
        `AROW`.
    n_components, bend, seed
        As those of `FourierFeatures`.
    max_width
        The most features of an event that are not 0.

    Attributes
    ----------
    lifted : BinaryLinearClassifier
        The learned learner; its weights are those of the cosines.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from hinged import AutoScaler, Curved

    >>> model = AutoScaler() | Curved(bend=4.0)
    >>> evaluate.progressive_val_score(datasets.Bananas(), model, metrics.Accuracy())
    Accuracy: 89...%

    References
    ----------
    Rahimi, A. and Recht, B., 2007. Random features for large-scale kernel machines. NIPS 20.

    """

    _LIFTING: ClassVar[dict[str, ScalarType]] = {"widest": COUNT}
    features: FourierFeatures

    def __init__(
        self,
        learner: BinaryLinearClassifier | None = None,
        n_components: int = 100,
        bend: float = 2.0,
        seed: int = 0,
        max_width: int = 64,
    ) -> None:
        super().__init__(learner, AROW())
        self.features = FourierFeatures(n_components, bend, seed)
        self.n_components, self.bend, self.seed = n_components, bend, seed
        self.max_width = checked_count("max_width", max_width)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"n_components": 20}

    def _lift(self, x: Numbers) -> Numbers:
        return self.features.transform_one(x) if 0 < width(x) <= self.max_width else {}

    def _meet(self, x: Numbers, w: float) -> None:
        if w > 0.0 and width(x) <= self.max_width:
            self.features.learn_one(x)

    @property
    def numbers_per_name(self) -> int:
        """The most numbers that an event stores, by its names: all weights come with the first."""
        return self.n_components * self.lifted.numbers_per_name

    def missing_bytes(self, x: Event) -> int:
        """Return the bytes of the cosines that are not stored yet."""
        new = [name for name in self.features.names if name not in self.lifted.weights]
        return self.lifted.numbers_per_name * (len(new) * VALUE_BYTES + name_bytes(new))


def curved_pool() -> list[BinaryLinearClassifier]:
    """Return the curved experts that a hedge may take beside its pool: of two widths."""
    return [Curved(bend=bend, seed=seed) for seed, bend in enumerate((1.0, 4.0))]
