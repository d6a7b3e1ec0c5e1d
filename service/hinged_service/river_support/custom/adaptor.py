"""What a fold asks of any learner, answered by a classifier of the operator's own."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any

import hinged
from hinged.vector import Features
from hinged_service.errors import SetAside
from hinged_service.river_support.custom.model import Served, last_step, takes_weights
from hinged_service.river_support.custom.parts import Parts, parts_of
from hinged_service.river_support.learners import RiverBinary, RiverMulticlass
from hinged_service.river_support.learners.adaptor import Adaptor
from hinged_service.river_support.learners.binary import linear_weights
from hinged_service.river_support.learners.teaching import teach
from hinged_service.wire.codec import encode_name

__all__ = ["CustomBinary", "CustomMulticlass"]

_NAMES = 100_000
_KINDS = {str: 1, bool: 2, type(None): 4}
_ALL_KINDS = sum(_KINDS.values())


class _Custom(Adaptor):
    """Takes features of any kind, and no harm from code that raises on an event.

    Whatever the classifier raises when it is asked refuses the event. Features that are
    no numbers are first taught to an untrained copy, the first time a name has such a
    value: what raises there refuses the event too, before anything has changed.
    """

    _served: Served
    _kinds: dict[str, int]
    """By name, the kinds of values other than numbers that have been learned."""

    def _checked(self, x: Mapping[Any, Any]) -> Features:
        return dict(x)

    def _try(self, names: Features) -> None:
        """Ask nothing: which kinds of values the operator's code takes is not known."""

    def _norm(self, x: Features) -> float:
        return 0.0  # that of what reaches the last step is not known

    def _probabilities(self, x: Features) -> Mapping[Any, float]:
        model = self._model
        try:
            try:
                found: Mapping[Any, float] = model.predict_proba_one(dict(x))
            except NotImplementedError:
                found = {model.predict_one(dict(x)): 1.0}
        except (hinged.InvalidEvent, MemoryError):
            raise
        except BaseException as error:  # noqa: BLE001 - whatever the operator's code raises
            raise self._refusal(error) from None
        return found

    def _refusal(self, error: BaseException) -> hinged.InvalidEvent:
        """Return the refusal of an event for what was raised; raise what is no answer to it."""
        panic = type(error).__name__ == "PanicException"  # of River's Rust, and no Exception
        if not (panic or isinstance(error, Exception)):
            raise error
        what = f"{type(error).__name__}: {error}"[:200]
        return hinged.InvalidEvent(
            "x", f"is refused by the custom model {self._served.name!r} ({what})"
        )

    def _teach(self, x: Features, y: Any, w: float) -> None:
        kinds = self._new_kinds(x)
        weight = w if self._weighted else None
        if kinds:
            self._rehearse(x, y, weight)
        teach(self._model, dict(x), y, weight)
        for name, kind in kinds.items():
            self._kinds[name] = self._kinds.get(name, 0) | kind

    def _new_kinds(self, x: Mapping[Any, Any]) -> dict[str, int]:
        found = {name: _KINDS[type(v)] for name, v in x.items() if type(v) in _KINDS}
        return {name: kind for name, kind in found.items() if not self._kinds.get(name, 0) & kind}

    def _rehearse(self, x: Features, y: Any, w: float | None) -> None:
        try:
            teach(copy.deepcopy(self._fresh), dict(x), y, w)
        except (hinged.InvalidEvent, MemoryError):
            raise
        except BaseException as error:  # noqa: BLE001 - as above
            raise self._refusal(error) from None

    def parts(self) -> Parts:
        """Return what the classifier is made of."""
        return parts_of(self._model)

    def get_state(self) -> dict[str, Any]:
        """Return all that is needed to go on learning exactly where this stands.

        Returns
        -------
        As a River learner has it; among the scalars also the `"kinds"` of values that
        are no numbers by name, and the digest of what was `"built"`.

        """
        found = super().get_state()
        kinds = {encode_name(name): kind for name, kind in self._kinds.items()}
        found["scalars"] |= {"kinds": kinds, "built": self._served.built}
        return found

    def set_state(self, saved: Mapping[str, Any]) -> None:
        """Take over a state that `get_state` gave, here or in another process.

        Raises
        ------
        InvalidState
            If it is of another version or kind of learner, or damaged. The learner has
            not changed.
        SetAside
            If what was built there is not what is built here.

        """
        match saved:
            case {"scalars": {"kinds": dict() as kinds, "built": str() as built, **scalars}}:
                pass
            case _:
                raise hinged.InvalidState("the state is not that of a custom model")
        if built != self._served.built:
            raise SetAside(
                f"The custom model {self._served.name!r} is of version {self._served.version!r} "
                "here as it was when its snapshot was made, but its code builds something else. "
                "Serve the code of then, or declare another version and make another model.",
                retry_after_s=60,
            )
        if not all(type(kind) is int and 0 < kind <= _ALL_KINDS for kind in kinds.values()):
            raise hinged.InvalidState("the kinds of features are damaged")
        names = {encode_name(name): name for name in self._restored_names(list(kinds))}
        super().set_state({**saved, "scalars": scalars})
        self._kinds = {str(names[name]): kind for name, kind in kinds.items()}


class CustomBinary(_Custom, RiverBinary):
    """A binary classifier of the operator's own, with the face of a binary learner.

    The score is 2 P(true) - 1. Where it is 0, it takes the least value that has the sign
    of what the classifier predicts.

    Parameters
    ----------
    served
        The custom model.
    max_features
        The most names of features, of 100,000 at most; later ones are left out and counted.

    """

    def __init__(self, served: Served, max_features: int) -> None:
        fresh = served.fresh
        super().__init__(fresh, min(max_features, _NAMES), takes_weights(fresh))
        self._served, self._kinds = served, {}

    def _answer(self, x: Features) -> tuple[float, dict[bool, float]]:
        score, proba = super()._answer(x)
        if score == 0.0 and self._model.predict_one(dict(x)) is True:
            score = math.ulp(0.0)
        return score, proba

    def weights(self) -> dict[str, Any] | None:
        """Return copies of the weights of the last step and its intercept, if it is linear."""
        last = last_step(self._model)
        if isinstance(last, hinged.BinaryLinearClassifier) and not isinstance(last, hinged.Hedge):
            weights, intercept = dict(last.weights), 0.0 - last.threshold
        else:
            found = linear_weights(last)
            if found is None:
                return None
            weights, intercept = found["weights"], found["intercept"]
        return {"weights": {str(n): v for n, v in weights.items()}, "intercept": intercept}


class CustomMulticlass(_Custom, RiverMulticlass):
    """A multiclass classifier of the operator's own, with the face of a multiclass learner.

    Parameters
    ----------
    served, max_features
        See `CustomBinary`.
    max_classes
        The most classes; an event of one more is refused.

    """

    def __init__(self, served: Served, max_features: int, max_classes: int) -> None:
        fresh = served.fresh
        cap = min(max_features, _NAMES)
        super().__init__(fresh, cap, max_classes, weighted=takes_weights(fresh))
        self._served, self._kinds = served, {}
