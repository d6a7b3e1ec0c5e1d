"""Learners of features that are made of an event's own."""

from __future__ import annotations

import abc
from collections.abc import Hashable, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from hinged import state
from hinged.accounting import Accounting, Fields
from hinged.base import Contributions, LinearClassifier
from hinged.binary import BinaryLinearClassifier
from hinged.errors import InvalidParameter, InvalidState, shown
from hinged.events import Label, finite_features
from hinged.state import ScalarType
from hinged.vector import Event, Features, Numbers

__all__ = ["Lifted", "LiftedBinary"]

Learner = TypeVar("Learner", bound=LinearClassifier)


class Lifted(LinearClassifier, Generic[Learner]):
    """A learner that learns other features than the event's own.

    A subclass has the learner of the made features as `lifted` and defines `_lift`, and `_meet`
    if what it makes depends on the events before; `_LIFTING` are the scalars that it saves
    beside the learner's, attributes of `features`. Its other base is that of the learner.
    """

    _LIFTING: ClassVar[dict[str, ScalarType]] = {}
    features: object
    lifted: Learner

    @abc.abstractmethod
    def _lift(self, x: Numbers) -> Numbers:
        """Return the features of the learner for an event of finite numbers; change nothing."""

    def _meet(self, x: Numbers, w: float) -> None:
        """Take in the features of an event before it is learned."""

    @property
    def accounting(self) -> Accounting:
        """Events, mistakes, updates and losses so far: the learner's."""
        return self.lifted.accounting

    @accounting.setter
    def accounting(self, account: Accounting) -> None:
        self.lifted.accounting = account

    @property
    def clock(self) -> int:
        """Events of weight above 0 so far."""
        return self.lifted.clock

    @clock.setter
    def clock(self, clock: int) -> None:
        self.lifted.clock = clock

    def _learn(self, x: Event, y: Hashable, w: float) -> Fields:
        self._check_label(y)
        w = self.check_weight(w)
        numbers = finite_features(x)
        self._meet(numbers, w)
        return self.lifted.predict_learn_one(self._lift(numbers), y, w)

    def score_one(self, x: Event) -> float:
        """Return the learner's score of the features made of `x`."""
        return self.lifted.score_one(self._lift(finite_features(x)))

    def contributions(self, x: Features, y: Label | None = None) -> Contributions:
        """Return value and weight of each made feature, the intercept last."""
        return self.lifted.contributions(dict(self._lift(x)), y)

    def check_weight(self, w: object) -> float:
        """Return the sample weight as a float, or raise `InvalidEvent`."""
        return self.lifted.check_weight(w)

    def track(self) -> None:
        """Note from now on which names change, as the learner does."""
        self.lifted.track()

    def stored_bytes(self) -> int:
        """Return the bytes of the numbers stored by name."""
        return self.lifted.stored_bytes()

    def get_state(self) -> dict[str, Any]:
        """Return the learner's state, with the scalars of `features`."""
        inner = self.lifted.get_state()
        own = {name: getattr(self.features, name) for name in self._LIFTING}
        return {**inner, "type": type(self).__name__, "scalars": {**inner["scalars"], **own}}

    def set_state(self, saved: Mapping[str, Any]) -> None:
        """Take over a saved state, or raise `InvalidState` and change nothing."""
        saved = state.checked_header(saved, type(self).__name__)
        scalars = saved.get("scalars")
        if not isinstance(scalars, Mapping):
            raise InvalidState(f"the scalars must be a mapping, not {shown(scalars)}")
        own = {n: state.scalar(n, kind, scalars.get(n)) for n, kind in self._LIFTING.items()}
        inner = {name: value for name, value in scalars.items() if name not in own}
        self.lifted.set_state({**saved, "type": type(self.lifted).__name__, "scalars": inner})
        for name, value in own.items():
            setattr(self.features, name, value)


class LiftedBinary(Lifted[BinaryLinearClassifier], BinaryLinearClassifier):
    """A binary learner that learns other features than the event's own.

    Parameters
    ----------
    learner
        A binary learner of this package that is not lifted itself, or `None` for `default`.
    default
        The learner in its place. The one in use is never touched: what learns is a clone.

    """

    def __init__(
        self, learner: BinaryLinearClassifier | None, default: BinaryLinearClassifier
    ) -> None:
        inner = default if learner is None else learner
        if not isinstance(inner, BinaryLinearClassifier) or isinstance(inner, Lifted):
            raise InvalidParameter(f"must be a binary learner of hinged, not {shown(inner)}")
        self.lifted = inner.clone()
        super().__init__(inner.fit_intercept)
        self.learner = learner
        self.label_at_zero = inner.label_at_zero

    @property
    def intercept(self) -> float:
        """The intercept of the weights that learn."""
        return self.lifted.intercept

    @intercept.setter
    def intercept(self, intercept: float) -> None:
        self.lifted.intercept = intercept

    @property
    def weights(self) -> Numbers:
        """A live, read-only view of the weights of the made features."""
        return self.lifted.weights

    @property
    def threshold(self) -> float:
        """The intercept as a threshold on the sum over the made features."""
        return self.lifted.threshold

    def _served_score(self, x: Event) -> float:
        return self.score_one(x)

    def predict_one(self, x: Event, **kwargs: object) -> bool:
        """Return the learner's label for the features made of `x`."""
        return self.lifted.predict_one(self._lift(finite_features(x)))
