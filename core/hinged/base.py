"""Base class of all linear learners: how events come in and answers go out."""

from __future__ import annotations

import abc
import enum
import math
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from river import base

from hinged import frames
from hinged.accounting import Accounting, Fields, Outcome, outcome_of
from hinged.events import Label, checked_features
from hinged.parameters import Parameter, checked_flag
from hinged.vector import Event, Features

__all__ = ["INTERCEPT", "Contributions", "LinearClassifier"]


class _Name(enum.Enum):
    INTERCEPT = "intercept"


INTERCEPT = _Name.INTERCEPT
"""The intercept's name among contributions: equal to no feature name."""
Contributions = dict[Hashable, tuple[float, float]]
"""Value and weight by feature name, the intercept last under `INTERCEPT`."""


class LinearClassifier(base.MiniBatchClassifier):
    """A classifier that learns one event at a time and accounts for each.

    Parameters
    ----------
    fit_intercept
        Whether an intercept is learned beside the weights, as the weight of a
        constant feature of value 1.

    Attributes
    ----------
    accounting : Accounting
        Events, mistakes, updates and losses so far.
    clock : int
        Events of weight above 0 so far.

    """

    def __init__(self, fit_intercept: bool = True) -> None:
        self.fit_intercept = checked_flag("fit_intercept", fit_intercept)
        self._constant = 1.0 if self.fit_intercept else 0.0
        self.accounting = Accounting()
        self.clock = 0

    _tracking = False

    @property
    def _mutable_attributes(self) -> set[str]:
        attributes = [item for kind in type(self).__mro__ for item in vars(kind).items()]
        return {n for n, value in attributes if isinstance(value, Parameter) and value.mutable}

    @abc.abstractmethod
    def get_state(self) -> dict[str, Any]:
        """Return all that is needed to go on learning exactly where this stands.

        Returns
        -------
        `{"version", "type", "scalars": {name: number}, "vectors": {name:
        WeightVector}}`, of a multiclass learner `"classes"` in order too. Scalars are
        copies, the vectors are the live ones. Derived numbers (averages, penalties
        caught up) are never stored.

        """

    @abc.abstractmethod
    def set_state(self, saved: Mapping[str, Any]) -> None:
        """Take over a state that `get_state` gave, here or in another process.

        Parameters
        ----------
        saved
            As `get_state` returns it. A `WeightVector` is copied; a plain
            dictionary in its place, as read from a store, is taken over.

        Raises
        ------
        InvalidState
            If it is of another version or learner, lacks a part, or holds
            anything but finite numbers, or a negative count. The learner has not
            changed.

        """

    @property
    @abc.abstractmethod
    def numbers_per_name(self) -> int:
        """The most numbers that learning one event stores for a name that is new."""

    @abc.abstractmethod
    def stored_bytes(self) -> int:
        """Return what is stored by name takes, each number with its name.

        A number counts `hinged.vector.VALUE_BYTES`. What only some rules fill later, such as
        the pocket, counts from the start.
        """

    @abc.abstractmethod
    def growth_bytes(self, x: Event, y: Hashable, enough: float = math.inf) -> int:
        """Return how many more bytes learning `x` with the label `y` may store at most.

        0 if all names of `x` are stored wherever it may store them; a number above `enough`
        may be too small. Time is linear in the names of `x`, times the vectors.
        """

    def track(self) -> None:
        """Note from now on which names change, in every vector, those of new classes included.

        `get_state()["vectors"]` are the vectors, `take_changed` of each tells the
        names. After a state is set, track again.

        """
        self._tracking = True
        for vector in self.get_state()["vectors"].values():
            vector.track()

    @abc.abstractmethod
    def _learn(self, x: Event, y: Hashable, w: float) -> Fields:
        """Validate, predict, account and learn, in this order."""

    @abc.abstractmethod
    def score_one(self, x: Event) -> float:
        """Return the finite score behind the predicted label."""

    @abc.abstractmethod
    def predict_one(self, x: Event, **kwargs: object) -> Label | None:
        """Return the label of `x`; `None` while no class is known."""

    @abc.abstractmethod
    def predict_proba_one(self, x: Event, **kwargs: object) -> dict[Label, float]:
        """Return a finite number for each known class; they sum to 1."""

    @abc.abstractmethod
    def _check_label(self, y: Hashable) -> object:
        """Return what identifies the label, or raise `InvalidEvent`; nothing changes."""

    @abc.abstractmethod
    def check_weight(self, w: object) -> float:
        """Return the sample weight as a float, or raise `InvalidEvent`."""

    @abc.abstractmethod
    def contributions(self, x: Features, y: Label | None = None) -> Contributions:
        """Return value and weight of each feature of a checked event, for the class `y` if many."""

    def learn_one(self, x: Event, y: Hashable, w: float = 1.0) -> None:
        """Learn from one labelled event.

        Parameters
        ----------
        x
            Feature names to finite real numbers. An absent feature counts as 0. A
            value of NaN or `None` is missing: the learner goes on as if the feature
            were absent, in predictions too. Infinity is refused.
        y
            The label. Binary: true or false (or 1 or 0, or 1 or -1); what is predicted
            is always true or false. Multiclass: any hashable value, all labels of one
            type.
        w
            Sample weight, finite and at least 0. Weight 0 moves nothing.

        Raises
        ------
        InvalidEvent
            Naming the field; the learner has not changed.

        """
        self._learn(x, y, w)

    def predict_learn_one(self, x: Event, y: Hashable, w: float = 1.0) -> Outcome:
        """Predict, score, then learn: one step of progressive validation.

        Same parameters, effect and errors as `learn_one`.

        Returns
        -------
        What was predicted before learning, and what learning did.

        """
        fields = self._learn(x, y, w)
        return fields if type(fields) is Outcome else outcome_of(Outcome, fields)

    def learn_many(self, X: frames.Frame, y: frames.Series, w: float | frames.Series = 1.0) -> None:
        """Learn the rows of a frame one after the other.

        Equal, bit for bit, to calling `learn_one` on each row in order, with the
        features in column order. A binary rule in C lets other threads of Python run
        meanwhile; one that uses the same learner waits for the end.

        Parameters
        ----------
        X
            A frame of n rows (pandas, Polars, PyArrow or another that narwhals takes);
            a null or NaN is an absent feature.
        y
            A series of n labels (pandas, Polars, PyArrow, NumPy, a list), none of them
            null. They are learned as plain Python values: categories as what they
            stand for.
        w
            One sample weight for all rows, or a series of n, likewise.

        Raises
        ------
        InvalidEvent
            Naming row and field, before any row has been learned.

        """
        rows = frames.checked_rows(X, y, w, self._check_labels, self.check_weight)
        for x, label, weight in rows:
            self.learn_one(x, label, weight)

    def _check_labels(self, labels: list[Hashable]) -> None:
        frames.each_row(labels, self._check_label)

    def predict_many(self, X: frames.Frame) -> frames.Series:
        """Return the labels of the rows of `X` as a series, index kept."""
        labels = [self.predict_one(x) for x in frames.rows(X)]
        return frames.labels(labels, X, boolean=not self._multiclass)

    def predict_proba_many(self, X: frames.Frame) -> frames.Frame:
        """Return a frame with a column per class, `False` and `True` if binary, index kept."""
        probas = [self.predict_proba_one(x) for x in frames.rows(X)]
        return frames.frame({c: [p[c] for p in probas] for c in self._known_classes()}, like=X)

    def _known_classes(self) -> Iterable[Label]:
        return False, True

    def explain_one(self, x: Event) -> Features:
        """Return what each feature adds to the score, the intercept under `INTERCEPT`.

        The values sum to `score_one(x)` up to rounding. Time linear in `x`.
        """
        return {n: v * w for n, (v, w) in self.contributions(checked_features(x)).items()}

    def debug_one(self, x: Event, **kwargs: object) -> str:
        """Return a text table of what each feature adds to the score, largest first."""
        clean = checked_features(x)
        rows = sorted(
            self.contributions(clean, self.predict_one(clean)).items(),
            key=lambda item: (-abs(item[1][0] * item[1][1]), str(item[0])),
        )
        table: list[tuple[str, ...]] = [("Name", "Value", "Weight", "Contribution")]
        table += [
            ("Intercept" if name is INTERCEPT else str(name), *map(_short, (v, w, v * w)))
            for name, (v, w) in rows
        ]
        widths = [max(len(row[i]) for row in table) for i in range(4)]
        lines = ["  ".join(c.rjust(n) for c, n in zip(row, widths, strict=True)) for row in table]
        return "\n".join(lines)


def _short(value: float) -> str:
    return f"{value:.5f}"
