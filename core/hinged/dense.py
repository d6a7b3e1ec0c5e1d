"""A perceptron over whole tables: the single calls' arithmetic, many rows at a time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from hinged.perceptron import Perceptron

__all__ = ["learn_table"]

Floats = npt.NDArray[np.float64]

_SAFE = 1e300
_LARGEST_BLOCK = 2_048
_SMALLEST_BLOCK = 4


def learn_table(model: Perceptron, names: list[Any], X: Floats, targets: Floats) -> bool:
    """Learn the rows of a table in order, with the very bits that single calls would give.

    The weights only change at updates. So the scores of a block of rows are taken
    at once, each summed in column order; the rows up to the first update are done,
    that row is learned, and the next block starts after it. Blocks shrink and grow
    with the distance between updates.

    Parameters
    ----------
    model
        A perceptron with a constant learning rate and no cap on features.
    names
        The d feature names, in column order.
    X
        n times d finite numbers, d at least 1.
    targets
        n numbers, +1 or -1.

    Returns
    -------
    `False`, with nothing changed, if the numbers are so large that a weight or a
    score might overflow.

    """
    eta = float(model.learning_rate)
    largest = float(np.max(np.abs(X), initial=0.0))
    reach = max(map(abs, model.weights.values()), default=0.0) + eta * largest * len(X)
    if not reach * max(largest, 1.0) * len(names) + eta * len(X) + abs(model.intercept) < _SAFE:
        return False
    weights = model._weights
    w = np.array([weights.get(name) for name in names])
    scores, updates, w, b = _pass(model, eta, w, X, targets)
    if updates:
        weights.put(dict(zip(names, w.tolist(), strict=True)))
    model.intercept = b
    model.clock += len(X)
    _account(model, X, targets, scores, updates)
    return True


def _pass(
    model: Perceptron, eta: float, w: Floats, X: Floats, targets: Floats
) -> tuple[Floats, int, Floats, float]:
    """Return the score of each row before it was learned, the updates, and the end."""
    b, constant, margin = model.intercept, model._constant, model.margin
    on_mistake, zero_target = model.update_on == "mistake", 1.0 if model.label_at_zero else -1.0
    scores = np.empty(len(X))
    row, block, updates = 0, 64, 0
    while row < len(X):
        end = min(row + block, len(X))
        found = np.add.accumulate(X[row:end] * w, axis=1)[:, -1] + b
        wrong = targets[row:end] * found <= margin
        if on_mistake:
            wrong &= (found != 0.0) | (targets[row:end] != zero_target)
        first = int(wrong.argmax())
        if not wrong[first]:
            scores[row:end] = found
            row, block = end, min(2 * block, _LARGEST_BLOCK)
            continue
        scores[row : row + first + 1] = found[: first + 1]
        row += first
        step = eta * float(targets[row])
        w = w + step * X[row]
        b += step * constant
        updates += 1
        row, block = row + 1, max(_SMALLEST_BLOCK, 2 * first)
    return scores, updates, w, b


def _account(model: Perceptron, X: Floats, targets: Floats, scores: Floats, updates: int) -> None:
    account = model.accounting
    margins = targets * scores
    positive = scores >= 0.0 if model.label_at_zero else scores > 0.0
    account.events += len(X)
    account.mistakes += int(np.count_nonzero(positive != (targets > 0.0)))
    account.updates += updates
    account.hinge_loss = _summed(account.hinge_loss, 1.0 - margins[margins < 1.0])
    account.perceptron_loss = _summed(account.perceptron_loss, -margins[margins < 0.0])
    norms = np.sqrt(np.einsum("ij,ij->i", X, X))
    for row in np.flatnonzero(norms >= norms.max(initial=0.0) * (1.0 - 1e-9)):
        account.add_norm(math.hypot(*X[row].tolist()), model._constant)


def _summed(start: float, values: Floats) -> float:
    """Return the sum taken one after the other, as the single calls take it."""
    return float(np.add.accumulate(np.concatenate(([start], values)))[-1])
