"""Batch gradient descent: the linear unit fitted to real targets, all rows at every step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hinged.errors import InvalidParameter
from hinged.events import checked_features, checked_numbers
from hinged.parameters import checked_count, checked_number

__all__ = ["BatchFit", "batch_gradient_descent"]

Floats = npt.NDArray[np.float64]

_EPSILON = 2.0**-52


class BatchFit(NamedTuple):
    """A linear function found by batch descent.

    Parameters
    ----------
    weights
        By feature name.
    intercept
        The intercept.
    losses
        E as the mean, (target - output)^2 / 2 over the rows, before each step and after
        the last.
    sums
        E as the sum over the rows, likewise.
    converged
        Whether the end is least squares, to the tolerance; if not, more epochs may help.

    """

    weights: dict[Any, float]
    intercept: float
    losses: list[float]
    sums: list[float]
    converged: bool


def batch_gradient_descent(
    rows: Iterable[tuple[Mapping[Any, Any], float]],
    *,
    learning_rate: float | None = None,
    epochs: int = 1_000,
    tolerance: float = 1e-9,
    fit_intercept: bool = True,
    progress: Callable[[int, float], Any] | None = None,
) -> BatchFit:
    r"""Fit the linear unit to real targets by batch gradient descent.

    Each epoch takes one step on all rows, `w += eta X^T (targets - X w)`, X having
    a column of ones for the intercept. With a constant eta it converges to least
    squares for eta < 2 / lambda_max(X^T X), slowly where the columns differ in size.

    Without a learning rate the rates come from the data. The columns of X are
    divided by their norms, which gives each weight a rate of its own; and of every
    four epochs the first two step to the lowest E along the gradient, the others a
    little shorter, by Dai and Yuan's formula. E never rises, but for rounding.

    It ends when the weights are least squares: when the step that would lead there
    at once, `(X^T X)^+ X^T (targets - X w)`, is within the tolerance. Time per epoch
    is rows times names, and names squared.

    Parameters
    ----------
    rows
        Pairs of features and target, a real number; +1 and -1 for labels.
    learning_rate
        A constant eta > 0; `None` takes the rates from the data.
    epochs
        Steps at most, at least 1.
    tolerance
        Largest distance of a weight from least squares, in units of the largest weight
        if that is above 1; at least 0.
    fit_intercept
        Whether to fit an intercept.
    progress
        Called with the number and the mean loss of each epoch. Nothing is printed.

    Raises
    ------
    InvalidParameter
        If a parameter is out of range or the descent diverges.

    Examples
    --------
    >>> points = [({"x": 1.0}, 2.0), ({"x": 2.0}, 1.0), ({"x": 3.0}, 4.0), ({"x": 4.0}, 3.0)]
    >>> line = batch_gradient_descent(points)
    >>> round(line.weights["x"], 6), round(line.intercept, 6), line.converged
    (0.6, 1.0, True)

    A constant rate is slow even where it is nearly as large as it may be:

    >>> batch_gradient_descent(points, learning_rate=0.05, epochs=100).converged
    False

    References
    ----------
    Dai, Y.-H. and Yuan, Y.-X., 2005. Analysis of monotone gradient methods. Journal of Industrial
    and Management Optimization, 1(2).

    """
    rows = [(checked_features(x), checked_numbers({"target": y})["target"]) for x, y in rows]
    epochs = checked_count("epochs", epochs)
    tolerance = checked_number("tolerance", tolerance, "0 <= tolerance < inf", 0.0, closed=True)
    names = list(dict.fromkeys(name for x, _ in rows for name in x))
    X = np.array([[x.get(n, 0.0) for n in names] + [1.0] * fit_intercept for x, _ in rows])
    targets = np.array([y for _, y in rows])
    if X.size == 0:
        mean, total = _loss(targets)
        return BatchFit({}, 0.0, [mean] if rows else [], [total] if rows else [], True)
    norms = np.ones(X.shape[1])
    if learning_rate is None:
        peaks = np.max(np.abs(X), axis=0)
        peaks[peaks == 0.0] = 1.0
        norms = peaks * np.linalg.norm(X / peaks, axis=0)
        norms[norms == 0.0] = 1.0
    X = X / norms
    eigenvalues, vectors = np.linalg.eigh(X.T @ X)
    largest = float(eigenvalues[-1])
    if learning_rate is not None:
        checked_number("learning_rate", learning_rate, "0 < learning_rate < inf", 0.0, False)
        if learning_rate * largest > 2.0:
            raise InvalidParameter(f"learning_rate <= {2.0 / largest!r} must hold for these rows")
    used = eigenvalues > largest * len(norms) * _EPSILON
    vectors, eigenvalues = vectors[:, used], eigenvalues[used]
    rates = _Rates(X, learning_rate)
    w, losses = np.zeros(len(norms)), []
    for number in range(1, epochs + 2):
        errors = targets - X @ w
        losses.append(_loss(errors))
        gradient = X.T @ errors
        distance = np.abs(vectors @ ((vectors.T @ gradient) / eigenvalues)) / norms
        within = tolerance * max(1.0, float(np.max(np.abs(w / norms))))
        converged = float(np.max(distance)) <= within
        if converged or number > epochs:
            break
        if progress is not None:
            progress(number, losses[-1][0])
        w = w + rates.next(number, gradient) * gradient
    means, sums = map(list, zip(*losses, strict=True))
    w = w / norms
    intercept = float(w[-1]) if fit_intercept else 0.0
    return BatchFit(dict(zip(names, w.tolist(), strict=False)), intercept, means, sums, converged)


def _loss(errors: Floats) -> tuple[float, float]:
    """Return E as the mean and as the sum."""
    total = float(errors @ errors) / 2.0
    return total / max(len(errors), 1), total


class _Rates:
    """The rate of each epoch: the given one, or Dai and Yuan's."""

    def __init__(self, X: Floats, constant: float | None) -> None:
        self._X, self._constant = X, constant
        self._before = self._step2 = math.inf
        """The rate to the lowest E of the epoch before, and the squared length of its step."""

    def next(self, number: int, gradient: Floats) -> float:
        """Return the rate of an epoch, counted from 1."""
        if self._constant is not None:
            return self._constant
        squares, along = float(gradient @ gradient), self._X @ gradient
        curvature = float(along @ along)
        rate = lowest = squares / curvature if curvature > 0.0 else 0.0
        if number % 4 not in (1, 2) and lowest > 0.0 and self._step2 > 0.0:
            one, other = 1.0 / self._before, 1.0 / lowest
            rate = 2.0 / (
                math.hypot(one - other, 2.0 * math.sqrt(squares / self._step2)) + one + other
            )
        self._before, self._step2 = lowest, rate * rate * squares
        return rate
