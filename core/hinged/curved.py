"""Curved: a binary learner behind random Fourier features, as one learner."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from hinged import state
from hinged.accounting import Accounting, Fields
from hinged.arow import AROW
from hinged.base import Contributions
from hinged.binary import BinaryLinearClassifier
from hinged.errors import InvalidParameter, InvalidState, shown
from hinged.events import Label, binary_target, finite_features
from hinged.fourier_features import FourierFeatures, width
from hinged.parameters import checked_count
from hinged.state import COUNT
from hinged.vector import VALUE_BYTES, Event, Features, Numbers, name_bytes

__all__ = ["Curved", "curved_pool"]


class Curved(BinaryLinearClassifier):
    """A binary learner that learns `FourierFeatures` of the event instead of its features.

    Its boundary is a curve. The features should be scaled: put `AutoScaler` before.
    For few and dense features: from an event of none, or of more than `max_width`, that are not
    0, only the intercept learns.

    Time is `n_components` times the features; memory that of the learner for
    `n_components` names, whatever names the events have.

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
    curved : BinaryLinearClassifier
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

    def __init__(
        self,
        learner: BinaryLinearClassifier | None = None,
        n_components: int = 100,
        bend: float = 2.0,
        seed: int = 0,
        max_width: int = 64,
    ) -> None:
        inner = AROW() if learner is None else learner
        if not isinstance(inner, BinaryLinearClassifier) or isinstance(inner, Curved):
            raise InvalidParameter(f"must be a binary learner of hinged, not {shown(inner)}")
        self.curved: BinaryLinearClassifier = inner.clone()
        self.features = FourierFeatures(n_components, bend, seed)
        super().__init__(inner.fit_intercept)
        self.learner = learner
        self.n_components, self.bend, self.seed = n_components, bend, seed
        self.max_width = checked_count("max_width", max_width)
        self.label_at_zero = inner.label_at_zero

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"n_components": 20}

    @property
    def accounting(self) -> Accounting:
        """Events, mistakes, updates and losses so far: the learner's."""
        return self.curved.accounting

    @accounting.setter
    def accounting(self, account: Accounting) -> None:
        self.curved.accounting = account

    @property
    def clock(self) -> int:
        """Events of weight above 0 so far."""
        return self.curved.clock

    @clock.setter
    def clock(self, clock: int) -> None:
        self.curved.clock = clock

    @property
    def intercept(self) -> float:
        """The intercept of the weights that learn."""
        return self.curved.intercept

    @intercept.setter
    def intercept(self, intercept: float) -> None:
        self.curved.intercept = intercept

    @property
    def weights(self) -> Numbers:
        """A live, read-only view of the weights of the cosines."""
        return self.curved.weights

    @property
    def threshold(self) -> float:
        """The intercept as a threshold on the sum over the cosines."""
        return self.curved.threshold

    def _cosines(self, x: Numbers) -> Features:
        return self.features.transform_one(x) if 0 < width(x) <= self.max_width else {}

    def _learn(self, x: Event, y: Hashable, w: float) -> Fields:
        binary_target(y)
        w = self.check_weight(w)
        numbers = finite_features(x)
        if w > 0.0 and width(numbers) <= self.max_width:
            self.features.learn_one(numbers)
        return self.curved.predict_learn_one(self._cosines(numbers), y, w)

    def score_one(self, x: Event) -> float:
        """Return the learner's score of the cosines of `x`."""
        return self.curved.score_one(self._cosines(finite_features(x)))

    def predict_one(self, x: Event, **kwargs: object) -> bool:
        """Return the learner's label for the cosines of `x`."""
        return self.curved.predict_one(self._cosines(finite_features(x)))

    def contributions(self, x: Features, y: Label | None = None) -> Contributions:
        """Return value and weight of each cosine, the intercept last."""
        return self.curved.contributions(self._cosines(x))

    def check_weight(self, w: object) -> float:
        """Return the sample weight as a float, or raise `InvalidEvent`."""
        return self.curved.check_weight(w)

    def track(self) -> None:
        """Note from now on which names change, as the learner does."""
        self.curved.track()

    @property
    def numbers_per_name(self) -> int:
        """The most numbers that an event stores, by its names: all weights come with the first."""
        return self.n_components * self.curved.numbers_per_name

    def stored_bytes(self) -> int:
        """Return what the numbers stored by name take."""
        return self.curved.stored_bytes()

    def missing_bytes(self, x: Event) -> int:
        """Return what the cosines take that are not stored yet."""
        new = [name for name in self.features.names if name not in self.curved.weights]
        return self.curved.numbers_per_name * (len(new) * VALUE_BYTES + name_bytes(new))

    def get_state(self) -> dict[str, Any]:
        """Return the learner's state with the scalar `widest`, that of its `FourierFeatures`."""
        inner = self.curved.get_state()
        scalars = {**inner["scalars"], "widest": self.features.widest}
        return {**inner, "type": type(self).__name__, "scalars": scalars}

    def set_state(self, saved: Mapping[str, Any]) -> None:
        """Take over a saved state, or raise `InvalidState` and change nothing."""
        saved = state.checked_header(saved, type(self).__name__)
        scalars = saved.get("scalars")
        if not isinstance(scalars, Mapping):
            raise InvalidState(f"the scalars must be a mapping, not {shown(scalars)}")
        widest = int(state.scalar("widest", COUNT, scalars.get("widest")))
        inner = {name: value for name, value in scalars.items() if name != "widest"}
        self.curved.set_state({**saved, "type": type(self.curved).__name__, "scalars": inner})
        self.features.widest = widest


def curved_pool() -> list[BinaryLinearClassifier]:
    """Return the curved experts that a hedge may take beside its pool: of two widths."""
    return [Curved(bend=bend, seed=seed) for seed, bend in enumerate((1.0, 4.0))]
