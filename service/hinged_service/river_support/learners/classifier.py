"""River classifiers that predict and learn within the bounds of a spec."""

from __future__ import annotations

import collections
import copy
import math
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, cast

from river import base

import hinged
from hinged.events import checked_numbers
from hinged_service.river_support import state
from hinged_service.river_support.lazy import linear_model
from hinged_service.river_support.learners.interface import Features, Label
from hinged_service.river_support.learners.rules import teach
from hinged_service.wire.codec import DamagedState
from hinged_service.wire.faults import MAX_VALUE

__all__ = ["Checked", "OneVsOne", "RiverClassifier", "linear_weights"]

_PROBED = 100
_DAMAGE = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
_HEAVIEST = 1e200
"""Beyond the weights that events within their bounds can make."""

Checked = dict[Any, Any]
"""Features as a classifier takes them: floats, but for one of the operator's own."""


class RiverClassifier:
    """A River classifier that learns, and the untrained one that it is a copy of.

    Parameters
    ----------
    fresh
        The untrained classifier, never touched: what learns is a copy.
    weighted
        Whether its `learn_one` takes a sample weight.
    constant
        1 if it learns an intercept, else 0: part of the radius.
    nonnegative
        Whether it takes counts only.
    max_leaves
        The leaves at which its trees stop growing.
    numbers
        The numbers that it stores for a name, for each class if there are several: as many as
        take the same memory.

    """

    def __init__(
        self,
        fresh: base.Classifier,
        weighted: bool = False,
        constant: float = 0.0,
        nonnegative: bool = False,
        max_leaves: int | None = None,
        numbers: int = 1,
    ) -> None:
        self.fresh = fresh
        self.model = copy.deepcopy(fresh)
        self.weighted = weighted
        self.constant = constant
        self.nonnegative = nonnegative
        self._max_leaves = max_leaves
        self._numbers = numbers

    def numbers_per_name(self, classes: int) -> int:
        """Return how many numbers it stores for a name while it knows so many classes."""
        return self._numbers * max(1, classes) * self._leaves()

    def _leaves(self) -> int:
        if self._max_leaves is None:
            return 1
        trees = list(getattr(self.model, "models", (self.model,)))
        leaves: int = sum(tree.n_active_leaves + tree.n_inactive_leaves for tree in trees)
        return max(1, leaves // len(trees))

    def checked(self, x: Features) -> Checked:
        """Return the features as it takes them, or raise `InvalidEvent` naming one."""
        clean = checked_numbers(x)
        for name, value in clean.items():
            if not -MAX_VALUE <= value <= MAX_VALUE:
                raise hinged.InvalidEvent(f"x[{name!r}]", "must be between -1e100 and 1e100")
        if self.nonnegative:
            for name, value in clean.items():
                if value < 0.0:
                    raise hinged.InvalidEvent(f"x[{name!r}]", "must be at least 0: it is a count")
        return clean

    def norm(self, x: Checked) -> float:
        """Return the Euclidean norm of features, 0 if it cannot be computed."""
        return math.hypot(*x.values())

    def probabilities(self, x: Checked) -> Mapping[Any, float]:
        """Return River's probabilities, `{}` where it fails on values that leave none."""
        try:
            return self.model.predict_proba_one(x)
        except (ArithmeticError, ValueError):
            return {}

    def is_positive(self, x: Checked) -> bool:
        """Return the label of a binary classifier at probability 0.5."""
        return False

    def teach(self, x: Checked, y: Label, w: float, classes: Iterable[Label]) -> None:
        """Learn an event; `classes` are those seen before, in that order."""
        teach(self.model, x, y, w if self.weighted else None)
        if self._max_leaves is not None:
            grown: Any = self.model
            for one in getattr(grown, "models", (grown,)):  # bagged ones, or the one
                if one.n_active_leaves + one.n_inactive_leaves >= self._max_leaves:
                    vars(one)["_growth_allowed"] = False

    def weights(self) -> dict[str, Any] | None:
        """Return copies of the weights and the intercept; `None` if it is not linear."""
        return linear_weights(self.model)

    def check_saved(self, saved: Mapping[str, Any]) -> None:
        """Refuse a stored state that must not be decoded."""

    def own_scalars(self) -> dict[str, Any]:
        """Return the values that are stored beside the model."""
        return {}

    def restore(self, scalars: Mapping[str, Any], names: Iterable[Any]) -> None:
        """Take over the model of a stored state.

        Raises
        ------
        InvalidState
            It is damaged, or of another spec. The model has not changed.

        """
        try:
            model = cast("base.Classifier", state.decode(scalars["model"]))
            same = type(model) is type(self.fresh) and (
                state.digest(model.clone()) == state.digest(self.fresh.clone())
            )
        except (DamagedState, *_DAMAGE) as error:
            raise hinged.InvalidState(f"the model is damaged: {error}") from None
        if not same:
            raise hinged.InvalidState("the model is another one than the spec describes")
        before, self.model = self.model, model
        try:
            self._try(names)
        except _DAMAGE as error:
            self.model = before
            raise hinged.InvalidState(f"the model is damaged: {error}") from None

    def _try(self, names: Iterable[Any]) -> None:
        """Ask a restored model: parts that decode may still not go together."""
        found = linear_weights(self.model)
        if found is not None:
            weights, intercept = found["weights"], found["intercept"]
            if set(map(type, weights)) - {str}:
                raise ValueError("the name of a weight is not text")
            numbers = (intercept, *weights.values())
            if set(map(type, numbers)) - {float, int}:
                raise ValueError("a weight is not a Python number")
            if not all(abs(number) <= _HEAVIEST for number in numbers):
                raise ValueError("a weight is too large")
        self.probabilities(dict.fromkeys(islice(names, _PROBED), 0.0))


class OneVsOne(RiverClassifier):
    """River's one against one: the probability of a class is its share of the votes.

    River iterates over a set when a class is new, so that the order of its classifiers
    would depend on the process; here they are made in the order of the classes first.
    """

    def numbers_per_name(self, classes: int) -> int:
        """Return how many numbers the classifiers of all pairs store for a name."""
        return self._numbers * max(1, classes * (classes - 1) // 2)

    def probabilities(self, x: Checked) -> Mapping[Any, float]:
        """Return the shares of the votes."""
        pairs = self._pairs()
        votes: dict[Label, int] = collections.Counter()
        for (first, second), classifier in pairs.items():
            votes[second if classifier.predict_one(x) else first] += 1
        return {label: n / len(pairs) for label, n in votes.items()}

    def teach(self, x: Checked, y: Label, w: float, classes: Iterable[Label]) -> None:
        """Learn an event, having made the classifiers of a new class."""
        if y not in classes:
            for c in classes:
                self._pairs()[(c, y) if c < y else (y, c)]  # type: ignore[operator]
        super().teach(x, y, w, classes)

    def _pairs(self) -> dict[tuple[Label, Label], base.Classifier]:
        pairs: dict[tuple[Label, Label], base.Classifier] = vars(self.model)["classifiers"]
        return pairs


def linear_weights(model: object) -> dict[str, Any] | None:
    """Return copies of the weights and the intercept of a River classifier, `None` of others."""
    if isinstance(model, linear_model.ALMAClassifier):
        return {"weights": dict(model.w), "intercept": 0.0}
    if isinstance(model, (linear_model.LogisticRegression, linear_model.PAClassifier)):
        return {"weights": dict(model.weights), "intercept": model.intercept}
    return None
