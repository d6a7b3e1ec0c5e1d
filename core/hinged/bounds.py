r"""Mistake bounds of the perceptron, as numbers for given events.

All bound the *updates* M of a raw perceptron with constant rate eta, unit sample
weights and margin gamma (0 unless said otherwise); mistakes are never more. An
event is a pair (x, y). Below, x includes the constant 1 and u the intercept
where one is learned, t is the target in {-1, +1}, R is the largest \|x\|,
l(u) = max(0, 1 - t u . x) and L the sum of l(u) over the events.

**One inequality gives all.** An update happens when t w . x <= gamma and adds
eta t x. For any u, let a = eta Q with Q = R^2 + 2 gamma / eta. Then

    \|w' - a u\|^2 - \|w - a u\|^2
        = 2 eta t w . x + eta^2 \|x\|^2 - 2 a eta t u . x
        <= 2 eta gamma + eta^2 R^2 - 2 a eta (1 - l(u))
        = eta^2 Q - 2 eta^2 Q (1 - l(u))
        = -eta^2 Q + 2 eta^2 Q l(u).

Summed over the M updates, from any start w_0, with a square at the end that is
not negative:

    M <= Q \|u - w_0 / (eta Q)\|^2 + 2 L.                             (general)

L need run over the update events only, so it may be given just those.

References
----------
Novikoff, A. B. J., 1962. On convergence proofs on perceptrons. Symposium on the Mathematical
Theory of Automata, 12.
Freund, Y. and Schapire, R. E., 1999. Large margin classification using the perceptron algorithm.
Machine Learning, 37(3).
Shalev-Shwartz, S., 2012. Online learning and online convex optimization. Foundations and Trends
in Machine Learning, 4(2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from hinged.averaged import AveragedPerceptron
from hinged.base import INTERCEPT
from hinged.binary import BinaryLinearClassifier
from hinged.errors import InvalidEvent, InvalidParameter
from hinged.events import binary_target, checked_features, checked_numbers
from hinged.perceptron import Perceptron
from hinged.pocket import PocketPerceptron

__all__ = [
    "Certificate",
    "best_multiple",
    "general",
    "hinge",
    "minimiser",
    "separable",
    "sharp",
]

Vector = Mapping[Any, float]


class Certificate(NamedTuple):
    """A bound, and the linear function that gives it.

    Parameters
    ----------
    bound
        At least the number of updates.
    weights
        u without its intercept.
    intercept
        The intercept of u.

    """

    bound: float
    weights: dict[Any, float]
    intercept: float


def separable(
    events: Iterable[Sequence[Any]],
    weights: Vector,
    intercept: float = 0.0,
    *,
    fit_intercept: bool = True,
) -> float:
    r"""Return (R / gamma)^2 \|u\|^2, gamma being the least t u . x: Novikoff's bound.

    It is the hinge bound of u / gamma, whose loss is 0. Infinite unless u
    separates the events. Time linear in the features of the events.

    Parameters
    ----------
    events
        Pairs of features and label.
    weights, intercept
        The separator u.
    fit_intercept
        Whether the perceptron learns an intercept, so that x has the constant 1.

    Examples
    --------
    The logical AND of two inputs, and its separator of the largest margin:

    >>> rows = [({"a": a, "b": b}, a == b == 1.0) for a in (0.0, 1.0) for b in (0.0, 1.0)]
    >>> separable(rows, {"a": 2.0, "b": 2.0}, -3.0)
    51.0

    """
    rows = _rows(events, fit_intercept)
    u = _with_intercept(weights, intercept, fit_intercept)
    gamma = min((_margin(u, row) for row in rows), default=math.inf)
    if not gamma > 0.0:
        return math.inf
    return _radius2(rows) * _square(u) / (gamma * gamma)


def hinge(
    events: Iterable[Sequence[Any]],
    weights: Vector,
    intercept: float = 0.0,
    *,
    fit_intercept: bool = True,
) -> float:
    r"""Return R^2 \|u\|^2 + 2 L: the general form from w_0 = 0 with gamma = 0.

    It needs no separator and no knowledge of eta. Parameters as in `separable`.

    Examples
    --------
    >>> hinge([({"a": 1.0}, True), ({"a": 1.0}, False)], {"a": 0.5}, fit_intercept=False)
    4.25

    """
    rows = _rows(events, fit_intercept)
    u = _with_intercept(weights, intercept, fit_intercept)
    return _radius2(rows) * _square(u) + 2.0 * _loss(u, rows)


def best_multiple(
    events: Iterable[Sequence[Any]],
    weights: Vector,
    intercept: float = 0.0,
    *,
    fit_intercept: bool = True,
) -> Certificate:
    r"""Return the least hinge bound of all multiples c u with c >= 0.

    With A = R^2 \|u\|^2 and the margins m of u, the bound of c u is
    c^2 A + 2 sum max(0, 1 - c m): convex, and quadratic between the breakpoints
    1 / m of the positive margins. On a stretch with the margins `active` below 1
    its slope is 0 at c = sum(active) / A. Parameters as in `separable`; time
    n log n for n events.

    Examples
    --------
    >>> rows = [({"a": a, "b": b}, a == b == 1.0) for a in (0.0, 1.0) for b in (0.0, 1.0)]
    >>> best_multiple(rows, {"a": 2.0, "b": 2.0}, -3.0).bound < 8.0
    True

    """
    rows = _rows(events, fit_intercept)
    u = _with_intercept(weights, intercept, fit_intercept)
    exponent = math.frexp(max(map(abs, u.values()), default=0.0))[1]
    u = {name: math.ldexp(value, -exponent) for name, value in u.items()}  # any size will do
    square = _radius2(rows) * _square(u)
    margins = sorted((_margin(u, row) for row in rows), reverse=True)
    factor = 0.0
    for number, margin in enumerate(margins):
        active = math.fsum(margins[number:])
        end = 1.0 / margin if margin > 0.0 else math.inf
        if not (active > 0.0 and square > 0.0):
            break
        factor = min(max(factor, active / square), end)
        if factor < end:
            break
    best = {name: factor * value for name, value in u.items()}
    bound = factor * factor * square + 2.0 * _loss(best, rows)
    return _certificate(bound, best)


def minimiser(
    events: Iterable[Sequence[Any]],
    *,
    fit_intercept: bool = True,
    tolerance: float = 1e-10,
    max_passes: int = 100_000,
    enough: Callable[[], bool] = lambda: False,
) -> Certificate:
    r"""Return the least hinge bound of all u: a support vector machine with C = 1 / R^2.

    R^2 \|u\|^2 + 2 L = 2 R^2 (\|u\|^2 / 2 + L / R^2). Solved in the dual, one
    multiplier alpha in [0, C] per event and u = sum alpha t x: each is set to its
    optimum in turn until no gradient that can still move exceeds `tolerance`.

    The bound holds for the u returned, however soon it was left at that. Time
    linear in events times names, per pass; all events are held as one matrix.

    Parameters
    ----------
    events
        Pairs of features and label.
    fit_intercept
        Whether the perceptron learns an intercept.
    tolerance
        Largest gradient left, above 0.
    max_passes
        Passes over the events at most.
    enough
        Asked before each pass whether to leave it at what was found.

    References
    ----------
    Hsieh, C.-J. et al., 2008. A dual coordinate descent method for large-scale linear SVM.
    ICML 25.

    Examples
    --------
    >>> rows = [({"a": a, "b": b}, a == b == 1.0) for a in (0.0, 1.0) for b in (0.0, 1.0)]
    >>> round(minimiser(rows).bound, 3)
    6.667

    """
    import numpy as np  # the other bounds do without

    rows = _rows(events, fit_intercept)
    names = {name: i for i, name in enumerate(dict.fromkeys(n for x, _ in rows for n in x))}
    signed = np.zeros((len(rows), len(names)))
    for number, (x, target) in enumerate(rows):
        for name, value in x.items():
            signed[number, names[name]] = target * value
    radius2 = _radius2(rows)
    cap = 1.0 / radius2 if radius2 > 0.0 else 0.0
    squares = np.einsum("ij,ij->i", signed, signed)
    u, alpha = np.zeros(len(names)), np.zeros(len(rows))
    for _ in range(max_passes):
        if enough():
            break
        worst = 0.0
        for i in np.flatnonzero(squares):
            gradient = float(signed[i] @ u) - 1.0
            stuck = (alpha[i] == 0.0 and gradient > 0.0) or (alpha[i] == cap and gradient < 0.0)
            if not stuck:
                worst = max(worst, abs(gradient))
                new = min(max(alpha[i] - gradient / squares[i], 0.0), cap)
                u += (new - alpha[i]) * signed[i]
                alpha[i] = new
        if worst <= tolerance:
            break
    best = {name: float(u[i]) for name, i in names.items()}
    return _certificate(radius2 * _square(best) + 2.0 * _loss(best, rows), best)


def sharp(
    events: Iterable[Sequence[Any]],
    weights: Vector,
    intercept: float = 0.0,
    *,
    fit_intercept: bool = True,
) -> float:
    r"""Return the largest M with M <= L + R \|u\| sqrt(M), from w_0 = 0 with gamma = 0.

    After M updates \|w\| <= eta R sqrt(M), since each adds at most eta^2 R^2 to
    the square; and u . w >= eta (M - L). Cauchy and Schwarz give the inequality,
    whose root is (p / 2 + sqrt(p^2 / 4 + L))^2 with p = R \|u\|. Never above the
    hinge bound, as p sqrt(M) <= (p^2 + M) / 2. Parameters as in `separable`.

    Examples
    --------
    >>> sharp([({"a": 1.0}, True), ({"a": 1.0}, False)], {"a": 0.5}, fit_intercept=False)
    2.8430703308172536

    """
    rows = _rows(events, fit_intercept)
    u = _with_intercept(weights, intercept, fit_intercept)
    half = math.sqrt(_radius2(rows) * _square(u)) / 2.0
    return float((half + math.sqrt(half * half + _loss(u, rows))) ** 2)


def general(
    start: BinaryLinearClassifier,
    events: Iterable[Sequence[Any]],
    weights: Vector,
    intercept: float = 0.0,
) -> float:
    r"""Return Q \|u - w_0 / (eta Q)\|^2 + 2 L for the updates of a window of events.

    Parameters
    ----------
    start
        A `Perceptron`, `AveragedPerceptron` or `PocketPerceptron` as it stood
        before the first of the events, from a saved state for instance. Its raw
        weights, rate and margin are w_0, eta and gamma.
    events
        The window, as pairs of features and label.
    weights, intercept
        Any u.

    Raises
    ------
    InvalidParameter
        If the learner is another one, its rate is a schedule, or its updates were
        or may be others than the theorem's: it ignored features, left out an update
        that overflowed, or has no room for all names of the events.

    Examples
    --------
    >>> from hinged import Perceptron
    >>> model = Perceptron(initial_weights={"a": 1.0}, fit_intercept=False)
    >>> general(model, [({"a": 1.0}, True), ({"a": 2.0}, True)], {"a": 1.0})
    2.25

    """
    if not isinstance(start, (Perceptron, AveragedPerceptron, PocketPerceptron)):
        raise InvalidParameter(f"start must be a perceptron, not {type(start).__name__}")
    eta = start.learning_rate
    if not isinstance(eta, float):
        raise InvalidParameter("the learning rate must be constant: no bound holds for a schedule")
    fit_intercept = start.fit_intercept
    rows = _rows(events, fit_intercept)
    u = _with_intercept(weights, intercept, fit_intercept)
    raw = start.get_state()["vectors"]["weights"].view()
    _refuse_partial_updates(start, raw, (x for x, _ in rows))
    before = _with_intercept(raw, start.intercept, fit_intercept)
    gamma = start.margin if isinstance(start, Perceptron) else 0.0
    q = _radius2(rows) + 2.0 * gamma / eta
    if q == 0.0:
        return 2.0 * _loss(u, rows)
    names = {**u, **before}
    shifted = {n: u.get(n, 0.0) - before.get(n, 0.0) / (eta * q) for n in names}
    return q * _square(shifted) + 2.0 * _loss(u, rows)


def _refuse_partial_updates(
    start: BinaryLinearClassifier, stored: Vector, events: Iterable[Vector]
) -> None:
    """Raise `InvalidParameter` unless all updates add the whole of their event."""
    account = start.accounting
    if account.ignored > 0:
        raise InvalidParameter(
            f"start ignored {account.ignored} features, being full: no bound holds for its updates"
        )
    if account.overflows > 0:
        raise InvalidParameter(
            f"start left out {account.overflows} updates that overflowed: no bound holds for it"
        )
    if start.max_features is not None:
        names = {*stored}.union(*events) - {INTERCEPT}
        if len(names) > start.max_features:
            raise InvalidParameter(
                f"start has room for {start.max_features} of {len(names)} features: "
                "no bound holds where some are ignored"
            )


def _rows(
    events: Iterable[Sequence[Any]], fit_intercept: bool
) -> list[tuple[dict[Any, float], float]]:
    rows = []
    for event in events:
        if len(event) > 2 and event[2] != 1.0:
            raise InvalidEvent("w", "must be 1: no bound holds for other sample weights")
        x = _with_intercept(checked_features(event[0]), 1.0, fit_intercept)
        rows.append((x, binary_target(event[1])))
    return rows


def _with_intercept(x: Vector, intercept: float, fit_intercept: bool) -> dict[Any, float]:
    clean: dict[Any, float] = checked_numbers(x)
    return {**clean, INTERCEPT: float(intercept)} if fit_intercept else clean


def _dot(u: Vector, x: Vector) -> float:
    return math.fsum(u.get(name, 0.0) * value for name, value in x.items())


def _square(u: Vector) -> float:
    return math.fsum(value * value for value in u.values())


def _margin(u: Vector, row: tuple[Vector, float]) -> float:
    return row[1] * _dot(u, row[0])


def _radius2(rows: Iterable[tuple[Vector, float]]) -> float:
    return max((_square(x) for x, _ in rows), default=0.0)


def _loss(u: Vector, rows: Iterable[tuple[Vector, float]]) -> float:
    return math.fsum(max(0.0, 1.0 - _margin(u, row)) for row in rows)


def _certificate(bound: float, u: dict[Any, float]) -> Certificate:
    return Certificate(
        bound, {n: v for n, v in u.items() if n is not INTERCEPT}, u.get(INTERCEPT, 0.0)
    )
