"""A classifier of the operator's own, called so that its exceptions do no harm."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

import hinged
from hinged_service.errors import SetAside
from hinged_service.river_support.custom.model import Served, last_step, takes_weights
from hinged_service.river_support.learners import RiverBinary, RiverMulticlass
from hinged_service.river_support.learners.adaptor import restored_names
from hinged_service.river_support.learners.classifier import (
    Checked,
    RiverClassifier,
    linear_weights,
)
from hinged_service.river_support.learners.interface import Features, Label
from hinged_service.river_support.learners.rules import teach
from hinged_service.wire.codec import encode_name

__all__ = ["CustomClassifier", "custom_learner"]

_NAMES = 100_000
_KINDS: dict[type, int] = {str: 1, bool: 2, type(None): 4}
_ALL_KINDS = sum(_KINDS.values())


def custom_learner(
    served: Served, max_features: int, max_classes: int | None
) -> RiverBinary | RiverMulticlass:
    """Return the fresh learner of a custom model.

    Parameters
    ----------
    served
        The custom model.
    max_features
        The most names of features, of 100,000 at most; later ones are left out and counted.
    max_classes
        The most classes of a multiclass classifier; `None` for a binary one.

    """
    classifier, cap = CustomClassifier(served), min(max_features, _NAMES)
    if max_classes is None:
        return RiverBinary(classifier, cap)
    return RiverMulticlass(classifier, cap, max_classes)


class CustomClassifier(RiverClassifier):
    """A classifier that takes features of any kind.

    Any exception of a prediction refuses the event. Features that are no numbers
    are first taught to an untrained copy, the first time a name has such a value: what
    raises there refuses the event too, before anything has changed.

    Parameters
    ----------
    served
        The custom model.

    """

    def __init__(self, served: Served) -> None:
        super().__init__(served.fresh, takes_weights(served.fresh))
        self._served = served
        self._kinds: dict[str, int] = {}
        """Kinds of values other than numbers that have been learned, by name."""

    def checked(self, x: Features) -> Checked:
        """Return all features: those that the operator's code takes are unknown."""
        return dict(x)

    def norm(self, x: Checked) -> float:
        """Return 0: the norm of the input of the last step is unknown."""
        return 0.0

    def probabilities(self, x: Checked) -> Mapping[Any, float]:
        """Return the probabilities; 1 for the predicted label where there are none."""
        try:
            try:
                return self.model.predict_proba_one(dict(x))
            except NotImplementedError:
                return {self.model.predict_one(dict(x)): 1.0}
        except (hinged.InvalidEvent, MemoryError):
            raise
        except BaseException as error:  # noqa: BLE001 - all that the operator's code may raise
            raise self._refusal(error) from None

    def is_positive(self, x: Checked) -> bool:
        """Return whether true is predicted at probability 0.5."""
        return self.model.predict_one(dict(x)) is True

    def teach(self, x: Checked, y: Label, w: float, classes: Iterable[Label]) -> None:
        """Learn an event; raise `InvalidEvent` if a copy fails on kinds of values new to it."""
        found = {name: _KINDS[type(v)] for name, v in x.items() if type(v) in _KINDS}
        new = {name: kind for name, kind in found.items() if not self._kinds.get(name, 0) & kind}
        weight = w if self.weighted else None
        if new:
            self._rehearse(x, y, weight)
        teach(self.model, dict(x), y, weight)
        for name, kind in new.items():
            self._kinds[name] = self._kinds.get(name, 0) | kind

    def _rehearse(self, x: Checked, y: Label, w: float | None) -> None:
        try:
            teach(copy.deepcopy(self.fresh), dict(x), y, w)
        except (hinged.InvalidEvent, MemoryError):
            raise
        except BaseException as error:  # noqa: BLE001 - as above
            raise self._refusal(error) from None

    def _refusal(self, error: BaseException) -> hinged.InvalidEvent:
        """Return the refusal of an event for an exception; raise it if it is no refusal."""
        panic = type(error).__name__ == "PanicException"  # of River's Rust, and no Exception
        if not (panic or isinstance(error, Exception)):
            raise error
        what = f"{type(error).__name__}: {error}"[:200]
        return hinged.InvalidEvent(
            "x", f"is refused by the custom model {self._served.name!r} ({what})"
        )

    def weights(self) -> dict[str, Any] | None:
        """Return copies of the weights of the last step and its intercept, if it is linear."""
        last = last_step(self.model)
        if isinstance(last, hinged.BinaryLinearClassifier) and not isinstance(last, hinged.Hedge):
            weights, intercept = dict(last.weights), 0.0 - last.threshold
        else:
            found = linear_weights(last)
            if found is None:
                return None
            weights, intercept = found["weights"], found["intercept"]
        return {"weights": {str(n): v for n, v in weights.items()}, "intercept": intercept}

    def check_saved(self, saved: Mapping[str, Any]) -> None:
        """Raise `SetAside` if the operator's code built something else there."""
        match saved:
            case {"scalars": {"kinds": dict(), "built": str() as built}}:
                pass
            case _:
                raise hinged.InvalidState("the state is not that of a custom model")
        if built != self._served.built:
            raise SetAside(
                f"The custom model {self._served.name!r} is of version {self._served.version!r} "
                "here as it was when its snapshot was made, but its code builds something else. "
                "Serve the old code, or declare another version and make another model.",
                retry_after_s=60,
            )

    def own_scalars(self) -> dict[str, Any]:
        """Return the kinds of values that are no numbers by name, and the digest as built."""
        kinds = {encode_name(name): kind for name, kind in self._kinds.items()}
        return {"kinds": kinds, "built": self._served.built}

    def restore(self, scalars: Mapping[str, Any], names: Iterable[Any]) -> None:
        """Take over model and kinds of a stored state, or raise `InvalidState`."""
        kinds = scalars["kinds"]
        if not all(type(kind) is int and 0 < kind <= _ALL_KINDS for kind in kinds.values()):
            raise hinged.InvalidState("the kinds of features are damaged")
        named = restored_names(list(kinds), _NAMES)
        super().restore(scalars, names)
        self._kinds = dict(zip(map(str, named), kinds.values(), strict=True))

    def _try(self, names: Iterable[Any]) -> None:
        """Ask nothing: the kinds of values that the operator's code takes are unknown."""
