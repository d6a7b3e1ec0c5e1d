"""Calibration: the probabilities of any learner, by a temperature learned online."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, TypeGuard

from hinged import state
from hinged.accounting import Accounting, Fields
from hinged.auto import Auto
from hinged.base import Contributions, LinearClassifier
from hinged.binary import probabilities
from hinged.errors import InvalidParameter, InvalidState, shown
from hinged.events import Label, binary_target
from hinged.multiclass import MulticlassClassifier, softmax
from hinged.perceptron import Perceptron
from hinged.temperature import Temperature
from hinged.vector import Event, Features

__all__ = ["Calibrated"]

_OfMany = MulticlassClassifier | Auto
"""The learners that have a score for every class."""


@cache
def _is_of_many(kind: type[LinearClassifier]) -> bool:
    return issubclass(kind, _OfMany)


def _of_many(learner: LinearClassifier) -> TypeGuard[_OfMany]:
    return _is_of_many(type(learner))  # `isinstance` of abstract classes takes longer than learning


class Calibrated(LinearClassifier):
    """A learner with calibrated probabilities; its labels and scores stay.

    A `hinged.temperature.Temperature` turns the scores into log-odds: the probability is
    the logistic function of them, of many classes their softmax. It learns from each
    event's scores before the learner does.

    A temperature knows no bias: scores that are about 0 give a probability of about a
    half, however rare a label is. `Hedge` is calibrated by itself.

    Parameters
    ----------
    learner
        Any learner of this package, binary or multiclass, never touched: what learns is
        a clone.

    Attributes
    ----------
    calibrated : LinearClassifier
        The learned learner.
    temperature : Temperature
        Its temperature.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from hinged import Calibrated, Perceptron

    >>> def log_loss(model):
    ...     model = preprocessing.StandardScaler() | model
    ...     loss = evaluate.progressive_val_score(datasets.Phishing(), model, metrics.LogLoss())
    ...     return round(loss.get(), 3)
    >>> log_loss(Perceptron()), log_loss(Calibrated(Perceptron()))
    (0.708, 0.357)

    References
    ----------
    Guo, C., Pleiss, G., Sun, Y. and Weinberger, K. Q., 2017. On calibration of modern neural
    networks. ICML 34.

    """

    def __init__(self, learner: LinearClassifier) -> None:
        if not isinstance(learner, LinearClassifier) or isinstance(learner, Calibrated):
            raise InvalidParameter(f"must be a learner of hinged, not {shown(learner)}")
        self.calibrated: LinearClassifier = learner.clone()
        super().__init__()
        self.learner = learner
        self.temperature = Temperature()

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"learner": Perceptron()}

    @property
    def accounting(self) -> Accounting:
        """Events, mistakes, updates and losses so far: the learner's."""
        return self.calibrated.accounting

    @accounting.setter
    def accounting(self, account: Accounting) -> None:
        self.calibrated.accounting = account

    @property
    def clock(self) -> int:
        """Events of weight above 0 so far."""
        return self.calibrated.clock

    @clock.setter
    def clock(self, clock: int) -> None:
        self.calibrated.clock = clock

    @property
    def _multiclass(self) -> bool:
        return self.calibrated._multiclass  # noqa: SLF001 - as below

    @property
    def label_at_zero(self) -> bool:
        """The label predicted at score 0, as the learner does."""
        return bool(getattr(self.calibrated, "label_at_zero", False))

    @property
    def classes(self) -> list[Label]:
        """The classes in the order in which they were seen; false and true if binary."""
        learner = self.calibrated
        return learner.classes if _of_many(learner) else [False, True]

    def _known_classes(self) -> Iterable[Label]:
        return self.classes

    def _learn(self, x: Event, y: Hashable, w: float) -> Fields:
        learner, temperature = self.calibrated, self.temperature
        if _of_many(learner):
            label = learner._check_label(y)  # noqa: SLF001 - a learner of the same family
            shares = temperature.log_shares(learner.scores_one(x))
            outcome = learner.predict_learn_one(x, label, w)
            if w > 0.0:
                temperature.learn_class(shares, label, float(w))
            return outcome
        told = learner._learn(x, y, w)  # noqa: SLF001
        if w > 0.0:
            z = temperature.log_odds(told[1])
            temperature.learn(z, y is True or (y is not False and binary_target(y) > 0.0), float(w))
        return told

    def score_one(self, x: Event) -> float:
        """Return the finite score behind the predicted label: the learner's."""
        return self.calibrated.score_one(x)

    def predict_one(self, x: Event, **kwargs: object) -> Label | None:
        """Return the learner's label of `x`."""
        return self.calibrated.predict_one(x)

    def predict_proba_one(self, x: Event, **kwargs: object) -> dict[Label, float]:
        """Return the probability of each known class, calibrated; never 0, and 1 for the only one.

        The label is a likeliest class.
        """
        learner = self.calibrated
        if _of_many(learner):
            return softmax(self.temperature.log_shares(learner.scores_one(x)))
        return probabilities(self.temperature.log_odds(learner.score_one(x)))

    def explain_one(self, x: Event, *args: Label) -> Features:
        """Return the contribution of each feature to the score, as the learner does."""
        return self.calibrated.explain_one(x, *args)

    def contributions(self, x: Features, y: Label | None = None) -> Contributions:
        """Return value and weight of each feature of a checked event, as the learner does."""
        return self.calibrated.contributions(x, y)

    def _check_label(self, y: Hashable) -> object:
        return self.calibrated._check_label(y)  # noqa: SLF001

    def _check_labels(self, labels: list[Hashable]) -> None:
        self.calibrated._check_labels(labels)  # noqa: SLF001

    def check_weight(self, w: object) -> float:
        """Return the sample weight as a float, or raise `InvalidEvent`."""
        return self.calibrated.check_weight(w)

    def track(self) -> None:
        """Note from now on which names change, as the learner does."""
        self.calibrated.track()

    @property
    def numbers_per_name(self) -> int:
        """The numbers that the learner stores for a name."""
        return self.calibrated.numbers_per_name

    def stored_bytes(self) -> int:
        """Return the bytes of the numbers stored by name."""
        return self.calibrated.stored_bytes()

    def growth_bytes(self, x: Event, y: Hashable, enough: float = math.inf) -> int:
        """Return how many more bytes learning `x` with the label `y` may store at most."""
        return self.calibrated.growth_bytes(x, y, enough)

    def get_state(self) -> dict[str, Any]:
        """Return all that is needed to go on learning, as `LinearClassifier.get_state` says.

        It is the learner's, whose type is under `"learner"`, with the scalars `log_scale`
        and `curvature`.
        """
        inner = self.calibrated.get_state()
        scalars = {**inner["scalars"], **self.temperature.scalars()}
        return {**inner, "type": type(self).__name__, "learner": inner["type"], "scalars": scalars}

    def set_state(self, saved: Mapping[str, Any]) -> None:
        """Take over a saved state, or raise `InvalidState` and change nothing."""
        saved = state.checked_header(saved, type(self).__name__)
        scalars, kinds = saved.get("scalars"), Temperature.kinds()
        if not isinstance(scalars, Mapping):
            raise InvalidState(f"the scalars must be a mapping, not {shown(scalars)}")
        temperature = Temperature()
        temperature.set_state({name: scalars[name] for name in kinds if name in scalars})
        inner = {name: value for name, value in scalars.items() if name not in kinds}
        self.calibrated.set_state({**saved, "type": saved.get("learner"), "scalars": inner})
        self.temperature = temperature
