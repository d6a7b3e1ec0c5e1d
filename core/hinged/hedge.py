"""Hedge: several learners on one stream, trusted as much as they deserve."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from hinged import members, state
from hinged.accounting import Fields
from hinged.arow import AROW
from hinged.averaged import AveragedPerceptron
from hinged.base import Contributions, LinearClassifier
from hinged.binary import BELOW_1, BinaryLinearClassifier, of_both_labels
from hinged.errors import InvalidParameter
from hinged.events import Label, binary_target, checked_weight, finite_features
from hinged.hinge_sgd import HingeSGD
from hinged.linear_unit import LinearUnit
from hinged.parameters import NonNegativeNumber, PositiveNumber
from hinged.passive_aggressive import PassiveAggressive
from hinged.perceptron import Perceptron
from hinged.state import COUNT, SUM
from hinged.vector import Event, Features, name_bytes

__all__ = ["Hedge", "default_pool", "vote_probabilities"]


class Hedge(LinearClassifier):
    """A vote of binary learners by multiplicative weights, with a share for drift.

    Expert i scores s_i and holds the trust v_i, all of them summing to 1. On an
    event:

        score = sum of v_i sgn(s_i),  with sgn(0) = 0
        v_i *= exp(-learning_rate sample_weight) for each expert whose label is wrong
        v_i = (1 - share) v_i / (sum of all) + share / n

    then every expert learns the event. With `share=0` the mistakes are, but for
    terms in the rate and log n, at most twice those of the best expert; the share
    keeps every expert ready to return when the best one changes.

    Time and memory are those of all experts together.

    Parameters
    ----------
    models
        Binary learners of this package, never touched: each expert is a clone.
        `None` is the default pool: `Perceptron`, `AveragedPerceptron`,
        `PassiveAggressive`, `AROW`, `HingeSGD` and `LinearUnit` with their defaults.
    learning_rate
        How fast trust is lost, above 0.
    share
        The part of all trust spread evenly after each event, in [0, 1).

    Attributes
    ----------
    trust : list of float
        The trust in each expert, in the order of `models`.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from hinged import Hedge

    >>> model = preprocessing.StandardScaler() | Hedge()
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 89.76%

    References
    ----------
    Freund, Y. and Schapire, R. E., 1997. A decision-theoretic generalization of on-line learning
    and an application to boosting. Journal of Computer and System Sciences, 55(1).
    Herbster, M. and Warmuth, M. K., 1998. Tracking the best expert. Machine Learning, 32(2).

    """

    learning_rate = PositiveNumber(mutable=True)
    _learning_rate: float
    share = NonNegativeNumber()

    def __init__(
        self,
        models: Sequence[BinaryLinearClassifier] | None = None,
        learning_rate: float = 0.1,
        share: float = 0.001,
    ) -> None:
        super().__init__()
        self.models = models
        self.learning_rate = learning_rate
        self.share = share
        if not self.share < 1.0:
            raise InvalidParameter(f"0 <= share < 1 must hold, not share={share!r}")
        pool = default_pool() if models is None else models
        self._prototypes = [members.checked(model) for model in pool]
        if not self._prototypes:
            raise InvalidParameter("models must hold at least one learner")
        self._experts = [model.clone() for model in self._prototypes]
        self.trust = [1.0 / len(self._experts)] * len(self._experts)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"models": [Perceptron(), AROW()]}

    @property
    def experts(self) -> tuple[BinaryLinearClassifier, ...]:
        """The learned experts, in the order of `models`."""
        return tuple(self._experts)

    def _learn(self, x: Event, y: Hashable, w: float) -> Fields:
        target = binary_target(y)
        w = self.check_weight(w)
        numbers = finite_features(x)
        scores = [expert.score_one(numbers) for expert in self._experts]
        score = self._vote(scores)
        positive = score > 0.0
        account = self.accounting
        account.events += 1
        if w == 0.0:
            return positive, score, False, False, 0.0
        self.clock += 1
        margin = target * score
        if margin < 1.0:
            account.add_margin(margin)
        mistake = positive is not (target > 0.0)
        account.mistakes += mistake
        account.add_norm(math.hypot(*numbers.values()), self._constant)
        labels = [
            s > 0.0 or (e.label_at_zero and s == 0.0)
            for s, e in zip(scores, self._experts, strict=True)
        ]
        self._judge([label is not (target > 0.0) for label in labels], w)
        updated = False
        for expert in self._experts:
            updated |= members.learn(expert, numbers, target > 0.0, w, account)
        account.updates += updated
        return positive, score, mistake, updated, max(0.0, 1.0 - margin)

    def _judge(self, wrong: list[bool], w: float) -> None:
        factor = math.exp(-self._learning_rate * w)
        trust = [v * factor if bad else v for v, bad in zip(self.trust, wrong, strict=True)]
        total = math.fsum(trust)
        if total > 0.0:
            even = self.share / len(trust)
            self.trust = [(1.0 - self.share) * v / total + even for v in trust]

    def _vote(self, scores: list[float]) -> float:
        votes = [(s > 0.0) - (s < 0.0) for s in scores]
        return math.fsum(v * vote for v, vote in zip(self.trust, votes, strict=True))

    def score_one(self, x: Event) -> float:
        """Return the vote, from -1 to 1; true is predicted above 0."""
        return self._vote([expert.score_one(x) for expert in self._experts])

    def predict_one(self, x: Event, **kwargs: object) -> bool:
        """Return the label of `x`: true only if the vote is above 0."""
        return self.score_one(x) > 0.0

    def predict_proba_one(self, x: Event, **kwargs: object) -> dict[Label, float]:
        """Return `{False: 1 - p, True: p}` with p = (1 + score) / 2: the trust in true.

        Neither is 0 or 1, whichever way all experts vote.
        """
        return vote_probabilities(self.score_one(x))

    def _check_label(self, y: Hashable) -> float:
        return binary_target(y)

    def check_weight(self, w: object) -> float:
        """Return the sample weight as a float, or raise `InvalidEvent`."""
        weight = checked_weight(w)
        for expert in self._prototypes:
            expert.check_weight(weight)
        return weight

    def contributions(self, x: Features, y: Label | None = None) -> Contributions:
        """Return vote and trust of each expert, by `"expert i"`."""
        votes = [(s > 0.0) - (s < 0.0) for s in (e.score_one(x) for e in self._experts)]
        pairs = zip(votes, self.trust, strict=True)
        return {f"expert {i}": (float(vote), v) for i, (vote, v) in enumerate(pairs)}

    @property
    def numbers_per_name(self) -> int:
        """The numbers that all experts store for a name."""
        return sum(expert.numbers_per_name for expert in self._experts)

    def stored_bytes(self) -> int:
        """Return what the numbers stored by name take."""
        return sum(expert.stored_bytes() for expert in self._experts)

    def growth_bytes(self, x: Event, y: Hashable, enough: float = math.inf) -> int:
        """Return how many more bytes learning `x` may store at most."""
        names = name_bytes(x)
        return sum(expert.missing_bytes(x, names) for expert in self._experts)

    def get_state(self) -> dict[str, Any]:
        """Return all that is needed to go on learning, as `LinearClassifier.get_state` says.

        `"members"` are the experts' types; the scalars and vectors of expert i are
        named `"i/..."`, its trust `trust_i`.
        """
        own = {"clock": self.clock, **{f"trust_{i}": v for i, v in enumerate(self.trust)}}
        return members.flat_state(type(self).__name__, own, self.accounting, self._experts)

    def set_state(self, saved: Mapping[str, Any]) -> None:
        """Take over a saved state, or raise `InvalidState` and change nothing."""
        saved = state.checked_header(saved, type(self).__name__)
        fresh = [model.clone() for model in self._prototypes]
        kinds = {"clock": COUNT} | {f"trust_{i}": SUM for i in range(len(fresh))}
        scalars, account = members.restored_account(saved, kinds)
        self._experts = members.restored(saved, fresh)
        self.trust = [scalars[f"trust_{i}"] for i in range(len(fresh))]
        self.clock = scalars["clock"]
        self.accounting = account


def default_pool(max_features: int | None = None) -> list[BinaryLinearClassifier]:
    """Return the learners that a hedge takes if it is given none; the cap is that of each."""
    return [
        Perceptron(max_features=max_features),
        AveragedPerceptron(max_features=max_features),
        PassiveAggressive(max_features=max_features),
        AROW(max_features=max_features),
        HingeSGD(max_features=max_features),
        LinearUnit(max_features=max_features),
    ]


def vote_probabilities(score: float) -> dict[Label, float]:
    """Return `{False: 1 - p, True: p}` with p = (1 + score) / 2 for a vote from -1 to 1.

    `p(s)` and `1 - p(-s)` are the same float; neither is 0 or 1, but at least 2^-53.

    Examples
    --------
    >>> vote_probabilities(0.5), vote_probabilities(-0.5)
    ({False: 0.25, True: 0.75}, {False: 0.75, True: 0.25})
    >>> vote_probabilities(1.0)
    {False: 1.1102230246251565e-16, True: 0.9999999999999999}

    """
    return of_both_labels(score > 0.0, max(1.0 - BELOW_1, (1.0 - abs(score)) / 2.0))
