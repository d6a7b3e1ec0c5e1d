"""Pools: experts with trust and temperatures."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from math import copysign, exp, log
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from hinged.kernel.pure.rules import Accounting
from hinged.kernel.pure.steps import norm_of
from hinged.kernel.pure.storage import Event, Numbers

__all__ = [
    "KEPT",
    "LEAST_CURVATURE",
    "LEAST_LOG_SCALE",
    "LEAST_ODDS",
    "LIMIT",
    "LONGEST_STEP",
    "MOST_EVIDENCE",
    "MOST_LOG_SCALE",
    "MOST_WEIGHT",
    "SPREAD",
    "Mixing",
    "Scaling",
    "best",
    "class_shares",
    "counted",
    "judged",
    "mixed",
    "pool_event",
    "pool_score",
    "pooled",
    "revived_mixing",
    "revived_scaling",
    "scores_of",
    "served_scores",
    "taught",
    "teach",
    "teach_classes",
]

if TYPE_CHECKING:
    from hinged.accounting import Fields, Outcome
    from hinged.base import LinearClassifier
    from hinged.events import Label as ClassLabel
    from hinged.multiclass import MulticlassClassifier

Label = TypeVar("Label", bound=Hashable)
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

LIMIT = 15.0
"""The largest log-odds: the least probability is 1 / (1 + exp(LIMIT)), about 3e-7."""

KEPT = 0.998
"""The part of the curvature kept at each event: what the steps are divided by lasts 500 events."""

LEAST_CURVATURE = 0.01

LONGEST_STEP = 1.0

LEAST_LOG_SCALE, MOST_LOG_SCALE = -700.0, 20.0

MOST_WEIGHT = 1e6
"""The most that the weight of an event counts."""

SPREAD = 0.001
"""The part of the trust in the base rate that is spread evenly after each event."""

LEAST_ODDS = 1e-9
"""The log-odds, as large as the pool's at most, that are left where the base rate disagrees."""

MOST_EVIDENCE = 50.0


class Scaling:
    """The arithmetic of `hinged.temperature.Temperature`, which documents it."""

    __slots__ = ("curvature", "log_scale", "scale")

    def __init__(self) -> None:
        self.log_scale = 0.0
        self.curvature = 0.0
        self.scale = 1.0

    def log_odds(self, score: float) -> float:
        """Return the log-odds of a finite score, from -LIMIT to LIMIT."""
        z = self.scale * score
        return LIMIT if z > LIMIT else -LIMIT if z < -LIMIT else z

    def learn(self, z: float, positive: bool, w: float = 1.0) -> None:
        """Learn from the label of an event whose log-odds, as `log_odds` gave them, were `z`."""
        odds = exp(-abs(z))
        low = odds / (1.0 + odds)
        high = 1.0 - low
        wrong = low if positive is (z > 0.0) else high
        self._move(-wrong * z if positive else wrong * z, low * high * z * z, w)

    def log_shares(self, scores: Mapping[Label, float]) -> dict[Label, float]:
        """Return scaled scores by class, whose softmax are probabilities, from -LIMIT to 0."""
        top = max(scores.values(), default=0.0)
        scale = self.scale
        return {y: max(-LIMIT, scale * (score - top)) for y, score in scores.items()}

    def learn_class(self, z: Mapping[Label, float], label: Label, w: float = 1.0) -> None:
        """Learn from the class of an event whose `log_shares` were `z`; one not in `z` is left."""
        if label not in z:
            return
        total = mean = square = 0.0
        for value in z.values():
            odds = exp(value)
            total += odds
            mean += odds * value
            square += odds * value * value
        mean /= total
        self._move(mean - z[label], max(0.0, square / total - mean * mean), w)

    def _move(self, gradient: float, curvature: float, w: float) -> None:
        if w > MOST_WEIGHT:
            w = MOST_WEIGHT
        self.curvature = total = KEPT * self.curvature + w * curvature
        step = w * gradient / (total + LEAST_CURVATURE)
        if step > LONGEST_STEP:
            step = LONGEST_STEP
        elif step < -LONGEST_STEP:
            step = -LONGEST_STEP
        theta = self.log_scale - step
        if theta > MOST_LOG_SCALE:
            theta = MOST_LOG_SCALE
        elif theta < LEAST_LOG_SCALE:
            theta = LEAST_LOG_SCALE
        self.log_scale = theta
        self.scale = exp(theta)


class Mixing:
    """The arithmetic of `hinged.base_rate.BaseRate`, which documents it."""

    __slots__ = ("negatives", "positives", "trust")

    def __init__(self, positives: float = 0.5, negatives: float = 0.5, trust: float = 0.5) -> None:
        self.positives = positives
        self.negatives = negatives
        self.trust = trust

    def mixed(self, z: float) -> float:
        """Return the log-odds of the mixture from those of the pool, which are at most 15."""
        known, odds = self.positives + self.negatives, exp(-z)
        rest = (1.0 - self.trust) / (1.0 + odds)
        true = rest + self.trust * (self.positives / known)
        false = rest * odds + self.trust * (self.negatives / known)
        score = log(true / false)
        if score * z > 0.0:
            return max(-LIMIT, min(LIMIT, score))
        return copysign(min(LEAST_ODDS, abs(z)), z)

    def learn(self, z: float, positive: bool, w: float = 1.0) -> None:
        """Learn the label of an event from the log-odds of the pool."""
        w = min(w, MOST_WEIGHT)
        own = self.positives if positive else self.negatives
        rate = own / (self.positives + self.negatives)
        evidence = w * log(rate * (1.0 + exp(-z if positive else z)))
        odds = exp(max(-MOST_EVIDENCE, min(MOST_EVIDENCE, evidence)))
        trust = self.trust * odds / (1.0 - self.trust + self.trust * odds)
        self.trust = (1.0 - SPREAD) * trust + 0.5 * SPREAD
        if positive:
            self.positives += w
        else:
            self.negatives += w


def revived_scaling(
    kind: type[Scaling], log_scale: float, curvature: float, scale: float
) -> Scaling:
    """Return a pickled temperature."""
    one = kind()
    one.log_scale, one.curvature, one.scale = log_scale, curvature, scale
    return one


def revived_mixing(kind: type[Mixing], positives: float, negatives: float, trust: float) -> Mixing:
    """Return a pickled base rate."""
    return kind(positives, negatives, trust)


def pooled(
    scalings: Sequence[Scaling], trust: Sequence[float], scores: Sequence[float]
) -> list[float]:
    """Return the log-odds of each expert, and last those of the pool."""
    *own, last = scalings
    found = [scaling.log_odds(score) for scaling, score in zip(own, scores, strict=True)]
    pool = 0.0
    for v, z in zip(trust, found, strict=True):
        pool += v * z
    return [*found, last.log_odds(pool)]


def best(scores: Mapping[Label, float]) -> Label | None:
    """Return the first key of the highest value, `None` if there is none."""
    return max(scores, key=scores.__getitem__, default=None)


def mixed(
    trust: Sequence[float], shares: Sequence[Mapping[Label, float]], labels: Iterable[Label]
) -> dict[Label, float]:
    """Return the log-shares of each class, weighed by the trust in their experts."""
    pool = dict.fromkeys(labels, 0.0)
    for v, share in zip(trust, shares, strict=True):
        for label, value in share.items():
            pool[label] += v * value
    return pool


def judged(trust: list[float], wrong: list[bool], loss: float, share: float) -> list[float]:
    """Return the trust after one event: exp(-loss) of it left to the wrong, a share spread evenly.

    Where nothing would be left, the trust stays as it is.

    Examples
    --------
    >>> import math
    >>> [round(v, 2) for v in judged([0.5, 0.5], [False, True], math.log(2.0), 0.1)]
    [0.65, 0.35]

    """
    factor = math.exp(-loss)
    left = [v * factor if bad else v for v, bad in zip(trust, wrong, strict=True)]
    total = math.fsum(left)
    if total <= 0.0:
        return trust
    even = share / len(left)
    return [(1.0 - share) * v / total + even for v in left]


def served_scores(
    experts: Sequence[MulticlassClassifier], x: Event
) -> list[dict[ClassLabel, float]]:
    """Return the finite scores of each learner by class."""
    return [expert.scores_one(x) for expert in experts]


def class_shares(
    scalings: Sequence[Scaling],
    trust: Sequence[float],
    scores: Sequence[Mapping[Label, float]],
    labels: Iterable[Label],
) -> list[dict[Label, float]]:
    """Return the scores of each expert as log-shares, and last those of the pool."""
    pairs = zip(scalings, scores, strict=False)  # the last one is the pool's
    shares = [scaling.log_shares(score) for scaling, score in pairs]
    return [*shares, scalings[-1].log_shares(mixed(trust, shares, labels))]


def teach_classes(
    experts: Sequence[MulticlassClassifier], x: Numbers, y: Label, w: float, account: Accounting
) -> bool:
    """Let each learner learn the class of an event; return whether any moved.

    What they leave out is counted in `account`.
    """
    outcomes = [taught(expert, x, y, w, account) for expert in experts]
    return any(outcome.updated for outcome in outcomes)


def scores_of(experts: Sequence[LinearClassifier], x: Event) -> list[float]:
    """Return the finite score of each learner."""
    return [expert.score_one(x) for expert in experts]


def pool_score(
    experts: Sequence[LinearClassifier],
    scalings: Sequence[Scaling],
    base_rate: Mixing,
    trust: Sequence[float],
    x: Event,
) -> float:
    """Return the log-odds of true of a pool, as `hinged.Hedge` says."""
    return base_rate.mixed(pooled(scalings, trust, scores_of(experts, x))[-1])


def pool_event(
    experts: Sequence[LinearClassifier],
    scalings: Sequence[Scaling],
    base_rate: Mixing,
    trust: list[float],
    x: Numbers,
    positive: bool,
    w: float,
    loss: float,
    share: float,
    account: Accounting,
    constant: float,
) -> tuple[Fields, list[float]]:
    """Let a pool learn an event, as `hinged.Hedge` says; return its outcome, and the new trust.

    A wrong expert loses by exp(-loss).
    """
    outcomes = [taught(expert, x, positive, w, account) for expert in experts]
    log_odds = pooled(scalings, trust, [outcome.score for outcome in outcomes])
    score = base_rate.mixed(log_odds[-1])
    margin = score if positive else -score
    if margin < 1.0:
        account.add_margin(margin)
    y_pred = score > 0.0
    mistake = y_pred is not positive
    account.mistakes += mistake
    account.add_norm(norm_of(x), constant)
    updated = any(outcome.updated for outcome in outcomes)
    account.updates += updated
    for scaling, z in zip(scalings, log_odds, strict=True):
        scaling.learn(z, positive, w)
    base_rate.learn(log_odds[-1], positive, w)
    wrong = [outcome.y_pred is not positive for outcome in outcomes]
    fields = y_pred, score, mistake, updated, max(0.0, 1.0 - margin)
    return fields, judged(trust, wrong, loss, share)


def teach(
    experts: Mapping[Label, LinearClassifier], x: Numbers, y: Label, w: float, account: Accounting
) -> bool:
    """Let the learner of each label learn whether `y` is that one; return whether any moved.

    What they leave out is counted in `account`.
    """
    outcomes = [taught(expert, x, label == y, w, account) for label, expert in experts.items()]
    return any(outcome.updated for outcome in outcomes)


def taught(
    expert: LinearClassifier, x: Numbers, label: Hashable, w: float, account: Accounting
) -> Outcome:
    """Let a learner learn; count the features it ignores in `account`; return its outcome."""
    return counted(expert, account, expert.predict_learn_one, x, label, w)


def counted(
    expert: LinearClassifier,
    account: Accounting,
    learn: Callable[Arguments, Result],
    *event: Arguments.args,
    **options: Arguments.kwargs,
) -> Result:
    """Let a learner learn by its method `learn`, as `taught` does."""
    own = expert.accounting
    overflows, ignored = own.overflows, own.ignored
    result = learn(*event, **options)
    account.overflows += own.overflows - overflows
    account.ignored += own.ignored - ignored
    return result
