"""Hedge: several learners on one stream, weighted by their mistakes."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from hinged import members, state
from hinged.accounting import Fields
from hinged.arow import AROW
from hinged.averaged import AveragedPerceptron
from hinged.base import Contributions
from hinged.base_rate import BaseRate
from hinged.binary import BinaryLinearClassifier, probabilities
from hinged.curved import curved_pool
from hinged.errors import InvalidParameter, shown
from hinged.events import Label, binary_target, finite_features
from hinged.hinge_sgd import HingeSGD
from hinged.kernel import pool_event, pool_score, pooled, scores_of
from hinged.linear_unit import LinearUnit
from hinged.logistic_sgd import LogisticSGD
from hinged.parameters import checked_flag
from hinged.passive_aggressive import PassiveAggressive
from hinged.perceptron import Perceptron
from hinged.pool import Pool
from hinged.quadratic import Quadratic
from hinged.scw import SCW
from hinged.temperature import Temperature
from hinged.vector import Event, Features

__all__ = ["Hedge", "default_pool"]


class Hedge(Pool[BinaryLinearClassifier]):
    """A pool of binary learners by multiplicative weights, with a share for drift.

    Expert i scores s_i, holds the trust v_i, all of them summing to 1, and has a
    `hinged.temperature.Temperature`, as the pool has one; A and A_i turn scores into
    log-odds. B mixes the base rate of the labels in, as far as it tells them better, and
    leaves the sign (`hinged.base_rate.BaseRate`). On an event:

        z_i = A_i(s_i),  score = B(A(sum of v_i z_i))
        v_i *= exp(-learning_rate sample_weight) for each expert whose label is wrong
        v_i = (1 - share) v_i / (sum of all) + share / n

    then every expert learns the event, and every temperature and the base rate its label.
    With `share=0` the trust is that of the weighted majority: its vote makes, but for terms
    in the rate and log n, at most twice the mistakes of the best expert. The share keeps
    every expert ready to return when the best one changes.

    The score is the log-odds of true, from -15 to 15, and its sign is the label: label,
    mistakes, hinge loss and probability all come from it. The vote, by which an expert
    that is sure counts no more than one that is not, gave as many right labels on 46
    streams (more on 17, fewer on 25, never by more than 0.009), but no order of the events
    and no probabilities.

    Time and memory are those of all experts together.

    Parameters
    ----------
    models
        Binary learners of this package, never touched: each expert is a clone.
        `None` is the default pool: `PassiveAggressive`, `SCW`, `SCW(phi=1.0)`,
        `LogisticSGD`, `HingeSGD(0.03)` and `Quadratic`, which learns the squares of the
        features too.
    learning_rate
        How fast trust is lost, above 0.
    share
        The part of all trust spread evenly after each event, in [0, 1).
    curved
        Whether two experts come after the others that are `Curved`, of 100 components and
        bends 1 and 4: for few, dense and scaled features.

    Attributes
    ----------
    trust : list of float
        The trust in each expert, in the order of `models`.
    temperatures : list of Temperature
        That of each expert, and last that of the pool.
    base_rate : BaseRate
        The base rate of the labels, and the trust in it.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from hinged import Hedge

    >>> model = preprocessing.StandardScaler() | Hedge()
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 90.00%

    References
    ----------
    Freund, Y. and Schapire, R. E., 1997. A decision-theoretic generalization of on-line learning
    and an application to boosting. Journal of Computer and System Sciences, 55(1).
    Herbster, M. and Warmuth, M. K., 1998. Tracking the best expert. Machine Learning, 32(2).

    """

    def __init__(
        self,
        models: Sequence[BinaryLinearClassifier] | None = None,
        learning_rate: float = 0.1,
        share: float = 0.001,
        curved: bool = False,
    ) -> None:
        super().__init__()
        if models is not None and not isinstance(models, Sequence):
            raise InvalidParameter(f"models must be a list of learners, not {shown(models)}")
        self.models = models
        self.curved = checked_flag("curved", curved)
        pool = [*(default_pool() if models is None else models), *(curved_pool() if curved else ())]
        self._fill(map(members.checked, pool), learning_rate, share)
        self.base_rate = BaseRate()

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"models": [Perceptron(), AROW()]}

    def _learn(self, x: Event, y: Hashable, w: float) -> Fields:
        target = binary_target(y)
        if type(w) is not float or w != 1.0:
            w = self.check_weight(w)
        numbers = finite_features(x)
        account = self.accounting
        account.events += 1
        if w == 0.0:
            score = self.score_one(numbers)
            return score > 0.0, score, False, False, 0.0
        self.clock += 1
        fields, self.trust = pool_event(
            self._experts,
            self.temperatures,
            self.base_rate,
            self.trust,
            numbers,
            target > 0.0,
            w,
            self._learning_rate * w,
            self.share,
            account,
            self._constant,
        )
        return fields

    def score_one(self, x: Event) -> float:
        """Return the pooled log-odds of true, from -15 to 15; true is predicted above 0."""
        return pool_score(self._experts, self.temperatures, self.base_rate, self.trust, x)

    def predict_one(self, x: Event, **kwargs: object) -> bool:
        """Return the label of `x`: true only if the score is above 0."""
        return self.score_one(x) > 0.0

    def predict_proba_one(self, x: Event, **kwargs: object) -> dict[Label, float]:
        """Return `{False: 1 - p, True: p}` with p the logistic function of the score.

        It is calibrated online, and never 0 or 1.
        """
        return probabilities(self.score_one(x))

    def _check_label(self, y: Hashable) -> float:
        return binary_target(y)

    def contributions(self, x: Features, y: Label | None = None) -> Contributions:
        """Return log-odds of each expert, and their weight in the score, by `"expert i"`."""
        scores = scores_of(self._experts, x)
        *log_odds, together = pooled(self.temperatures, self.trust, scores)
        score = self.base_rate.mixed(together)
        pool = 0.0
        for v, z in zip(self.trust, log_odds, strict=True):
            pool += v * z
        scale = score / pool if pool else 1.0
        pairs = zip(log_odds, self.trust, strict=True)
        return {f"expert {i}": (z, v * scale) for i, (z, v) in enumerate(pairs)}

    def growth_bytes(self, x: Event, y: Hashable, enough: float = math.inf) -> int:
        """Return how many more bytes learning `x` may store at most."""
        return sum(expert.missing_bytes(x) for expert in self._experts)

    def get_state(self) -> dict[str, Any]:
        """Return the complete state, as `LinearClassifier.get_state` says.

        Scalars that begin with `base_` are the base rate; `Pool` describes the others.
        """
        return self._pool_state(self.base_rate.scalars())

    def set_state(self, saved: Mapping[str, Any]) -> None:
        """Take over a saved state, or raise `InvalidState` and change nothing.

        One without any temperature, as fold version 2 saved it, goes on with new ones, as
        one without a base rate. One of an earlier default pool keeps the experts that it has.
        """
        saved = state.checked_header(saved, type(self).__name__)
        cap = self._prototypes[0].max_features
        pools = [default_pool(cap), _first_pool(cap), _linear_pool(cap)]
        prototypes = members.pool_of(saved.get("members"), self._prototypes, pools)
        starts: dict[str, float] = {}
        for i in range(len(prototypes) + 1):
            starts |= Temperature().scalars(f"_{i}")
        found = saved.get("scalars")
        for part in (starts, BaseRate().scalars()):
            if isinstance(found, Mapping) and not part.keys() & found.keys():
                found = {**part, **found}
        read = self._read_state({**saved, "scalars": found}, prototypes, BaseRate.kinds())
        self.base_rate = BaseRate.restored(read.scalars)
        self._take_state(read)


def default_pool(max_features: int | None = None) -> list[BinaryLinearClassifier]:
    """Return the learners that a hedge takes if it is given none.

    The cap is that of each; a feature and its square count as one.
    """
    both = None if max_features is None else 2 * max_features
    return [
        PassiveAggressive(max_features=max_features),
        SCW(max_features=max_features),
        SCW(phi=1.0, max_features=max_features),
        LogisticSGD(max_features=max_features),
        HingeSGD(0.03, max_features=max_features),
        Quadratic(SCW(phi=1.0, max_features=both)),
    ]


def _linear_pool(max_features: int | None) -> list[BinaryLinearClassifier]:
    """Return the default pool of fold version 3."""
    return [
        PassiveAggressive(max_features=max_features),
        AROW(max_features=max_features),
        SCW(max_features=max_features),
        SCW(phi=1.0, max_features=max_features),
        LogisticSGD(max_features=max_features),
        HingeSGD(0.03, max_features=max_features),
    ]


def _first_pool(max_features: int | None) -> list[BinaryLinearClassifier]:
    """Return the default pool up to fold version 2."""
    return [
        Perceptron(max_features=max_features),
        AveragedPerceptron(max_features=max_features),
        PassiveAggressive(max_features=max_features),
        AROW(max_features=max_features),
        HingeSGD(max_features=max_features),
        LinearUnit(max_features=max_features),
    ]
