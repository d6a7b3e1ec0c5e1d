"""Auto: the learner that needs no choice."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

from hinged import frames, members, state
from hinged.accounting import Fields
from hinged.auto_scaler import NUMBERS, AutoScaler
from hinged.base import INTERCEPT, Contributions, LinearClassifier
from hinged.binary import probabilities
from hinged.events import Label, binary_target, checked_features, checked_weight
from hinged.hedge import Hedge, default_pool
from hinged.kernel import both_probabilities, norm_of
from hinged.kernel.pure import taught
from hinged.multiclass import (
    DEFAULT_CLASSES,
    admitted_class,
    best,
    restored_classes,
    softmax,
)
from hinged.multiclass_hedge import MulticlassHedge, default_multiclass_pool
from hinged.parameters import checked_cap
from hinged.state import COUNT
from hinged.vector import Event, Features, Numbers

__all__ = ["Auto"]

Scores = dict[Label, float]
_RATE = 0.3
"""Rate at which the pool of two classes loses trust."""


class Auto(LinearClassifier):
    """A pool of learners over features that are scaled as they come, for labels of any number.

    Each event is scaled by an `AutoScaler` that has learned it, then it goes to the pool
    with its label. The labels decide which pool:

    - True and False: a `Hedge` of learning rate 0.3, from the first label on.
    - Strings, whole numbers or other labels: both a `Hedge` and a `MulticlassHedge` learn
      while there are two labels at most, and the `Hedge` predicts. With the third label its
      weights are dropped, and the `MulticlassHedge`, which has learned every event, goes on.
    - `max_classes=2`: a binary learner like all of them, of a `Hedge` alone: labels are
      true and false (or 1 and 0, or 1 and -1), predicted are `True` and `False`, and the
      score is the log-odds of true.

    All labels are of one type. Probabilities are calibrated as it learns. Without
    `max_classes=2`, the score of a class is the logarithm of its probability.

    Time and memory are those of the pools together, and of eight numbers per feature.

    Parameters
    ----------
    max_classes
        The most classes, or `None` for no limit; an event of one more is refused.
    max_features
        The most feature names kept by each expert, or `None` for no limit.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from hinged import Auto

    >>> evaluate.progressive_val_score(datasets.Phishing(), Auto(), metrics.Accuracy())
    Accuracy: 90.31%
    >>> evaluate.progressive_val_score(datasets.ImageSegments(), Auto(), metrics.Accuracy())
    Accuracy: 89.39%

    """

    def __init__(
        self,
        max_classes: int | None = DEFAULT_CLASSES,
        max_features: int | None = None,
    ) -> None:
        super().__init__()
        self.max_classes = checked_cap("max_classes", max_classes)
        self.max_features = checked_cap("max_features", max_features)
        self._binary = self.max_classes == 2
        self._scaler = AutoScaler(self.max_features)
        self._classes: list[Label] = [False, True] if self._binary else []
        self._pair = self._new_pair()
        self._many = self._new_many()

    @property
    def _multiclass(self) -> bool:
        return not self._binary

    @property
    def classes(self) -> list[Label]:
        """The classes in the order in which they were seen; false and true of a binary learner."""
        return list(self._classes)

    @property
    def pool(self) -> Hedge | MulticlassHedge:
        """The pool that predicts."""
        return self._pair if self._many is None or len(self._classes) <= 2 else self._many

    def _pools(self) -> list[Hedge | MulticlassHedge]:
        return [self._pair] if self._many is None else [self._pair, self._many]

    def _new_pair(self) -> Hedge:
        return Hedge(default_pool(self.max_features), _RATE)

    def _new_many(self) -> MulticlassHedge | None:
        """Return a pool for more than two classes, if there may be more than these."""
        if self._binary or (self._classes and isinstance(self._classes[0], bool)):
            return None
        models = default_multiclass_pool(self.max_classes, self.max_features)
        return MulticlassHedge(models, max_classes=self.max_classes)

    def _learn(self, x: Event, y: Hashable, w: float) -> Fields:
        label = self._check_label(y)
        if type(w) is not float or w != 1.0:
            w = self.check_weight(w)
        z = self._scaler.scaled_after(x, learn=w != 0.0)
        account = self.accounting
        account.events += 1
        if w == 0.0:
            y_pred, score = self._answer(z)
            return y_pred, score, False, False, 0.0
        self.clock += 1
        known = self._classes
        self._meet(label)
        outcomes: list[Fields] = []
        if len(self._classes) <= 2:
            positive = label != self._classes[0]
            outcomes.append(taught(self._pair, z, positive, w, account))
            y_pred, score = self._of_two(outcomes[0][1], known)
        elif len(known) == 2:  # the pool of two predicts for the last time
            y_pred, score = self._of_two(self._pair.score_one(z), known)
            self._forget_pair()
        if self._many is not None:
            outcomes.append(taught(self._many, z, label, w, account))
        if len(known) > 2:
            y_pred, score = outcomes[0][:2]
        loss = outcomes[0][4]
        if loss > 0.0:
            account.add_margin(1.0 - loss)
        account.add_norm(norm_of(z), self._constant)
        mistake = y_pred is not None and y_pred != label
        account.mistakes += mistake
        updated = outcomes[0][3] or outcomes[-1][3]
        account.updates += updated
        return y_pred, score, mistake, updated, loss

    def _meet(self, label: Label) -> None:
        """Take in the class of an event."""
        if label not in self._classes:
            self._classes = [*self._classes, label]
            if isinstance(label, bool):
                self._many = None  # it has learned nothing yet

    def _forget_pair(self) -> None:
        """Drop the weights of the pool of two; names of vectors in a saved state never change."""
        for vector in self._pair.get_state()["vectors"].values():
            vector.clear()

    def _answer(self, z: Numbers) -> tuple[Label | None, float]:
        """Return label and score of a scaled event."""
        if len(self._classes) > 2:
            shares = self._shares(z)
            return best(shares), max(shares.values())
        return self._of_two(self._pair.score_one(z), self._classes)

    def _of_two(self, log_odds: float, classes: list[Label]) -> tuple[Label | None, float]:
        """Return label and score of an event, given the log-odds of the second class."""
        if self._binary:
            return log_odds > 0.0, log_odds
        if len(classes) < 2:
            return (classes[0] if classes else None), 0.0
        first, second = map(math.log, both_probabilities(log_odds))
        return (classes[1], second) if second > first else (classes[0], first)

    def _shares(self, z: Numbers) -> Scores:
        """Return the logarithm of the probability of each class."""
        if self._many is not None and len(self._classes) > 2:
            return self._many.scores_one(z)
        return _shares_of_two(self._pair.score_one(z), self._classes)

    def scores_one(self, x: Event) -> Scores:
        """Return the logarithm of the probability of every class, in the order they were seen."""
        return self._shares(self._scaler.scaled_after(x, learn=False))

    def score_one(self, x: Event) -> float:
        """Return the score behind the label: see the class; 0 while no class is known."""
        return self._answer(self._scaler.scaled_after(x, learn=False))[1]

    def predict_one(self, x: Event, **kwargs: object) -> Label | None:
        """Return the likeliest class, the first of equals; `None` while no class is known."""
        z = self._scaler.scaled_after(x, learn=False)
        if self._many is not None and len(self._classes) > 2:
            return self._many.predict_one(z)
        return self._of_two(self._pair.score_one(z), self._classes)[0]

    def predict_proba_one(self, x: Event, **kwargs: object) -> dict[Label, float]:
        """Return the probability of each class, calibrated online; `{}` while none is known."""
        if self._binary:
            return probabilities(self.score_one(x))
        return softmax(self.scores_one(x))

    def explain_one(self, x: Event, y: Label | None = None) -> Features:
        """Return what each expert adds to the score of a class, the rest under `INTERCEPT`.

        Parameters
        ----------
        x
            Feature names to finite real numbers.
        y
            A known class; by default the predicted one. Without meaning for a binary learner.

        """
        y = self.predict_one(x) if y is None else y
        return {n: v * w for n, (v, w) in self.contributions(checked_features(x), y).items()}

    def contributions(self, x: Features, y: Label | None = None) -> Contributions:
        """Return log-odds, or log-share, and weight of each expert, by `"expert i"`."""
        z = self._scaler.expect_one(x)
        parts = self.pool.contributions(z, y)
        if self._binary or len(self._classes) > 2:
            return parts
        scores = self._shares(z)
        if len(scores) < 2 or y not in scores:
            parts = {}
        elif y == self._classes[0]:
            parts = {name: (-value, weight) for name, (value, weight) in parts.items()}
        rest = 0.0 if y is None else scores.get(y, 0.0)
        for value, weight in parts.values():
            rest -= value * weight
        return {**parts, INTERCEPT: (1.0, rest)}

    def _known_classes(self) -> list[Label]:
        return self.classes

    def _check_label(self, y: Hashable) -> Label:
        if self._binary:
            return binary_target(y) > 0.0
        return admitted_class(y, self._classes, self.max_classes)

    def _check_labels(self, labels: list[Hashable]) -> None:
        seen = dict.fromkeys(self._classes)  # each label is checked beside those before it

        def check(y: Hashable) -> None:
            label = (
                self._check_label(y) if self._binary else admitted_class(y, seen, self.max_classes)
            )
            seen[label] = None

        frames.each_row(labels, check)

    def check_weight(self, w: object) -> float:
        """Return the sample weight as a float, or raise `InvalidEvent`."""
        return checked_weight(w)

    def track(self) -> None:
        """Note from now on which names change, those of new classes included."""
        for pool in self._pools():
            pool.track()

    @property
    def numbers_per_name(self) -> int:
        """The most numbers that the scaler and all experts store for a name of one event."""
        return NUMBERS + sum(pool.numbers_per_name for pool in self._pools())

    def stored_bytes(self) -> int:
        """Return what the numbers stored by name take."""
        return self._scaler.stored_bytes() + sum(pool.stored_bytes() for pool in self._pools())

    def growth_bytes(self, x: Event, y: Hashable, enough: float = math.inf) -> int:
        """Return how many more bytes learning `x` with the label `y` may store at most."""
        more = self._scaler.growth_bytes(x)
        z = self._scaler.scaled_after(x, learn=False)  # what is stored may depend on the values
        for pool in self._pools():
            if more > enough:
                break
            more += pool.growth_bytes(z, y, enough - more)
        return more

    def get_state(self) -> dict[str, Any]:
        """Return all that is needed to go on learning, as `LinearClassifier.get_state` says.

        `"members"` are the types of the pools there are; the scalars and vectors of pool i
        are named `"i/..."`. `"scaler"` is the state of the `AutoScaler`.
        """
        own = {"clock": self.clock}
        flat = members.flat_state(type(self).__name__, own, self.accounting, self._pools())
        flat["scaler"] = self._scaler.get_state()
        return flat if self._binary else {**flat, "classes": self.classes}

    def set_state(self, saved: Mapping[str, Any]) -> None:
        """Take over a saved state, or raise `InvalidState` and change nothing."""
        saved = state.checked_header(saved, type(self).__name__)
        classes = self._classes if self._binary else restored_classes(saved.get("classes"))
        scalars, account = members.restored_account(saved, {"clock": COUNT})
        scaler = AutoScaler(self.max_features)
        scaler.set_state(saved.get("scaler", {}))
        fresh = Auto(self.max_classes, self.max_features)
        fresh._classes = classes
        fresh._many = fresh._new_many()
        members.restored(saved, fresh._pools())
        self._scaler, self._classes = scaler, classes
        self._pair, self._many = fresh._pair, fresh._many
        self.clock = scalars["clock"]
        self.accounting = account


def _shares_of_two(log_odds: float, classes: list[Label]) -> Scores:
    """Return the logarithm of the probability of each class, given the log-odds of the second."""
    if len(classes) < 2:
        return dict.fromkeys(classes, 0.0)
    return dict(zip(classes, map(math.log, both_probabilities(log_odds)), strict=True))
