"""The common part of all multiclass learners: labels, the rival, the accounting."""

from __future__ import annotations

import abc
import math
from collections.abc import Collection, Hashable
from numbers import Integral, Number
from typing import ClassVar, Generic, TypeVar, cast

from hinged import frames
from hinged.accounting import Fields
from hinged.base import LinearClassifier
from hinged.errors import InvalidEvent, InvalidState, shown
from hinged.events import Label, checked_features, plain
from hinged.kernel import best, class_at_once, learn_class, norm_of, softmax
from hinged.kernel.pure import ClassRule, class_rule
from hinged.parameters import checked_cap
from hinged.vector import Event, Features, Numbers, saturated

__all__ = [
    "DEFAULT_CLASSES",
    "MulticlassByParts",
    "MulticlassClassifier",
    "admitted_class",
    "best",
    "checked_class",
    "restored_classes",
    "softmax",
]

DEFAULT_CLASSES = 1_000
Part = TypeVar("Part")


class MulticlassClassifier(LinearClassifier):
    """A multiclass classifier that learns one event at a time.

    It scores every class; the label is the class of the highest score, of equal ones the
    class seen first.

    Parameters
    ----------
    fit_intercept
        Whether every class learns an intercept.
    max_classes
        Most classes. An event of a further class is refused.

    Attributes
    ----------
    accounting : Accounting
        Events, mistakes, updates and losses so far; the margin is the score of
        the event's class minus that of its rival, the best wrong class.
    clock : int
        Events of weight above 0 so far.

    """

    _CLASS_RULE: ClassVar[ClassRule] = ""
    """The number of the rule in the compiled kernel; a subclass does not inherit it."""
    _rule = 0

    def __init__(self, fit_intercept: bool, max_classes: int | None) -> None:
        super().__init__(fit_intercept)
        self.max_classes = checked_cap("max_classes", max_classes)
        self._rule = class_rule(self)

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    @abc.abstractmethod
    def classes(self) -> list[Label]:
        """The classes in the order in which they were seen."""

    def _known_classes(self) -> list[Label]:
        return self.classes

    @abc.abstractmethod
    def scores_one(self, x: Event) -> dict[Label, float]:
        """Return the finite score of every class, in the order the classes were seen.

        Parameters
        ----------
        x
            Feature names to finite real numbers; NaN and `None` count as absent.

        Raises
        ------
        InvalidEvent
            Naming the feature that is neither missing nor a finite real number.

        """

    @abc.abstractmethod
    def _check_label(self, y: Hashable) -> Label:
        """Return the label as plain Python, or raise `InvalidEvent`; nothing changes."""

    def score_one(self, x: Event) -> float:
        """Return the score of the predicted class; 0 while no class is known."""
        return max(self.scores_one(x).values(), default=0.0)

    def predict_one(self, x: Event, **kwargs: object) -> Label | None:
        """Return the class of the highest score, the first seen of equals; `None` without one."""
        found = class_at_once(self, x) if self._rule else None
        return best(self.scores_one(x)) if found is None else found

    def predict_proba_one(self, x: Event, **kwargs: object) -> dict[Label, float]:
        """Return the softmax of the scores by class; `{}` while no class is known.

        Not calibrated (`Calibrated` does that): it orders classes, and sums to 1. It is
        never NaN; 1 for the only class known, else neither 0 nor 1.
        """
        return softmax(self.scores_one(x))

    def explain_one(self, x: Event, y: Label | None = None) -> Features:
        """Return each feature's contribution to the score of a class, with the intercept.

        Parameters
        ----------
        x
            Feature names to finite real numbers.
        y
            A known class; by default the predicted one.

        """
        y = self.predict_one(x) if y is None else y
        return {n: v * w for n, (v, w) in self.contributions(checked_features(x), y).items()}


class MulticlassByParts(MulticlassClassifier, Generic[Part]):
    """A multiclass classifier in which every class has a part of its own, which gives its score.

    The rival of an event is the best wrong class. The first event of all has no prediction
    and no rival: neither right nor a mistake. Parameters and attributes are those of
    `MulticlassClassifier`.
    """

    _serves_raw = True
    """True if the scores that learn are also those that predict."""

    def __init__(self, fit_intercept: bool, max_classes: int | None) -> None:
        super().__init__(fit_intercept, max_classes)
        self._parts: dict[Label, Part] = {}

    @property
    def classes(self) -> list[Label]:
        """The classes in the order in which they were seen."""
        return list(self._parts)

    @abc.abstractmethod
    def _new_part(self) -> Part:
        """Return the part of a new class, tracked if this learner is."""

    def _add_class(self, label: Label, x: Numbers) -> float:
        """Add a class, and return its score for the event that brought it."""
        self._parts[label] = self._new_part()
        return 0.0

    @abc.abstractmethod
    def _raw_scores(self, x: Event) -> tuple[Numbers, dict[Label, float]]:
        """Return the event, cleaned if need be, and the scores of the weights that learn.

        A score is infinite if it is beyond the floats.
        """

    def _served_from(self, x: Numbers, raw: dict[Label, float]) -> dict[Label, float]:
        """Return the finite scores that predict, given those of the weights that learn."""
        return self.scores_one(x)

    @abc.abstractmethod
    def _learn_classes(
        self, x: Numbers, y: Label, rival: Label | None, margin: float, norm: float, w: float
    ) -> bool:
        """Let the classes learn the event; return whether any moved."""

    def _learn(self, x: Event, y: Hashable, w: float) -> Fields:
        fields = learn_class(self, x, y, w) if self._rule else None
        return fields or self._learn_in_steps(x, y, w)

    def _learn_in_steps(self, x: Event, label: Hashable, w: float) -> Fields:
        y = self._check_label(label)
        if type(w) is not float or w != 1.0:
            w = self.check_weight(w)
        numbers, scores = self._raw_scores(x)
        served = scores if self._serves_raw else self._served_from(numbers, scores)
        y_pred = best(served)
        score = 0.0 if y_pred is None else saturated(served[y_pred])
        account = self.accounting
        account.events += 1
        if w == 0.0:
            return y_pred, score, False, False, 0.0
        self.clock += 1
        mistake = y_pred is not None and y_pred != y
        if mistake:
            account.mistakes += 1
        norm = norm_of(numbers)
        account.add_norm(norm, self._constant)
        own = scores.pop(y) if y in self._parts else self._add_class(y, numbers)
        rival = best(scores)
        distance = 0.0 if rival is None else own - scores[rival]
        margin = 0.0 if math.isnan(distance) else saturated(distance)  # both may be infinite
        loss = 0.0
        if margin < 1.0:
            loss = saturated(1.0 - margin)
            account.add_margin(margin)
        updated = self._learn_classes(numbers, y, rival, distance, norm, w)
        if updated:
            account.updates += 1
        return y_pred, score, mistake, updated, loss

    def _check_label(self, y: Hashable) -> Label:
        return admitted_class(y, self._parts, self.max_classes)

    def _check_labels(self, labels: list[Hashable]) -> None:
        seen = dict.fromkeys(self._parts)  # each label is checked beside those before it

        def check(y: Hashable) -> None:
            seen[admitted_class(y, seen, self.max_classes)] = None

        frames.each_row(labels, check)


def restored_classes(classes: object) -> list[Label]:
    """Return saved classes, which must be distinct labels of one type, or raise `InvalidState`."""
    if not isinstance(classes, (list, tuple)):
        raise InvalidState(f"classes must be a list of labels, not {type(classes).__name__}")
    try:
        checked = [checked_class(label) for label in classes]
    except InvalidEvent as error:
        raise InvalidState(f"a class {error.reason}") from None
    if len(set(checked)) != len(checked) or len(set(map(type, checked))) > 1:
        raise InvalidState("classes must be distinct labels of one type")
    return checked


def checked_class(y: Hashable) -> Label:
    """Return a label of a multiclass learner as plain Python.

    Parameters
    ----------
    y
        A hashable value: a string, a whole number, a truth value, a tuple; a scalar
        of NumPy or Arrow stands for its value.

    Raises
    ------
    InvalidEvent
        For `None`, a fraction (NaN included) and what is not hashable.

    """
    if type(y) is str or type(y) is int or type(y) is bool:
        return y
    value = plain(y)
    if value is None or (isinstance(value, Number) and not isinstance(value, Integral)):
        raise InvalidEvent(
            "y", f"must be a label, neither missing nor a fraction, not {shown(value)}"
        )
    try:
        hash(value)
        same = bool(value == value)  # not so for values that mean "missing"
    except (TypeError, ValueError):
        same = False
    if not same:
        raise InvalidEvent("y", f"must be a label, not {shown(value)}")
    return cast("Label", value)


def admitted_class(y: Hashable, known: Collection[Label], cap: int | None) -> Label:
    """Return a label, if it is of the type of the known ones and not one class too many."""
    label = checked_class(y)
    if known:
        kind = type(next(iter(known)))
        if type(label) is not kind:
            raise InvalidEvent(
                "y", f"must be of type {kind.__name__} as before, not {shown(label)}"
            )
        if label not in known and cap is not None and len(known) >= cap:
            raise InvalidEvent("y", f"must be a known class: all {cap} are taken")
    return label
