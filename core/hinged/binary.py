"""The common part of all binary linear learners: score, account, step, add.

The file is long: the whole interface of a binary rule, with its documentation.
"""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Hashable, Mapping, Sequence
from math import inf, isfinite
from typing import Any, ClassVar, Self

from hinged import frames, state
from hinged.accounting import Accounting, Fields, Outcome, outcome_of
from hinged.base import INTERCEPT, Contributions, LinearClassifier
from hinged.errors import InvalidEvent, InvalidParameter
from hinged.events import Label, binary_target, checked_features, checked_weight
from hinged.kernel import (
    BinaryCore,
    both_probabilities,
    is_compiled,
    learn_rows,
    learn_run,
    norm_of,
)
from hinged.kernel.pure import CORE, RULES, TOTALS
from hinged.parameters import checked_cap, checked_flag, checked_real
from hinged.start import InitialWeights, RandomWeights, StartedVector, started
from hinged.state import COUNT, SIGNED, SUM, ScalarType
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

__all__ = ["BinaryLinearClassifier", "probabilities"]

MAX = sys.float_info.max
ACCOUNT: dict[str, ScalarType] = {
    name: SUM if name in {"hinge_loss", "perceptron_loss", "radius"} else COUNT for name in TOTALS
}


class BinaryLinearClassifier(BinaryCore, LinearClassifier):
    """A binary linear classifier that learns one event at a time.

    Validation before any change, the score, the accounting and the weight change
    that happens whole or not at all are here. A new rule overrides one method:

    `_step(margin, norm2, w)`
        Return how far to move along `t x`; enough for a rule that moves nothing but
        the weights and the intercept.
    `_update(x, target, margin, norm, w)`
        For any other rule: move all that it keeps, or nothing and return
        `self._overflow()` if a number would not be finite; count
        `self.accounting.updates` and return whether the weights moved. `x` holds
        finite numbers; what `self._room(x)` leaves out is not to be stored.

    and sets, where they differ, the class attributes

    `_update_margin`
        The rule is called when `margin <= _update_margin`; 0 by default.
    `_on_tie`
        Whether it is called, too, when the label was right; true by default.
    `_VECTORS`, `_SCALARS`
        The saved state it adds: attributes (of vectors with a leading underscore)
        with the least value, or the type, of each.
    `_mutable_attributes`
        Comes from parameters declared as `LearningRate()` or `PositiveNumber(mutable=True)`.

    A rule that predicts by other weights than those that learn sets `_serves_raw`
    to false and overrides `_served_score`, `_weight`, `_bias` and `weights`. One that
    takes no fractional sample weights overrides `check_weight`. `hinged.checks`
    tells whether a rule keeps what is promised here.

    Parameters
    ----------
    fit_intercept
        Whether an intercept is learned beside the weights, as the weight of a
        constant feature of value 1.
    max_features
        The most feature names kept, or `None` for no limit. A full learner goes
        on learning the names it has, ignores unknown ones and counts them.
    label_at_zero
        The label predicted at score 0.
    initial_weights
        Weights to start from: `None` for 0, a mapping by feature name, or
        `RandomWeights` for every name there may be.
    initial_intercept
        The intercept to start from.

    Attributes
    ----------
    intercept : float
        b in `score = w . x + b` of the weights that learn.
    accounting : Accounting
        Events, mistakes, updates and losses so far.
    clock : int
        Events of weight above 0 so far.

    Notes
    -----
    Targets t are +1 for true and -1 for false; `margin = t * score`. At score
    0 `label_at_zero` is predicted: by default the negative label, as River does.

    Labels may also be 1 and 0, or 1 and -1 as in textbooks: 0 and -1 both mean
    false. Predicted are `True` and `False`, as River's metrics expect of a binary
    classifier: give them `y == 1`, since in Python `False == -1` does not hold.

    Examples
    --------
    A perceptron whose steps shrink with the length of the event:

    >>> from hinged import BinaryLinearClassifier
    >>> class Normalised(BinaryLinearClassifier):
    ...     def _step(self, margin, norm2, w):
    ...         return w / (1.0 + norm2) ** 0.5
    >>> model = Normalised()
    >>> model.learn_one({"a": 4.0, "b": 2.0, "c": 1.0}, True, w=2.0)
    >>> round(model.intercept, 3), round(model.score_one({"a": 1.0}), 3)
    (0.417, 2.085)

    """

    _weights: WeightVector
    _SCALARS: ClassVar[dict[str, ScalarType]] = {}
    _VECTORS: ClassVar[dict[str, float]] = {"weights": -inf}
    _STARTED: ClassVar[tuple[str, ...]] = ("weights",)
    """The vectors that start from the initial weights."""
    _update_margin = 0.0
    _on_tie = True
    _serves_raw = True
    _by_squares = False
    """Whether the compiled kernel may learn it as the rule that `lifted` has, of squares too."""

    def __init__(
        self,
        fit_intercept: bool = True,
        max_features: int | None = None,
        *,
        label_at_zero: bool = False,
        initial_weights: InitialWeights = None,
        initial_intercept: float = 0.0,
    ) -> None:
        super().__init__(fit_intercept)
        self.max_features = checked_cap("max_features", max_features)
        self.label_at_zero = checked_flag("label_at_zero", label_at_zero)
        self.initial_weights = initial_weights
        self.initial_intercept = checked_real("initial_intercept", initial_intercept)
        if self.initial_intercept != 0.0 and not self.fit_intercept:
            raise InvalidParameter("initial_intercept needs fit_intercept=True")
        self.intercept = self.initial_intercept
        self._weights = started(initial_weights, self.max_features)
        self._serves_raw = self._serves_raw  # an instance is read faster than its class
        self._update_margin = self._update_margin
        self._on_tie = self._on_tie

    def clone(
        self, new_params: dict[str, Any] | None = None, include_attributes: bool = False
    ) -> Self:
        """Return a learner of the same parameters; with `include_attributes`, as it stands."""
        self._wait_for_run()
        one = super().clone(new_params, include_attributes)
        if include_attributes and is_compiled:  # which keeps these where River does not look
            for name in CORE:
                setattr(one, name, copy.deepcopy(getattr(self, name)))
        return one

    def _compile(self, kind: type, rule: str) -> None:
        """Let the compiled kernel learn ordinary events by a rule that it knows.

        `kind` is the class that defines the rule: a subclass may have changed any of it.
        """
        if is_compiled and type(self) is kind:
            self._rule = RULES.index(rule)

    def _step(self, margin: float, norm2: float, w: float) -> float:
        """Return the step tau; the update is `w += tau t x` and `b += tau t`.

        Parameters
        ----------
        margin
            `t * score`, at most `_update_margin`; infinite if the score overflowed.
        norm2
            The squared norm of all that is updated, the constant 1 included
            where an intercept is learned, features without room left out; infinite
            if it overflows.
        w
            The sample weight, above 0.

        Returns
        -------
        0 for no update; anything not finite is counted as an overflow.

        """
        raise NotImplementedError

    @property
    def weights(self) -> Numbers:
        """A live, read-only view of the weights; reading never creates one."""
        return self._weights.view()

    @property
    def numbers_per_name(self) -> int:
        """The numbers stored for a name."""
        return len(self._VECTORS)

    def stored_bytes(self) -> int:
        """Return what the numbers stored by name take."""
        return self.numbers_per_name * self._weights.stored_bytes()

    def growth_bytes(self, x: Event, y: Hashable, enough: float = math.inf) -> int:
        """Return how many more bytes learning `x` may store at most."""
        return self.missing_bytes(x)

    def missing_bytes(self, x: Event) -> int:
        """Return what is missing of the names of `x` that there is room for."""
        new = self._weights.unknown(x)
        if self.max_features is not None:
            del new[max(0, self.max_features - len(self._weights)) :]
        return self.numbers_per_name * (len(new) * VALUE_BYTES + name_bytes(new))

    @property
    def threshold(self) -> float:
        """The intercept as a threshold: true is predicted when `w . x > threshold`."""
        return -self._bias()

    def learn_many(self, X: frames.Frame, y: frames.Series, w: float | frames.Series = 1.0) -> None:
        """Learn the rows of a frame one after the other, as `LinearClassifier.learn_many` says."""
        ordinary = self._rule and type(w) in (int, float) and w == 1
        table = frames.table(X, y) if ordinary else None
        if table is None:
            super().learn_many(X, y, w)
            return
        names, rows, labels = table
        done = 0
        while (done := done + learn_rows(self, names, rows[done:], labels[done:])) < len(rows):
            x = dict(zip(names, rows[done].tolist(), strict=True))
            self._learn(x, bool(labels[done]), 1.0)
            done += 1

    def predict_learn_run(
        self,
        xs: Sequence[object],
        ys: Sequence[object],
        ws: Sequence[object],
        at: int,
        end: int,
        names: int,
    ) -> list[Outcome]:
        """Predict, score, then learn the next of many events at once, none of them if it cannot.

        Equal, bit for bit, to `predict_learn_one` of each in order. It takes events that the
        compiled kernel has read, of rules that it knows, up to the first that is not ordinary.

        Parameters
        ----------
        xs, ys, ws
            Features, label and sample weight of each event.
        at, end
            Index of the first one to learn, and the one not to reach.
        names
            The most names, of all events, to take.

        Returns
        -------
        An outcome for each event learned.

        """
        if not self._rule:
            return []
        run = learn_run(self, xs, ys, ws, at, end, names)
        return [outcome_of(Outcome, fields) for fields in run]

    def _learn(self, x: Event, y: Hashable, w: float) -> Fields:
        target = 1.0 if y is True else -1.0 if y is False else binary_target(y)
        if type(w) is not float or w != 1.0:
            w = self.check_weight(w)
        try:
            score = self._raw_score(x)
        except TypeError:
            score = math.nan
        overflowed = 0.0
        numbers: Numbers = x  # type: ignore[assignment] # only numbers sum to a finite score
        if not isfinite(score):
            numbers, wide = self._cleaned(x)
            score = saturated(wide)
            overflowed = wide - score  # 0 or infinite
        served = score if self._serves_raw else self._served_from(numbers, score)
        positive = served > 0.0 or (self.label_at_zero and served == 0.0)
        account = self.accounting
        account.events += 1
        if w == 0.0:
            return positive, served, False, False, 0.0
        self.clock += 1
        margin = target * score
        loss = 0.0
        if margin < 1.0:
            loss = 1.0 - margin
            total = account.hinge_loss + loss
            account.hinge_loss = total if total < MAX else MAX
            if margin < 0.0:
                total = account.perceptron_loss - margin
                account.perceptron_loss = total if total < MAX else MAX
        mistake = positive is not (target > 0.0)
        if mistake:
            account.mistakes += 1
        norm = norm_of(numbers)
        if norm + 1.0 > account.radius:
            account.add_norm(norm, self._constant)
        if overflowed != 0.0:
            margin = target * overflowed  # a step that depends on it is not finite, so refused
        updated = (
            margin <= self._update_margin
            and (mistake or self._on_tie)
            and self._update(numbers, target, margin, norm, w)
        )
        return positive, served, mistake, updated, loss

    def _cleaned(self, x: Event) -> tuple[Features, float]:
        """Return an unusual event as plain floats, and its score by the raw weights.

        The score is infinite only if it is beyond the floats.
        """
        clean = checked_features(x)
        score = self._raw_score(clean)
        if not isfinite(score):
            score = wide_dot(self._raw_weight, clean) + self.intercept
        return clean, score

    def _update(self, x: Numbers, target: float, margin: float, norm: float, w: float) -> bool:
        """Move the weights, all of them or none; `norm` is that of `x` alone."""
        if self.max_features is not None:
            kept = self._part_kept(x)
            norm = norm if len(kept) == len(x) else norm_of(kept)
        return self._move(x, self._step(margin, norm * norm + self._constant, w) * target, norm)

    def _move(self, x: Numbers, step: float, norm: float) -> bool:
        """Add `step * x` to the weights and `step` to the intercept, or count an overflow."""
        if step == 0.0:
            return False
        intercept = self.intercept + step * self._constant
        x = self._room(x)
        if not (isfinite(intercept) and self._weights.move(x, step, norm)):
            return self._overflow()
        self.intercept = intercept
        self.accounting.updates += 1
        return True

    def _part_kept(self, x: Numbers) -> Numbers:
        return room(x, self._weights, len(self._weights), self.max_features)

    def _room(self, x: Numbers) -> Numbers:
        if self.max_features is None:
            return x
        kept = self._part_kept(x)
        self.accounting.ignored += len(x) - len(kept)
        return kept

    def _overflow(self) -> bool:
        self.accounting.overflows += 1
        return False

    def _served_from(self, x: Numbers, raw_score: float) -> float:
        """Return the finite score that predicts, given that of the weights that learn."""
        return self.score_one(x)

    def _raw_weight(self, name: Hashable) -> float:
        return self._weights.get(name)

    def _weight(self, name: Hashable) -> float:
        """Return one weight as it predicts."""
        return self._raw_weight(name)

    def _bias(self) -> float:
        """Return the intercept as it predicts."""
        return self.intercept

    def score_one(self, x: Event) -> float:
        """Return the score `w . x + b`: finite, its sign is the label.

        Parameters
        ----------
        x
            Feature names to finite real numbers; NaN and `None` count as absent.

        Raises
        ------
        InvalidEvent
            Naming the feature that is neither missing nor a finite real number.

        """
        try:
            score = self._served_score(x)
        except TypeError:
            score = math.nan
        if isfinite(score):
            return score
        clean = checked_features(x)
        score = self._served_score(clean)
        if isfinite(score):
            return score
        return saturated(wide_dot(self._weight, clean) + self._bias())

    def predict_one(self, x: Event, **kwargs: object) -> bool:
        """Return the label of `x`: true if the score is above 0, or `label_at_zero` at 0."""
        if (label := self._label_at_once(x)) is not None:
            return label
        try:
            score = self._served_score(x)
        except TypeError:
            score = math.nan
        if not isfinite(score):
            score = self.score_one(x)
        return score > 0.0 or (self.label_at_zero and score == 0.0)

    def predict_proba_one(self, x: Event, **kwargs: object) -> dict[Label, float]:
        """Return `{False: 1 - p, True: p}` with p the logistic function of the score.

        A linear margin is no calibrated probability: p orders events and puts
        0.5 at the boundary, nothing more; `Calibrated` makes it one. It is never
        NaN, 0 or 1.

        """
        return probabilities(self.score_one(x))

    def contributions(self, x: Features, y: Label | None = None) -> Contributions:
        """Return value and weight of each feature of a checked event, the intercept last."""
        pairs: Contributions = {name: (value, self._weight(name)) for name, value in x.items()}
        return {**pairs, INTERCEPT: (1.0, self._bias())}

    def _check_label(self, y: Hashable) -> float:
        return binary_target(y)

    def check_weight(self, w: object) -> float:
        """Return the sample weight as a float, or raise `InvalidEvent`."""
        return checked_weight(w)

    def _scalars(self) -> dict[str, ScalarType]:
        return {"intercept": SIGNED, "clock": COUNT, **self._SCALARS}

    def get_state(self) -> dict[str, Any]:
        """Return all that is needed to go on learning, as `LinearClassifier.get_state` says."""
        self._wait_for_run()
        account = {name: getattr(self.accounting, name) for name in ACCOUNT}
        return {
            "version": state.STATE_VERSION,
            "type": type(self).__name__,
            "scalars": {name: getattr(self, name) for name in self._scalars()} | account,
            "vectors": {name: getattr(self, f"_{name}") for name in self._VECTORS},
        }

    def set_state(self, saved: Mapping[str, Any]) -> None:
        """Take over a saved state, or raise `InvalidState` and change nothing."""
        saved = state.checked_header(saved, type(self).__name__)
        kinds = self._scalars()
        given = state.part(saved, "scalars", {**kinds, **ACCOUNT})
        scalars = {name: state.scalar(name, kind, given[name]) for name, kind in kinds.items()}
        account = restored_accounting(given)
        vectors = {
            name: state.vector(name, values, self._VECTORS[name])
            for name, values in state.part(saved, "vectors", self._VECTORS).items()
        }
        self._check_state(scalars, vectors)
        if isinstance(self.initial_weights, RandomWeights):
            for name in self._STARTED:
                stored = dict(vectors[name].view())
                vectors[name] = StartedVector(self.initial_weights, self.max_features, stored)
        self._wait_for_run()
        for name, value in scalars.items():
            setattr(self, name, value)
        for name, vector in vectors.items():
            setattr(self, f"_{name}", vector)
        self.accounting = account

    def _check_state(
        self, scalars: Mapping[str, float], vectors: Mapping[str, WeightVector]
    ) -> None:
        """Raise `InvalidState` if parts that are right by themselves contradict each other."""


def restored_accounting(saved: Mapping[str, object]) -> Accounting:
    """Return the accounting among saved scalars, or raise `InvalidState`."""
    account = Accounting()
    for name, kind in ACCOUNT.items():
        setattr(account, name, state.scalar(name, kind, saved[name]))
    return account


def refuse_fraction(w: float) -> float:
    """Return a sample weight of a rule that knows only whole examples: 0 or 1."""
    if w not in (0.0, 1.0):
        raise InvalidEvent("w", f"must be 0 or 1 for this rule, not {w!r}")
    return w


def probabilities(score: float) -> dict[Label, float]:
    """Return `{False: 1 - p, True: p}`, p = 1 / (1 + exp(-score)), without overflow.

    Neither is 0 or 1 (see `hinged.kernel.pure.both_probabilities`).

    Examples
    --------
    >>> probabilities(-2.0)[True] == probabilities(2.0)[False]
    True
    >>> probabilities(1e308)
    {False: 2.2250738585072014e-308, True: 0.9999999999999999}

    """
    false, true = both_probabilities(score)
    return {False: false, True: true}
