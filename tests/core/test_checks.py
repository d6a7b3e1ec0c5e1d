"""The checks that ship with the package: all learners pass, and each kind of fault is found."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any, ClassVar

import pytest

from hinged import (
    BinaryLinearClassifier,
    LinearClassifier,
    MulticlassPerceptron,
    Outcome,
    checks,
)
from hinged.vector import Event, Numbers


def test_every_learner_passes(learner: LinearClassifier) -> None:
    found = list(checks.yield_checks(learner, river=False))
    assert len(found) == 15
    for check in found:
        check(learner.clone())


class Own(BinaryLinearClassifier):
    """A rule as a user writes one."""

    def _step(self, margin: float, norm2: float, w: float) -> float:
        return w / (1.0 + norm2)


def test_a_rule_of_ones_own_passes_with_rivers_checks() -> None:
    checks.check_learner(Own())


class Boasts(Own):
    """A rule that never admits a mistake."""

    def predict_learn_one(self, x: Event, y: Hashable, w: float = 1.0) -> Outcome:
        return super().predict_learn_one(x, y, w)._replace(mistake=False)


class LearnsFirst(Own):
    def predict_learn_one(self, x: Event, y: Hashable, w: float = 1.0) -> Outcome:
        self.intercept += 0.25
        return super().predict_learn_one(x, y, w)


class MovesUncounted(Own):
    def _update(self, x: Numbers, target: float, margin: float, norm: float, w: float) -> bool:
        self._weights.add(x, 0.5 * target)
        return False


class LearnsWeightless(Own):
    def learn_one(self, x: Event, y: Hashable, w: float = 1.0) -> None:
        super().learn_one(x, y, 1.0)

    def predict_learn_one(self, x: Event, y: Hashable, w: float = 1.0) -> Outcome:
        return super().predict_learn_one(x, y, 1.0)


class Forgetful(Own):
    def __init__(self, fit_intercept: bool = True) -> None:
        super().__init__(fit_intercept)
        self.bold = 1.0

    def _step(self, margin: float, norm2: float, w: float) -> float:
        self.bold *= 0.75
        return self.bold * w


class Remembers(Own):
    shared: ClassVar[dict[str, float]] = {}

    def __init__(self, fit_intercept: bool = True) -> None:
        super().__init__(fit_intercept)
        self.intercept = self.shared.get("intercept", 0.0)

    def _move(self, x: Numbers, step: float, norm: float) -> bool:
        moved = super()._move(x, step, norm)
        self.shared["intercept"] = self.intercept
        return moved


class Peeks(Own):
    def score_one(self, x: Event) -> float:
        self._weights.add({"peeked": 1.0}, 1.0)
        return super().score_one(x)


class Unnoticed(Own):
    def _move(self, x: Numbers, step: float, norm: float) -> bool:
        moved = super()._move(x, step, norm)
        self._weights.take_changed()
        return moved


class Trusting(Own):
    def set_state(self, saved: Any) -> None:
        self.intercept = 0.0
        super().set_state(saved)


class TakesAnything(Own):
    def check_weight(self, w: object) -> float:
        return 1.0


class HalvesBatches(Own):
    def learn_many(self, X: Any, y: Any, w: Any = 1.0) -> None:
        super().learn_many(X, y, 0.5 if isinstance(w, float) else w)


class Eager(Own):
    def learn_many(self, X: Any, y: Any, w: Any = 1.0) -> None:
        super().learn_many(X[:1], y[:1])
        super().learn_many(X[1:], y[1:], w[1:] if isinstance(w, list) else w)


class Overflows(Own):
    def _move(self, x: Numbers, step: float, norm: float) -> bool:
        self._weights.add(x, math.copysign(1e200, step))
        self.accounting.updates += 1
        return True


class Explains(Own):
    def explain_one(self, x: Event) -> dict[Hashable, float]:
        return {name: 2.0 * value for name, value in super().explain_one(x).items()}


class CountsHoles(Own):
    def _learn(self, x: Event, y: Hashable, w: float) -> Any:
        if isinstance(x, dict):
            x = {name: 7.0 if value is None else value for name, value in x.items()}
        return super()._learn(x, y, w)


class NoLoss(Own):
    def predict_learn_one(self, x: Event, y: Hashable, w: float = 1.0) -> Outcome:
        outcome = super().predict_learn_one(x, y, w)
        self.accounting.hinge_loss = 0.0
        return outcome._replace(hinge_loss=0.0)


class AnyClass(MulticlassPerceptron):
    def _check_label(self, y: Hashable) -> Any:
        return y


@pytest.mark.parametrize(
    ("kind", "check"),
    [
        (Boasts, "outcomes_are_honest"),
        (LearnsFirst, "outcomes_are_honest"),
        (MovesUncounted, "outcomes_are_honest"),
        (LearnsWeightless, "outcomes_are_honest"),
        (NoLoss, "loss_is_that_of_the_margin"),
        (Remembers, "clone_forgets"),
        (Forgetful, "state_restores"),
        (Trusting, "damaged_state_is_refused"),
        (Unnoticed, "changed_names_are_noted"),
        (Peeks, "predictions_change_nothing"),
        (Explains, "explanation_sums_to_score"),
        (CountsHoles, "missing_is_absent"),
        (TakesAnything, "bad_events_are_refused"),
        (AnyClass, "bad_events_are_refused"),
        (HalvesBatches, "batch_equals_sequence"),
        (Eager, "bad_batch_changes_nothing"),
        (Overflows, "finite"),
    ],
)
def test_each_kind_of_fault_is_found(kind: Any, check: str) -> None:
    model = kind()
    found = {getattr(c, "__name__", ""): c for c in checks.yield_checks(model, river=False)}
    with pytest.raises(Exception) as fault:
        found[f"check_{check}"](model.clone())
    assert not isinstance(fault.value, (NameError, ImportError, KeyError)), fault.value


def test_a_copy_that_shares_is_found() -> None:
    class Shares(Own):
        def __reduce__(self) -> Any:
            return (lambda: self), ()

    with pytest.raises(Exception, match=r"pickle|Shares"):
        checks.check_copies_go_on_alike(Shares())


def test_a_fault_names_its_check_and_skips_are_left_out() -> None:
    with pytest.raises(AssertionError) as fault:
        checks.check_learner(Boasts())
    assert fault.value.__notes__ == ["in check_outcomes_are_honest of Boasts"]

    class Skipping(Boasts):
        def _unit_test_skips(self) -> set[str]:
            return {"check_outcomes_are_honest"}

    names = [checks.name_of(check) for check in checks.yield_checks(Skipping(), river=False)]
    assert "check_outcomes_are_honest" not in names
    assert len(names) == 14
    assert math.isfinite(Skipping().score_one({}))
