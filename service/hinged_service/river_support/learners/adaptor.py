"""What a fold asks of any learner, answered by a River classifier."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from itertools import islice
from typing import Any

import hinged
from hinged import state
from hinged.accounting import Accounting
from hinged.binary import ACCOUNT, refuse_fraction, restored_accounting
from hinged.events import checked_numbers, checked_weight
from hinged.vector import Features, room
from hinged_service.river_support import state as river_state
from hinged_service.river_support.learners.teaching import teach
from hinged_service.wire.codec import DamagedState, decode_name, encode_name

__all__ = ["Adaptor"]

MAX_VALUE = 1e100
_PROBED = 100
MIN_WEIGHT, MAX_WEIGHT = 1e-6, 1e6
"""Farther apart, River's running variance can turn negative, and its trees fail on that."""


class Adaptor:
    """What a fold asks of any learner, answered by a River classifier.

    Parameters
    ----------
    model
        An untrained classifier, never touched: what learns is a copy.
    max_features
        The most feature names learned; later ones are left out and counted.
    weighted
        Whether its `learn_one` takes a sample weight.
    constant
        1 if it learns an intercept, else 0: part of the radius.

    Attributes
    ----------
    accounting : hinged.accounting.Accounting
        Events, mistakes, updates and losses so far. Every event of weight above
        0 is an update, but for those at which the classifier's probabilities are not
        finite: they are not learned, and counted as overflows.

    """

    def __init__(
        self, model: Any, max_features: int, weighted: bool = False, constant: float = 0.0
    ) -> None:
        self._fresh = model
        self._model = copy.deepcopy(model)
        self._cap = max_features
        self._weighted = weighted
        self._constant = constant
        self._names: Features = {}
        self._overflowed = False
        self.accounting = Accounting()

    def check_weight(self, w: Any) -> float:
        """Return the sample weight as a float.

        Raises
        ------
        InvalidEvent
            If it is no weight, neither 0 nor between 1e-6 and 1e6, or neither 0 nor
            1 where the classifier has no weights.

        """
        weight = checked_weight(w)
        if not self._weighted:
            return refuse_fraction(weight)
        if weight != 0.0 and not MIN_WEIGHT <= weight <= MAX_WEIGHT:
            raise hinged.InvalidEvent("w", "must be 0 or between 1e-6 and 1e6 for this learner")
        return weight

    def track(self) -> None:
        """Do nothing: the state of a River classifier is always saved whole."""

    def feature_count(self) -> int:
        """Return how many feature names have been learned."""
        return len(self._names)

    def _checked(self, x: Mapping[Any, Any]) -> Features:
        clean = checked_numbers(x)
        for name, value in clean.items():
            if not -MAX_VALUE <= value <= MAX_VALUE:
                raise hinged.InvalidEvent(f"x[{name!r}]", "must be between -1e100 and 1e100")
        return clean

    def _kept(self, x: Features) -> Features:
        return dict(room(x, self._names, len(self._names), self._cap))

    def _probabilities(self, x: Features) -> Mapping[Any, float]:
        """Return what River answers, `{}` where it fails on values that leave none."""
        try:
            answer: Mapping[Any, float] = self._model.predict_proba_one(x)
        except (ArithmeticError, ValueError):
            return {}
        return answer

    def _found(self, x: Features) -> Mapping[Any, float]:
        """Return the probabilities of an event, and note whether they overflowed."""
        found = self._probabilities(x)
        self._overflowed = not all(map(math.isfinite, found.values()))
        return found

    def _learn(self, x: Features, y: Any, w: float) -> None:
        """Learn the event that was answered last, unless its probabilities overflowed."""
        if self._overflowed:
            self.accounting.overflows += 1
        else:
            self._teach(x, y, w)
            self._names.update(x)
            self.accounting.updates += 1

    def _teach(self, x: Features, y: Any, w: float) -> None:
        teach(self._model, x, y, w if self._weighted else None)

    def _norm(self, x: Features) -> float:
        return math.hypot(*x.values())

    def _account(
        self, x: Features, kept: Features, margin: float, mistake: bool
    ) -> tuple[bool, float]:
        """Count an event that was to be learned; return whether it was, and its hinge loss."""
        account = self.accounting
        account.events += 1
        account.mistakes += mistake
        account.ignored += len(x) - len(kept)
        account.add_norm(self._norm(x), self._constant)
        if margin < 1.0:
            account.add_margin(margin)
        return not self._overflowed, max(0.0, 1.0 - margin)

    def get_state(self) -> dict[str, Any]:
        """Return all that is needed to go on learning exactly where this stands.

        Returns
        -------
        `{"version", "type", "scalars", "vectors"}` as a hinged learner has it, of
        JSON-like data; the scalars hold the accounting, the `"names"` learned and
        the `"model"`, and there are no vectors.

        """
        return {
            "version": state.STATE_VERSION,
            "type": type(self._fresh).__name__,
            "scalars": {
                **{name: getattr(self.accounting, name) for name in ACCOUNT},
                "names": [encode_name(name) for name in self._names],
                "model": river_state.encode(self._model),
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

        """
        saved = state.checked_header(saved, type(self._fresh).__name__)
        state.part(saved, "vectors", ())
        given = state.part(saved, "scalars", {*ACCOUNT, "names", "model"})
        account = restored_accounting(given)
        names = self._restored_names(given["names"])
        model = self._restored_model(given["model"])
        before, self._model = self._model, model
        try:
            self._try(names)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            self._model = before
            raise hinged.InvalidState(f"the model is damaged: {error}") from None
        self._names = names
        self.accounting = account

    def _try(self, names: Features) -> None:
        """Ask a restored model: what decodes may still be of parts that do not go together."""
        self._probabilities(dict.fromkeys(islice(names, _PROBED), 0.0))

    def _restored_names(self, saved: Any) -> Features:
        if not isinstance(saved, list) or not all(isinstance(name, str) for name in saved):
            raise hinged.InvalidState("the names must be a list of text")
        try:
            names = {decode_name(name): 0.0 for name in saved}
        except DamagedState as error:
            raise hinged.InvalidState(str(error)) from None
        if len(names) < len(saved) or len(names) > self._cap:
            raise hinged.InvalidState(f"the names must be different and at most {self._cap}")
        return names

    def _restored_model(self, saved: Any) -> Any:
        try:
            model = river_state.decode(saved)
            same = type(model) is type(self._fresh) and (
                river_state.digest(model.clone()) == river_state.digest(self._fresh.clone())
            )
        except (DamagedState, AttributeError, LookupError, TypeError, ValueError) as error:
            raise hinged.InvalidState(f"the model is damaged: {error}") from None
        if not same:
            raise hinged.InvalidState("the model is another one than the spec describes")
        return model
