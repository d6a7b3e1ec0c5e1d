"""Multiclass Hedge: several multiclass learners on one stream, weighted by their mistakes."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from hinged import members, state
from hinged.base import INTERCEPT, Contributions
from hinged.errors import InvalidParameter, shown
from hinged.events import Label, finite_features
from hinged.kernel import (
    class_shares,
    judged,
    log_probabilities,
    scores_at_once,
    served_scores,
    teach_classes,
)
from hinged.multiclass import (
    DEFAULT_CLASSES,
    MulticlassByParts,
    MulticlassClassifier,
    admitted_class,
    best,
    restored_classes,
)
from hinged.multiclass_arow import MulticlassAROW
from hinged.multiclass_averaged import MulticlassAveragedPerceptron
from hinged.multiclass_discriminant import MulticlassDiscriminant
from hinged.multiclass_linear import MulticlassLinearClassifier
from hinged.multiclass_logistic_sgd import MulticlassLogisticSGD
from hinged.multiclass_passive_aggressive import MulticlassPassiveAggressive
from hinged.multiclass_perceptron import MulticlassPerceptron
from hinged.multiclass_quadratic import MulticlassQuadratic
from hinged.pool import Pool
from hinged.vector import Event, Features, Numbers

__all__ = ["MulticlassHedge", "default_multiclass_pool"]

Scores = dict[Label, float]


class MulticlassHedge(Pool[MulticlassClassifier], MulticlassByParts[None]):
    """A pool of multiclass learners: trust by mistakes, probabilities by temperature.

    Expert i scores class k with s_ik and holds the trust v_i, all of them summing to
    1. T_i and T are online temperatures (see `hinged.temperature`): they take the
    highest score off, scale, and cut at -15. On an event:

        z_k = T(sum of v_i T_i(s_i)_k),  p = softmax(z)
        v_i *= exp(-learning_rate sample_weight) for each expert whose label is wrong
        v_i = (1 - share) v_i / (sum of all) + share / n

    then the temperatures and every expert learn the event. The score of a class is ln p_k.

    The label is that of the pool, the class of the highest p, not the class of most
    trust: on ten streams of 3 to 26 classes the pool was right more often on nine, by
    up to 0.8 points of per cent, and as often on one.

    Time and memory are those of all experts together. Those of the default pool move one or
    two classes per event, of any number of classes; `MulticlassLogisticSGD` moves all that
    are likely.

    Parameters
    ----------
    models
        Multiclass learners of this package, never touched: each expert is a clone.
        `None` is the default pool: `MulticlassLogisticSGD`,
        `MulticlassAveragedPerceptron`, `MulticlassDiscriminant`, which is right with few
        events, `MulticlassPassiveAggressive` with `C` of 0.01, and `MulticlassQuadratic`,
        which learns the squares of the features too.
    learning_rate
        How fast trust is lost, above 0.
    share
        The part of all trust spread evenly after each event, in [0, 1).
    max_classes
        The most classes, or `None` for no limit; an event of one more is refused. The
        least of it and those of `models` holds.

    Attributes
    ----------
    trust : list of float
        The trust in each expert, in the order of `models`.
    temperatures : list of Temperature
        That of each expert, and last that of the pool.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from hinged import MulticlassHedge

    >>> model = preprocessing.StandardScaler() | MulticlassHedge()
    >>> evaluate.progressive_val_score(datasets.ImageSegments(), model, metrics.Accuracy())
    Accuracy: 89.43%

    References
    ----------
    Freund, Y. and Schapire, R. E., 1997. A decision-theoretic generalization of on-line learning
    and an application to boosting. Journal of Computer and System Sciences, 55(1).
    Herbster, M. and Warmuth, M. K., 1998. Tracking the best expert. Machine Learning, 32(2).
    Genest, C. and Zidek, J. V., 1986. Combining probability distributions. Statistical Science,
    1(1). Section on the logarithmic opinion pool.

    """

    _CLASS_RULE = "pool"

    def __init__(
        self,
        models: Sequence[MulticlassClassifier] | None = None,
        learning_rate: float = 0.1,
        share: float = 0.001,
        max_classes: int | None = DEFAULT_CLASSES,
    ) -> None:
        super().__init__(fit_intercept=True, max_classes=max_classes)
        if models is not None and not isinstance(models, Sequence):
            raise InvalidParameter(f"models must be a list of learners, not {shown(models)}")
        self.models = models
        pool = default_multiclass_pool(max_classes) if models is None else models
        self._fill(map(_checked, pool), learning_rate, share)
        caps = [self.max_classes, *(model.max_classes for model in self._prototypes)]
        self._cap = min((cap for cap in caps if cap is not None), default=None)
        self._heard: tuple[list[Scores], list[Scores]] = [], []

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"models": [MulticlassPerceptron(), MulticlassAROW()]}

    def _new_part(self) -> None:
        return None  # the experts have the parts

    def _raw_scores(self, x: Event) -> tuple[Numbers, Scores]:
        numbers = finite_features(x)
        served = served_scores(self._experts, numbers)
        shares = class_shares(self.temperatures, self.trust, served, self._parts)
        self._heard = served, shares
        return numbers, log_probabilities(shares[-1])

    def _shares(self, x: Event) -> list[Scores]:
        served = served_scores(self._experts, x)
        return class_shares(self.temperatures, self.trust, served, self._parts)

    def scores_one(self, x: Event) -> Scores:
        """Return ln p of every class, in the order the classes were seen."""
        scores = scores_at_once(self, x) if self._rule else None
        return scores or log_probabilities(self._shares(x)[-1])

    def _learn_classes(
        self, x: Numbers, y: Label, rival: Label | None, margin: float, norm: float, w: float
    ) -> bool:
        served, shares = self._heard
        if served[0]:
            wrong = [best(scores) != y for scores in served]
            self.trust = judged(self.trust, wrong, self._learning_rate * w, self.share)
        for temperature, share in zip(self.temperatures, shares, strict=True):
            temperature.learn_class(share, y, w)
        return teach_classes(self._experts, x, y, w, self.accounting)

    def _check_label(self, y: Hashable) -> Label:
        return admitted_class(y, self._parts, self._cap)

    def contributions(self, x: Features, y: Label | None = None) -> Contributions:
        """Return log-share and trust of each expert, by `"expert i"`; the rest is the intercept.

        The intercept is the logarithm of what all classes are divided by, to sum to 1.
        """
        *shares, pooled = self._shares(x)
        scale, scores = self.temperatures[-1].scale, log_probabilities(pooled)
        label = "" if y is None else y  # no class is known
        pairs = enumerate(zip(shares, self.trust, strict=True))
        parts: Contributions = {
            f"expert {i}": (scale * z.get(label, 0.0), v) for i, (z, v) in pairs
        }
        rest = scores.get(label, 0.0)
        for value, trust in parts.values():
            rest -= value * trust
        return {**parts, INTERCEPT: (1.0, rest)}

    def track(self) -> None:
        """Note from now on which names change, those of new classes included."""
        self._tracking = True
        for expert in self._experts:
            expert.track()

    def growth_bytes(self, x: Event, y: Hashable, enough: float = math.inf) -> int:
        """Return how many more bytes learning `x` with the label `y` may store at most."""
        more = 0
        for expert in self._experts:
            if more > enough:
                break
            more += expert.growth_bytes(x, y, enough - more)
        return more

    def get_state(self) -> dict[str, Any]:
        """Return the complete state, as `LinearClassifier.get_state` and `Pool` describe it."""
        return {**self._pool_state(), "classes": self.classes}

    def set_state(self, saved: Mapping[str, Any]) -> None:
        """Take over a saved state, or raise `InvalidState` and change nothing.

        One of an earlier default pool keeps the experts that it has.
        """
        saved = state.checked_header(saved, type(self).__name__)
        classes = restored_classes(saved.get("classes"))
        first = self._prototypes[0]
        cap = first.max_features if isinstance(first, MulticlassLinearClassifier) else None
        caps = first.max_classes, cap
        pools = [default_multiclass_pool(*caps), *_pools_before(*caps)]
        prototypes = members.pool_of(saved.get("members"), self._prototypes, pools)
        self._take_state(self._read_state(saved, prototypes))
        self._parts = dict.fromkeys(classes)


def default_multiclass_pool(
    max_classes: int | None = DEFAULT_CLASSES, max_features: int | None = None
) -> list[MulticlassClassifier]:
    """Return the learners that a multiclass hedge takes if it is given none, capped each.

    A feature and its square count as one.
    """
    return [
        MulticlassLogisticSGD(max_classes=max_classes, max_features=max_features),
        MulticlassAveragedPerceptron(max_classes=max_classes, max_features=max_features),
        MulticlassDiscriminant(max_classes, max_features),
        MulticlassPassiveAggressive(C=0.01, max_classes=max_classes, max_features=max_features),
        _of_squares(max_classes, max_features),
    ]


def _of_squares(max_classes: int | None, max_features: int | None) -> MulticlassClassifier:
    both = None if max_features is None else 2 * max_features
    return MulticlassQuadratic(MulticlassAROW(max_classes=max_classes, max_features=both))


def _pools_before(
    max_classes: int | None, max_features: int | None
) -> list[list[MulticlassClassifier]]:
    """Return the default pools of before, the newest first."""
    caps: dict[str, Any] = {"max_classes": max_classes, "max_features": max_features}
    ends: list[tuple[MulticlassClassifier, MulticlassClassifier]] = [
        (MulticlassLogisticSGD(**caps), _of_squares(max_classes, max_features)),
        (MulticlassLogisticSGD(**caps), MulticlassAROW(**caps)),
        (MulticlassPerceptron(**caps), MulticlassAROW(**caps)),
    ]
    return [
        [
            first,
            MulticlassAveragedPerceptron(**caps),
            MulticlassPassiveAggressive(**caps),
            MulticlassPassiveAggressive(C=0.01, **caps),
            last,
        ]
        for first, last in ends
    ]


def _checked(model: object) -> MulticlassClassifier:
    """Return a multiclass learner of this package, or raise `InvalidParameter`."""
    if isinstance(model, MulticlassClassifier):
        return model
    raise InvalidParameter(f"must be a multiclass learner of hinged, not {shown(model)}")
