"""River classifiers as learners of a model: the common part of binary and multiclass."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import islice
from typing import Any

import hinged
from hinged import state
from hinged.accounting import Accounting
from hinged.binary import ACCOUNT, refuse_fraction, restored_accounting
from hinged.events import checked_weight
from hinged.vector import VALUE_BYTES, name_bytes, room
from hinged_service.river_support import state as river_state
from hinged_service.river_support.learners.classifier import Checked, RiverClassifier
from hinged_service.river_support.learners.interface import Features, Label
from hinged_service.wire.codec import DamagedState, decode_name, encode_name

__all__ = ["Adaptor", "restored_names"]

MIN_WEIGHT, MAX_WEIGHT = 1e-6, 1e6
"""Farther apart, River's running variance can turn negative, and its trees fail on that."""


class Adaptor:
    """A River classifier as a learner of a model.

    Parameters
    ----------
    classifier
        The classifier: River's, or the operator's own.
    max_features
        The most feature names learned; later ones are left out and counted.

    Attributes
    ----------
    accounting : hinged.accounting.Accounting
        Events, mistakes, updates and losses so far. Every event of weight above
        0 is an update, but for those at which the classifier's probabilities are not
        finite: they are not learned, and counted as overflows.

    """

    def __init__(self, classifier: RiverClassifier, max_features: int) -> None:
        self.classifier = classifier
        self._cap = max_features
        self._names: Checked = {}
        self._classes: dict[Label, None] = {}
        self._overflowed = False
        self._measured = self._name_bytes = 0
        self.accounting = Accounting()

    def check_weight(self, w: float) -> float:
        """Return the sample weight as a float.

        Raises
        ------
        InvalidEvent
            If it is no weight, neither 0 nor between 1e-6 and 1e6, or neither 0 nor
            1 where the classifier has no weights.

        """
        weight = checked_weight(w)
        if not self.classifier.weighted:
            return refuse_fraction(weight)
        if weight != 0.0 and not MIN_WEIGHT <= weight <= MAX_WEIGHT:
            raise hinged.InvalidEvent("w", "must be 0 or between 1e-6 and 1e6 for this learner")
        return weight

    def track(self) -> None:
        """Do nothing: the state of a River classifier is always saved whole."""

    def feature_count(self) -> int:
        """Return how many feature names have been learned."""
        return len(self._names)

    @property
    def numbers_per_name(self) -> int:
        """The numbers stored for a name in all classes, and in a new one."""
        return self.classifier.numbers_per_name(len(self._classes) + 1)

    def stored_bytes(self) -> int:
        """Return the bytes of the numbers stored by name, if each class has every name."""
        if new := len(self._names) - self._measured:
            self._name_bytes += name_bytes(islice(reversed(self._names), new))
            self._measured += new
        each = len(self._names) * VALUE_BYTES + self._name_bytes
        return each * self.classifier.numbers_per_name(len(self._classes))

    def growth_bytes(self, x: Features, y: Label, enough: float = math.inf) -> int:
        """Return how many more bytes learning the event may store, new classes included."""
        new = [name for name in x if name not in self._names]
        del new[max(0, self._cap - len(self._names)) :]
        classes = len(self._classes)
        after = self.classifier.numbers_per_name(classes + (y not in self._classes))
        more = (len(new) * VALUE_BYTES + name_bytes(new)) * after
        if after != (before := self.classifier.numbers_per_name(classes)):
            more += self.stored_bytes() // before * (after - before)
        return more

    def weights(self) -> dict[str, Any] | None:
        """Return copies of the weights and the intercept; `None` if it is not linear.

        Returns
        -------
        `{"weights", "intercept"}`. P(true) is the logistic function of
        `w . x + intercept`.

        """
        return self.classifier.weights()

    def _kept(self, x: Checked) -> Checked:
        return dict(room(x, self._names, len(self._names), self._cap))

    def _found(self, x: Checked) -> Mapping[Any, float]:
        """Return the probabilities of an event, and note whether they overflowed."""
        found = self.classifier.probabilities(x)
        self._overflowed = not all(map(math.isfinite, found.values()))
        return found

    def _learn(self, x: Checked, y: Label, w: float) -> None:
        """Learn the event that was answered last, unless its probabilities overflowed."""
        if self._overflowed:
            self.accounting.overflows += 1
        else:
            self.classifier.teach(x, y, w, self._classes)
            self._names.update(x)
            self.accounting.updates += 1

    def _account(
        self, x: Checked, kept: Checked, margin: float, mistake: bool
    ) -> tuple[bool, float]:
        """Count an event to learn; return whether it was learned, and its hinge loss."""
        account = self.accounting
        account.events += 1
        account.mistakes += mistake
        account.ignored += len(x) - len(kept)
        account.add_norm(self.classifier.norm(x), self.classifier.constant)
        if margin < 1.0:
            account.add_margin(margin)
        return not self._overflowed, max(0.0, 1.0 - margin)

    def get_state(self) -> dict[str, Any]:
        """Return the complete state, from which learning continues exactly.

        Returns
        -------
        `{"version", "type", "scalars", "vectors"}` as a hinged learner has it, of
        JSON-like data; the scalars hold the accounting, the `"names"` learned, the
        `"model"`, and what a classifier of the operator's own adds. There are no vectors.

        """
        return {
            "version": state.STATE_VERSION,
            "type": type(self.classifier.fresh).__name__,
            "scalars": {
                **{name: getattr(self.accounting, name) for name in ACCOUNT},
                "names": [encode_name(name) for name in self._names],
                "model": river_state.encode(self.classifier.model),
                **self.classifier.own_scalars(),
            },
            "vectors": {},
        }

    def set_state(self, saved: Mapping[str, Any]) -> None:
        """Take over a state that `get_state` gave, here or in another process.

        Raises
        ------
        InvalidState
            If it is of another version, learner or parameters, or damaged. The
            learner has not changed.
        SetAside
            If code of the operator's built something else there.

        """
        self.classifier.check_saved(saved)
        saved = state.checked_header(saved, type(self.classifier.fresh).__name__)
        classes = self._restored_classes(saved)
        state.part(saved, "vectors", ())
        own = self.classifier.own_scalars()
        scalars = state.part(saved, "scalars", {*ACCOUNT, "names", "model", *own})
        account = restored_accounting(scalars)
        names = restored_names(scalars["names"], self._cap)
        self.classifier.restore(scalars, names)
        self._names = names
        self._measured = self._name_bytes = 0
        self._classes = classes
        self.accounting = account

    def _restored_classes(self, saved: Mapping[str, Any]) -> dict[Label, None]:
        return {}


def restored_names(saved: object, cap: int) -> Checked:
    """Return the features of a stored list of names, all 0, or raise `InvalidState`."""
    if not isinstance(saved, list) or not all(isinstance(name, str) for name in saved):
        raise hinged.InvalidState("the names must be a list of text")
    try:
        names = {decode_name(name): 0.0 for name in saved}
    except DamagedState as error:
        raise hinged.InvalidState(str(error)) from None
    if set(map(type, names)) - {str}:
        raise hinged.InvalidState("a stored feature name is not text")
    if len(names) < len(saved) or len(names) > cap:
        raise hinged.InvalidState(f"the names must be different and at most {cap}")
    return names
