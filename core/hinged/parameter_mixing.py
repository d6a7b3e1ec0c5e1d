"""Parameter mixing: one learner from several that learned independently."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hinged.averaged import AveragedPerceptron
from hinged.binary import BinaryLinearClassifier
from hinged.errors import InvalidParameter
from hinged.linear_unit import LinearUnit
from hinged.passive_aggressive import PassiveAggressive
from hinged.perceptron import Perceptron
from hinged.vector import Features, WeightVector, saturated

__all__ = ["mix"]

MIXABLE = (Perceptron, AveragedPerceptron, PassiveAggressive, LinearUnit)


def mix(
    models: Sequence[BinaryLinearClassifier], weights: Sequence[float] | None = None
) -> BinaryLinearClassifier:
    r"""Return one learner whose weights are a weighted mean of several.

    `w = sum of c_i w_i`, the c_i summing to 1; intercepts alike. Of averaged
    perceptrons the raw weights and the averages are mixed each for themselves.
    The mixture starts a new account, but for the radius, which is the largest; its
    clock is that of the longest run.

    Iterative parameter mixing trains on data in shards: a clone learns each shard
    on a worker of its own, the mixture goes back to all as the start of the next
    pass. It separates what can be separated, and its updates keep the perceptron's
    bound. Mixing once, at the end, may fail on separable data.

    Time linear in all the weights.

    Parameters
    ----------
    models
        At least one learner, all of one type and with equal parameters:
        `Perceptron`, `AveragedPerceptron`, `PassiveAggressive` or `LinearUnit`.
    weights
        A share for each model, at least 0, finite and not all 0; by default equal.

    Returns
    -------
    A new learner; the models are not touched.

    Raises
    ------
    InvalidParameter
        If models or weights are not as said.

    References
    ----------
    McDonald, R., Hall, K. and Mann, G., 2010. Distributed training strategies for the structured
    perceptron. NAACL-HLT.

    Examples
    --------
    Two workers, five passes over their shards of River's Phishing data:

    >>> from river import datasets
    >>> from hinged import Perceptron, mix
    >>> rows = list(datasets.Phishing())
    >>> shards = rows[::2], rows[1::2]
    >>> model = Perceptron()
    >>> for _ in range(5):
    ...     workers = []
    ...     for shard in shards:
    ...         worker = model.clone()
    ...         worker.set_state(model.get_state())
    ...         for x, y in shard:
    ...             worker.learn_one(x, y)
    ...         workers.append(worker)
    ...     model = mix(workers)
    >>> sum(model.predict_one(x) is y for x, y in rows), len(rows)
    (1091, 1250)

    """
    shares = _shares(models, weights)
    first = models[0]
    states = [model.get_state() for model in models]
    clock = max(model.clock for model in models)
    scalars = first.clone().get_state()["scalars"]
    scalars["clock"] = clock
    scalars["radius"] = max(model.accounting.radius for model in models)
    scalars["intercept"] = _mean([m.intercept for m in models], shares)
    vectors = {"weights": _mixed([s["vectors"]["weights"] for s in states], shares)}
    if isinstance(first, AveragedPerceptron):
        factors = [c * clock / max(1, m.clock) for c, m in zip(shares, models, strict=True)]
        sums = [s["scalars"]["intercept_sum"] for s in states]
        scalars["intercept_sum"] = _mean(sums, factors)
        vectors["sums"] = _mixed([s["vectors"]["sums"] for s in states], factors)
    mixed: BinaryLinearClassifier = first.clone()
    mixed.set_state({**states[0], "scalars": scalars, "vectors": vectors})
    return mixed


def _shares(
    models: Sequence[BinaryLinearClassifier], weights: Sequence[float] | None
) -> list[float]:
    if not models or not all(type(m) in MIXABLE for m in models):
        names = ", ".join(kind.__name__ for kind in MIXABLE)
        raise InvalidParameter(f"models must be at least one learner of: {names}")
    if any(repr(m) != repr(models[0]) for m in models):
        raise InvalidParameter("models must all have one type and equal parameters")
    given = [1.0] * len(models) if weights is None else [float(w) for w in weights]
    total = math.fsum(given)
    if len(given) != len(models) or not all(0.0 <= w < math.inf for w in given) or not total > 0.0:
        raise InvalidParameter("weights must be one finite number >= 0 per model, not all 0")
    return [w / total for w in given]


def _mean(values: Sequence[float], shares: Sequence[float]) -> float:
    return saturated(math.fsum(v * c for v, c in zip(values, shares, strict=True)))


def _mixed(vectors: Sequence[WeightVector], shares: Sequence[float]) -> Features:
    names = dict.fromkeys(name for vector in vectors for name in vector.view())
    return {name: _mean([v.get(name) for v in vectors], shares) for name in names}
