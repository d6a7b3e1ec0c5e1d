"""The common part of all multiclass linear learners: one weight vector per class."""

from __future__ import annotations

import abc
import math
from collections.abc import Hashable, Mapping
from numbers import Integral, Number
from typing import Any, ClassVar

from hinged import frames, state
from hinged.accounting import Accounting, Fields
from hinged.base import INTERCEPT, LinearClassifier
from hinged.binary import ACCOUNT, inside
from hinged.errors import InvalidEvent, InvalidState, shown
from hinged.events import checked_features, checked_weight, plain
from hinged.parameters import checked_cap
from hinged.state import COUNT, SIGNED, ScalarType
from hinged.vector import Features, WeightVector, room, saturated, wide_dot

__all__ = [
    "DEFAULT_CLASSES",
    "ClassWeights",
    "MulticlassLinearClassifier",
    "admitted_class",
    "admitted_classes",
    "best",
    "checked_class",
    "restored_classes",
    "softmax",
]

DEFAULT_CLASSES = 1_000


class ClassWeights:
    """The linear function of one class, and what its rule keeps beside it.

    Parameters
    ----------
    aside_intercept
        The first value of the second intercept.

    """

    __slots__ = ("aside", "aside_intercept", "intercept", "weights")

    def __init__(self, aside_intercept: float = 0.0) -> None:
        self.weights = WeightVector()
        self.intercept = 0.0
        self.aside = WeightVector()
        self.aside_intercept = aside_intercept


class MulticlassLinearClassifier(LinearClassifier):
    """A multiclass linear classifier that learns one event at a time.

    Every class has a weight vector; the label is the class of the highest score,
    of equal ones the class seen first. Learning is ultraconservative: only the
    event's class and its rival, the best wrong class, move. The first event of
    all has no prediction and no rival: neither right nor a mistake, no update.

    Parameters
    ----------
    fit_intercept
        Whether every class learns an intercept.
    max_classes
        The most classes; an event of one more is refused.
    max_features
        The most feature names kept, or `None` for no limit.

    Attributes
    ----------
    accounting : Accounting
        Events, mistakes, updates and losses so far; the margin is the score of
        the event's class minus that of its rival.
    clock : int
        Events of weight above 0 so far.

    """

    _ASIDE: ClassVar[str | None] = None
    """What the rule calls the second vector of a class, if it has one."""
    _ASIDE_START: ClassVar[float] = 0.0
    _SCALARS: ClassVar[dict[str, ScalarType]] = {}
    _update_margin = 0.0
    _serves_raw = True

    def __init__(
        self,
        fit_intercept: bool = True,
        max_classes: int | None = DEFAULT_CLASSES,
        max_features: int | None = None,
    ) -> None:
        super().__init__(fit_intercept)
        self.max_features = checked_cap("max_features", max_features)
        self.max_classes = checked_cap("max_classes", max_classes)
        self._parts: dict[Any, ClassWeights] = {}
        self._names: dict[Hashable, None] = {}

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    def classes(self) -> list[Any]:
        """The classes in the order in which they were seen."""
        return list(self._parts)

    @property
    def weights(self) -> dict[Any, Mapping[Any, float]]:
        """The weights that predict, by class; reading never creates one."""
        return {label: self._served_weights(part) for label, part in self._parts.items()}

    @property
    def intercepts(self) -> dict[Any, float]:
        """The intercepts that predict, by class."""
        return {label: self._served_intercept(part) for label, part in self._parts.items()}

    @abc.abstractmethod
    def _update(
        self,
        x: Mapping[Any, Any],
        right: ClassWeights,
        rival: ClassWeights,
        margin: float,
        norm: float,
        w: float,
    ) -> bool:
        """Move the event's class and its rival, both or neither.

        The margin is not finite if a score overflowed: a step that depends on it is refused.
        """

    def _served_weights(self, part: ClassWeights) -> Mapping[Any, float]:
        return part.weights.view()

    def _served_intercept(self, part: ClassWeights) -> float:
        return part.intercept

    def _served_score(self, part: ClassWeights, x: Mapping[Any, Any]) -> float:
        return part.weights.dot(x) + part.intercept

    def _served_weight(self, part: ClassWeights, name: Hashable) -> float:
        return part.weights.get(name)

    def _learn(self, x: Mapping[Any, Any], y: Any, w: float) -> Fields:
        y = self._check_label(y)
        if type(w) is not float or w != 1.0:
            w = self.check_weight(w)
        x, scores = self._raw_scores(x)
        served = scores if self._serves_raw else self._served_from(x, scores)
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
        norm = math.hypot(*x.values())
        account.add_norm(norm, self._constant)
        if y not in self._parts:
            self._parts[y] = part = ClassWeights(self._ASIDE_START)
            if self._tracking:
                part.weights.track()
                part.aside.track()
        own = scores.pop(y, 0.0)
        rival = best(scores)
        distance = 0.0 if rival is None else own - scores[rival]
        margin = 0.0 if math.isnan(distance) else saturated(distance)  # both may be infinite
        loss = 0.0
        if margin < 1.0:
            loss = saturated(1.0 - margin)
            account.add_margin(margin)
        updated = (
            rival is not None
            and margin <= self._update_margin
            and self._update(x, self._parts[y], self._parts[rival], distance, norm, w)
        )
        if updated:
            account.updates += 1
            if self.max_features is not None:
                moved = self._parts[y].weights.view()
                self._names.update((name, None) for name in x if name in moved)
        return y_pred, score, mistake, updated, loss

    def _served_from(self, x: Mapping[Any, Any], raw: dict[Any, float]) -> dict[Any, float]:
        """Return the finite scores that predict, given those of the weights that learn."""
        return self.scores_one(x)

    def _raw_scores(self, x: Mapping[Any, Any]) -> tuple[Mapping[Any, Any], dict[Any, float]]:
        """Return the event, cleaned if need be, and the scores of the weights that learn.

        A score is infinite if it is beyond the floats.
        """
        if not self._parts:
            return checked_features(x), {}
        try:
            scores = {y: p.weights.dot(x) + p.intercept for y, p in self._parts.items()}
            if all(map(math.isfinite, scores.values())):
                return x, scores
        except TypeError:
            pass
        x = checked_features(x)
        scores = {y: p.weights.dot(x) + p.intercept for y, p in self._parts.items()}
        if all(map(math.isfinite, scores.values())):
            return x, scores
        return x, {y: wide_dot(p.weights.get, x) + p.intercept for y, p in self._parts.items()}

    def scores_one(self, x: Mapping[Any, Any]) -> dict[Any, float]:
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
        if not self._parts:
            checked_features(x)
            return {}
        try:
            scores = {y: self._served_score(part, x) for y, part in self._parts.items()}
            if all(map(math.isfinite, scores.values())):
                return scores
        except TypeError:
            pass
        x = checked_features(x)
        scores = {y: self._served_score(part, x) for y, part in self._parts.items()}
        return scores if all(map(math.isfinite, scores.values())) else self._saturated_scores(x)

    def _saturated_scores(self, x: Features) -> dict[Any, float]:
        scores = {}
        for label, part in self._parts.items():
            weight = {name: self._served_weight(part, name) for name in x}.__getitem__
            scores[label] = saturated(wide_dot(weight, x) + self._served_intercept(part))
        return scores

    def score_one(self, x: Mapping[Any, Any]) -> float:
        """Return the score of the predicted class; 0 while no class is known."""
        scores = self.scores_one(x)
        return max(scores.values(), default=0.0)

    def predict_one(self, x: Mapping[Any, Any], **kwargs: Any) -> Any:
        """Return the class of the highest score, the first seen of equals; `None` without one."""
        return best(self.scores_one(x))

    def predict_proba_one(self, x: Mapping[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """Return the softmax of the scores by class; `{}` while no class is known.

        Not calibrated: it orders classes, and sums to 1. It is never NaN; 1 for the
        only class known, else neither 0 nor 1.
        """
        return softmax(self.scores_one(x))

    def explain_one(self, x: Mapping[Any, Any], y: Any = None) -> dict[Any, float]:
        """Return what each feature adds to the score of a class, the intercept under `INTERCEPT`.

        Parameters
        ----------
        x
            Feature names to finite real numbers.
        y
            A known class; by default the predicted one.

        """
        y = self.predict_one(x) if y is None else y
        return {n: v * w for n, (v, w) in self._contributions(checked_features(x), y).items()}

    def _contributions(self, x: Features, y: Any) -> dict[Any, tuple[float, float]]:
        part = self._parts.get(y, ClassWeights())
        pairs: dict[Any, tuple[float, float]]
        pairs = {n: (v, self._served_weight(part, n)) for n, v in x.items()}
        return {**pairs, INTERCEPT: (1.0, self._served_intercept(part))}

    def predict_many(self, X: Any) -> Any:
        """Return the labels of the rows of `X` as a series, index kept."""
        return frames.labels([self.predict_one(x) for x in frames.rows(X)], like=X)

    def predict_proba_many(self, X: Any) -> Any:
        """Return a frame with one column per class, index kept."""
        probas = [self.predict_proba_one(x) for x in frames.rows(X)]
        return frames.frame({c: [p[c] for p in probas] for c in self._parts}, like=X)

    def _check_label(self, y: Any) -> Any:
        return admitted_class(y, self._parts, self.max_classes)

    def _check_labels(self, labels: list[Any]) -> None:
        admitted_classes(labels, self._parts, self.max_classes)

    def check_weight(self, w: Any) -> float:
        """Return the sample weight as a float, or raise `InvalidEvent`."""
        return checked_weight(w)

    def _part_kept(self, x: Mapping[Any, Any]) -> Mapping[Any, Any]:
        return room(x, self._names, len(self._names), self.max_features)

    def _room(self, x: Mapping[Any, Any]) -> Mapping[Any, Any]:
        if self.max_features is None:
            return x
        kept = self._part_kept(x)
        self.accounting.ignored += len(x) - len(kept)
        return kept

    def _overflow(self) -> bool:
        self.accounting.overflows += 1
        return False

    def _scalars(self) -> dict[str, ScalarType]:
        return {"clock": COUNT, **self._SCALARS}

    def get_state(self) -> dict[str, Any]:
        """Return all that is needed to go on learning exactly where this stands.

        Returns
        -------
        `{"version", "type", "classes": [label, ...], "scalars": {name: number},
        "vectors": {name: WeightVector}}`. What belongs to the class number i, in
        the order of `classes`, is named `"intercept/i"`, `"weights/i"` and so on.
        Scalars are copies, the vectors are the live ones.

        """
        scalars = {name: getattr(self, name) for name in self._scalars()}
        scalars |= {name: getattr(self.accounting, name) for name in ACCOUNT}
        vectors = {}
        for number, part in enumerate(self._parts.values()):
            scalars[f"intercept/{number}"] = part.intercept
            vectors[f"weights/{number}"] = part.weights
            if self._ASIDE is not None:
                scalars[f"{self._ASIDE}_intercept/{number}"] = part.aside_intercept
                vectors[f"{self._ASIDE}/{number}"] = part.aside
        return {
            "version": state.STATE_VERSION,
            "type": type(self).__name__,
            "classes": self.classes,
            "scalars": scalars,
            "vectors": vectors,
        }

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
            anything but finite numbers. The learner has not changed.

        """
        saved = state.checked_header(saved, type(self).__name__)
        classes = restored_classes(saved.get("classes"))
        asides = () if self._ASIDE is None else (self._ASIDE,)
        numbers = range(len(classes))
        kinds = self._scalars() | {f"intercept/{i}": SIGNED for i in numbers}
        kinds |= {f"{name}_intercept/{i}": SIGNED for name in asides for i in numbers}
        given = state.part(saved, "scalars", {**kinds, **ACCOUNT})
        scalars = {n: state.scalar(n, kind, given[n]) for n, kind in kinds.items()}
        account = {n: state.scalar(n, kind, given[n]) for n, kind in ACCOUNT.items()}
        names = [f"{name}/{i}" for name in ("weights", *asides) for i in numbers]
        given = state.part(saved, "vectors", names)
        vectors = {name: state.vector(name, given[name]) for name in names}
        self._parts = {}
        for number, label in enumerate(classes):
            self._parts[label] = part = ClassWeights()
            part.intercept = scalars.pop(f"intercept/{number}")
            part.weights = vectors[f"weights/{number}"]
            for name in asides:
                part.aside_intercept = scalars.pop(f"{name}_intercept/{number}")
                part.aside = vectors[f"{name}/{number}"]
        for name, value in scalars.items():
            setattr(self, name, value)
        self.accounting = Accounting(**account)
        self._names = {}
        if self.max_features is not None:
            for part in self._parts.values():
                self._names.update(dict.fromkeys(part.weights.view()))


def restored_classes(classes: Any) -> list[Any]:
    """Return the classes of a saved state.

    Raises
    ------
    InvalidState
        Unless they are a list of distinct labels of one type.

    """
    if not isinstance(classes, (list, tuple)):
        raise InvalidState(f"classes must be a list of labels, not {type(classes).__name__}")
    try:
        checked = [checked_class(label) for label in classes]
    except InvalidEvent as error:
        raise InvalidState(f"a class {error.reason}") from None
    if len(set(checked)) != len(checked) or len(set(map(type, checked))) > 1:
        raise InvalidState("classes must be distinct labels of one type")
    return checked


def best(scores: Mapping[Any, float]) -> Any:
    """Return the first key of the highest value, `None` if there is none."""
    return max(scores, key=scores.__getitem__, default=None)


def checked_class(y: Any) -> Any:
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
    y = plain(y)
    if y is None or (isinstance(y, Number) and not isinstance(y, Integral)):
        raise InvalidEvent("y", f"must be a label, neither missing nor a fraction, not {shown(y)}")
    try:
        hash(y)
        same = bool(y == y)  # not so for values that mean "missing"
    except (TypeError, ValueError):
        same = False
    if not same:
        raise InvalidEvent("y", f"must be a label, not {shown(y)}")
    return y


def admitted_class(y: Any, known: Mapping[Any, Any], cap: int | None) -> Any:
    """Return a label as plain Python, if it can stand beside the known ones.

    Raises
    ------
    InvalidEvent
        If it is no label (see `checked_class`), of another type than the known
        classes, or one class too many.

    """
    y = checked_class(y)
    if known:
        kind = type(next(iter(known)))
        if type(y) is not kind:
            raise InvalidEvent("y", f"must be of type {kind.__name__} as before, not {shown(y)}")
        if y not in known and cap is not None and len(known) >= cap:
            raise InvalidEvent("y", f"must be a known class: all {cap} are taken")
    return y


def admitted_classes(labels: list[Any], known: Mapping[Any, Any], cap: int | None) -> None:
    """Check the labels of a batch, each beside those before it.

    Raises
    ------
    InvalidEvent
        As `admitted_class`, naming the row.

    """
    seen = dict.fromkeys(known)

    def check(y: Any) -> None:
        seen[admitted_class(y, seen, cap)] = None

    frames.each_row(labels, check)


def softmax(scores: Mapping[Any, float]) -> dict[Any, float]:
    """Return exp(score) by key, divided by their sum, without overflow.

    Of two keys or more none gets 0 or 1 (see `inside`); the only key gets 1.

    Examples
    --------
    >>> softmax({"a": 0.0, "b": 1e308})
    {'a': 2.2250738585072014e-308, 'b': 0.9999999999999999}

    """
    top = max(scores.values(), default=0.0)
    odds = {y: math.exp(score - top) for y, score in scores.items()}
    total = math.fsum(odds.values())
    if len(odds) == 1:
        return dict.fromkeys(odds, 1.0)
    return {y: inside(value / total) for y, value in odds.items()}
