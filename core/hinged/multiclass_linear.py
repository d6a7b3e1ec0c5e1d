"""The common part of all multiclass linear learners: one weight vector per class."""

from __future__ import annotations

import abc
import math
from collections.abc import Collection, Hashable, Mapping
from typing import Any, ClassVar

from hinged import kernel, state
from hinged.base import INTERCEPT, Contributions
from hinged.binary import ACCOUNT, restored_accounting
from hinged.errors import InvalidEvent, InvalidParameter, shown
from hinged.events import Label, checked_features, checked_weight
from hinged.kernel import finite_scores
from hinged.multiclass import DEFAULT_CLASSES, MulticlassByParts, best, restored_classes
from hinged.parameters import checked_cap, checked_real
from hinged.start import RandomWeights, StartedVector, started
from hinged.state import COUNT, SIGNED, ScalarType
from hinged.vector import (
    VALUE_BYTES,
    Event,
    Features,
    Numbers,
    WeightVector,
    name_bytes,
    room,
    saturated,
    wide_dot,
)

__all__ = ["ClassWeights", "ClassWeightsByName", "MulticlassLinearClassifier", "Pair"]


class ClassWeights(kernel.ClassWeights):
    """The linear function of one class, and the other numbers of its rule.

    Parameters
    ----------
    auxiliary_intercept
        The first value of the second intercept.

    """

    __slots__ = ()

    weights: WeightVector
    auxiliary: WeightVector

    def __init__(self, auxiliary_intercept: float = 0.0) -> None:
        self.weights = WeightVector()
        self.intercept = 0.0
        self.auxiliary = WeightVector()
        self.auxiliary_intercept = auxiliary_intercept


ClassWeightsByName = Mapping[Label, Numbers] | RandomWeights | None
"""Weights to start from, by class and name."""
Pair = tuple[ClassWeights, ClassWeights]
"""The event's class and its rival."""


class MulticlassLinearClassifier(MulticlassByParts[ClassWeights]):
    """A multiclass linear classifier that learns one event at a time.

    Every class has a weight vector. Learning is ultraconservative: only the event's
    class and its rival, the best wrong class, move, and without a rival neither does.
    A rule is one method, `_update`, called when the margin is at most
    `_update_margin`; one that predicts by other weights than those that learn sets
    `_serves_raw` to false and overrides the methods `_served_...`.

    Parameters
    ----------
    fit_intercept
        Whether every class learns an intercept.
    max_classes
        Most classes. An event of a further class is refused.
    max_features
        The most feature names kept, or `None` for no limit.
    initial_weights
        Weights to start from: `None` for 0; by class, then by feature name, classes
        that are known from the start; or `RandomWeights`, others for each class.
    initial_intercepts
        Intercepts to start from, by class, known from the start likewise.

    """

    _AUXILIARY: ClassVar[str | None] = None
    """Saved name of the second vector of a class, if the rule has one."""
    _AUXILIARY_START: ClassVar[float] = 0.0
    _AUXILIARY_STARTED = False
    """True if the second vector starts from the initial weights too."""
    _INTERCEPT: ClassVar[ScalarType] = SIGNED
    _SCALARS: ClassVar[dict[str, ScalarType]] = {}
    _needs_rival = True
    """False if an event moves its class though no other is known."""
    _update_margin = 0.0

    def __init__(
        self,
        fit_intercept: bool = True,
        max_classes: int | None = DEFAULT_CLASSES,
        max_features: int | None = None,
        *,
        initial_weights: ClassWeightsByName = None,
        initial_intercepts: Mapping[Label, float] | None = None,
    ) -> None:
        super().__init__(fit_intercept, max_classes)
        self.max_features = checked_cap("max_features", max_features)
        self._names: dict[Hashable, None] = {}
        self.initial_weights = initial_weights
        self.initial_intercepts = initial_intercepts
        self._start_classes()

    def _start_classes(self) -> None:
        """Add the classes that initial weights or intercepts name."""
        intercepts = {} if self.initial_intercepts is None else self.initial_intercepts
        initial = self.initial_weights
        weights = {} if initial is None or isinstance(initial, RandomWeights) else initial
        for name, given in (("initial_weights", weights), ("initial_intercepts", intercepts)):
            if not isinstance(given, Mapping):
                raise InvalidParameter(f"{name} must be by class, not {shown(given)}")
        if intercepts and not self.fit_intercept:
            raise InvalidParameter("initial_intercepts needs fit_intercept=True")
        for label in dict.fromkeys((*weights, *intercepts)):
            try:
                y = self._check_label(label)
            except InvalidEvent as error:
                raise InvalidParameter(f"a class of initial weights {error.reason}") from None
            self._parts[y] = part = self._started_part(y)
            part.intercept = checked_real("initial_intercepts", intercepts.get(label, 0.0))
            if label in weights:
                part.weights = started(weights[label], self.max_features)
            self._names.update(dict.fromkeys(part.weights.view()))
        if self.max_features is not None and len(self._names) > self.max_features:
            raise InvalidParameter("initial_weights must hold at most max_features names")

    def _started_part(self, label: Label) -> ClassWeights:
        """Return the part of a new class with the weights that it starts from."""
        part = self._new_part()
        if isinstance(self.initial_weights, RandomWeights):
            part.weights = StartedVector(self.initial_weights.of(label), None)
            if self._tracking:
                part.weights.track()
        return part

    def _add_class(self, label: Label, x: Numbers) -> float:
        self._parts[label] = part = self._started_part(label)
        return saturated(wide_dot(part.weights.get, x))

    @property
    def weights(self) -> dict[Label, Numbers]:
        """The weights that predict, by class; reading never creates one."""
        return {label: self._served_weights(part) for label, part in self._parts.items()}

    @property
    def intercepts(self) -> dict[Label, float]:
        """The intercepts that predict, by class."""
        return {label: self._served_intercept(part) for label, part in self._parts.items()}

    @abc.abstractmethod
    def _update(self, x: Numbers, pair: Pair, margin: float, norm: float, w: float) -> bool:
        """Move the event's class and its rival, both or neither.

        The margin is not finite if a score overflowed: a step that depends on it is refused.
        """

    def _served_weights(self, part: ClassWeights) -> Numbers:
        return part.weights.view()

    def _served_intercept(self, part: ClassWeights) -> float:
        return part.intercept

    def _served_scores(self, x: Event) -> dict[Label, float]:
        return kernel.class_scores(self._parts, x)

    def _served_weight(self, part: ClassWeights, name: Hashable) -> float:
        return part.weights.get(name)

    def _new_part(self) -> ClassWeights:
        part = ClassWeights(self._AUXILIARY_START)
        if self._tracking:
            part.weights.track()
            part.auxiliary.track()
        return part

    def _learn_classes(
        self, x: Numbers, y: Label, rival: Label | None, margin: float, norm: float, w: float
    ) -> bool:
        if margin > self._update_margin or (rival is None and self._needs_rival):
            return False
        pair = self._parts[y], self._parts[y if rival is None else rival]
        moved = pair[0].weights
        count = len(moved)
        updated = self._update(x, pair, margin, norm, w)
        if self.max_features is not None and len(moved) > count:
            self._names.update((name, None) for name in x if name in moved)
        return updated

    def _raw_scores(self, x: Event) -> tuple[Numbers, dict[Label, float]]:
        if not self._parts:
            return checked_features(x), {}
        try:
            scores = kernel.class_scores(self._parts, x)
            if finite_scores(scores):
                return x, scores  # type: ignore[return-value] # only numbers sum to these
        except TypeError:
            pass
        clean = checked_features(x)
        scores = kernel.class_scores(self._parts, clean)
        if not finite_scores(scores):
            parts = self._parts.items()
            scores = {y: wide_dot(p.weights.get, clean) + p.intercept for y, p in parts}
        return clean, scores

    def scores_one(self, x: Event) -> dict[Label, float]:
        """Return the finite score of every class, in the order the classes were seen."""
        if not self._parts:
            checked_features(x)
            return {}
        try:
            scores = self._served_scores(x)
            if finite_scores(scores):
                return scores
        except TypeError:
            pass
        clean = checked_features(x)
        scores = self._served_scores(clean)
        return scores if finite_scores(scores) else self._saturated_scores(clean)

    def _saturated_scores(self, x: Features) -> dict[Label, float]:
        scores = {}
        for label, part in self._parts.items():
            weight = {name: self._served_weight(part, name) for name in x}.__getitem__
            scores[label] = saturated(wide_dot(weight, x) + self._served_intercept(part))
        return scores

    def contributions(self, x: Features, y: Label | None = None) -> Contributions:
        """Return value and weight of each feature for the class `y`, the intercept last."""
        part = ClassWeights() if y is None else self._parts.get(y, ClassWeights())
        pairs: Contributions = {n: (v, self._served_weight(part, n)) for n, v in x.items()}
        return {**pairs, INTERCEPT: (1.0, self._served_intercept(part))}

    def check_weight(self, w: object) -> float:
        """Return the sample weight as a float, or raise `InvalidEvent`."""
        return checked_weight(w)

    @property
    def numbers_per_name(self) -> int:
        """The numbers that the event's class and its rival store for a name."""
        return 2 * self._numbers

    @property
    def _numbers(self) -> int:
        return 1 if self._AUXILIARY is None else 2

    def stored_bytes(self) -> int:
        """Return the bytes of the numbers stored by name."""
        return self._numbers * sum(part.weights.stored_bytes() for part in self._parts.values())

    def growth_bytes(self, x: Event, y: Hashable, enough: float = math.inf) -> int:
        """Return how many more bytes learning `x` with the label `y` may store at most."""
        numbers, scores = self._raw_scores(x)
        sizes = {name: VALUE_BYTES + name_bytes((name,)) for name in self._part_kept(numbers)}
        more = 0
        for label in self._moving(y, scores):
            stored = self._parts[label].weights if label in self._parts else ()
            more += sum(size for name, size in sizes.items() if name not in stored)
        return self._numbers * more

    def _moving(self, y: Hashable, scores: Mapping[Label, float]) -> Collection[Hashable]:
        """Return the classes that an event of these scores may move."""
        rival = best({label: score for label, score in scores.items() if label != y})
        return () if rival is None else (y, rival)

    def _part_kept(self, x: Numbers) -> Numbers:
        return room(x, self._names, len(self._names), self.max_features)

    def _room(self, x: Numbers) -> Numbers:
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
        """Return all that is needed to go on learning, as `LinearClassifier.get_state` says.

        What belongs to the class number i, in the order of `classes`, is named
        `"intercept/i"`, `"weights/i"` and so on.
        """
        scalars = {name: getattr(self, name) for name in self._scalars()}
        scalars |= {name: getattr(self.accounting, name) for name in ACCOUNT}
        vectors = {}
        for number, part in enumerate(self._parts.values()):
            scalars[f"intercept/{number}"] = part.intercept
            vectors[f"weights/{number}"] = part.weights
            if self._AUXILIARY is not None:
                scalars[f"{self._AUXILIARY}_intercept/{number}"] = part.auxiliary_intercept
                vectors[f"{self._AUXILIARY}/{number}"] = part.auxiliary
        return {
            "version": state.STATE_VERSION,
            "type": type(self).__name__,
            "classes": self.classes,
            "scalars": scalars,
            "vectors": vectors,
        }

    def _begun(self, label: Label, stored: WeightVector) -> WeightVector:
        """Return stored weights of a class as a vector with its start for all other names."""
        if not isinstance(self.initial_weights, RandomWeights):
            return stored
        return StartedVector(self.initial_weights.of(label), None, dict(stored.view()))

    def set_state(self, saved: Mapping[str, Any]) -> None:
        """Take over a saved state, or raise `InvalidState` and change nothing."""
        saved = state.checked_header(saved, type(self).__name__)
        classes = restored_classes(saved.get("classes"))
        auxiliaries = () if self._AUXILIARY is None else (self._AUXILIARY,)
        numbers = range(len(classes))
        kinds = self._scalars() | {f"intercept/{i}": self._INTERCEPT for i in numbers}
        kinds |= {f"{name}_intercept/{i}": SIGNED for name in auxiliaries for i in numbers}
        given = state.part(saved, "scalars", {**kinds, **ACCOUNT})
        scalars = {n: state.scalar(n, kind, given[n]) for n, kind in kinds.items()}
        account = restored_accounting(given)
        names = [f"{name}/{i}" for name in ("weights", *auxiliaries) for i in numbers]
        given = state.part(saved, "vectors", names)
        vectors = {name: state.vector(name, given[name]) for name in names}
        self._parts = {}
        for number, label in enumerate(classes):
            self._parts[label] = part = ClassWeights()
            part.intercept = scalars.pop(f"intercept/{number}")
            part.weights = self._begun(label, vectors[f"weights/{number}"])
            for name in auxiliaries:
                part.auxiliary_intercept = scalars.pop(f"{name}_intercept/{number}")
                part.auxiliary = vectors[f"{name}/{number}"]
                if self._AUXILIARY_STARTED:
                    part.auxiliary = self._begun(label, part.auxiliary)
        for name, value in scalars.items():
            setattr(self, name, value)
        self.accounting = account
        self._names = {}
        if self.max_features is not None:
            for part in self._parts.values():
                self._names.update(dict.fromkeys(part.weights.view()))
