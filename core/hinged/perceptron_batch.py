"""A perceptron over whole tables: the single calls' arithmetic, many rows at a time."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hinged.arithmetic import norm
from hinged.parameters import rate_at
from hinged.vector import WeightVector

if TYPE_CHECKING:
    from hinged.perceptron import Perceptron

__all__ = ["learn_table"]

Floats = npt.NDArray[np.float64]

_SAFE = 1e300
_CHUNK = 1_024
_FIRST_BLOCK = 64
_SMALLEST_BLOCK = 4


def learn_table(
    model: Perceptron,
    weights: WeightVector,
    names: list[Hashable],
    X: Floats,
    targets: Floats,
) -> bool:
    """Learn the rows of a table in order, with the very bits that single calls would give.

    The weights only change at updates. So the margins of a block of rows are taken
    at once, each summed in column order; the rows up to the first update are done,
    that row is learned, and the next block starts after it. Blocks shrink and grow
    with the distance between updates. Rows are first multiplied by their target,
    which rounds nothing, and end in the intercept's constant.

    Return `False`, with nothing changed, if a weight or a score might overflow.
    """
    eta = rate_at(model.learning_rate, 0)
    constant = float(model.fit_intercept)
    largest = float(np.max(np.abs(X), initial=0.0))
    reach = max(map(abs, weights.view().values()), default=0.0) + eta * largest * len(X)
    if not reach * max(largest, 1.0) * len(names) + eta * len(X) + abs(model.intercept) < _SAFE:
        return False
    w = np.array([*(weights.get(name) for name in names), model.intercept])
    margins: list[float] = []
    updates = 0
    buffer = np.empty((_CHUNK, len(w)))
    for start in range(0, len(X), _CHUNK):
        part = targets[start : start + _CHUNK]
        signed = buffer[: len(part)]
        np.multiply(X[start : start + _CHUNK], part[:, np.newaxis], out=signed[:, :-1])
        signed[:, -1] = part * constant
        found, updated = _pass(model, eta, w, signed, part)
        margins += found
        updates += updated
    if updates:
        weights.put(dict(zip(names, w[:-1].tolist(), strict=True)))
    model.intercept = float(w[-1])
    model.clock += len(X)
    _account(model, X, targets, np.array(margins), updates)
    return True


def _pass(
    model: Perceptron, eta: float, w: Floats, signed: Floats, targets: Floats
) -> tuple[list[float], int]:
    """Move `w` along the rows; return the margin of each before it was learned, and the updates."""
    on_mistake, zero_target = model.update_on == "mistake", 1.0 if model.label_at_zero else -1.0
    limit, accumulate = model.margin, np.add.accumulate
    margins: list[float] = []
    row, block, updates = 0, _FIRST_BLOCK, 0
    while row < len(signed):
        found = accumulate(signed[row : row + block] * w, axis=1)[:, -1].tolist()
        for first, margin in enumerate(found):
            if margin <= limit and not (
                on_mistake and margin == 0.0 and targets[row + first] == zero_target
            ):
                break
        else:
            margins += found
            row, block = row + len(found), 2 * block
            continue
        margins += found[: first + 1]
        step = signed[row + first]
        w += step if eta == 1.0 else eta * step
        updates += 1
        row, block = row + first + 1, max(_SMALLEST_BLOCK, 2 * first)
    return margins, updates


def _account(model: Perceptron, X: Floats, targets: Floats, margins: Floats, updates: int) -> None:
    account = model.accounting
    scores = targets * margins
    positive = scores >= 0.0 if model.label_at_zero else scores > 0.0
    account.events += len(X)
    account.mistakes += int(np.count_nonzero(positive != (targets > 0.0)))
    account.updates += updates
    account.hinge_loss = _summed(account.hinge_loss, 1.0 - margins[margins < 1.0])
    account.perceptron_loss = _summed(account.perceptron_loss, -margins[margins < 0.0])
    norms = np.sqrt(np.einsum("ij,ij->i", X, X))
    for row in np.flatnonzero(norms >= norms.max(initial=0.0) * (1.0 - 1e-9)):
        account.add_norm(norm(X[row].tolist()), float(model.fit_intercept))


def _summed(start: float, values: Floats) -> float:
    """Return the sum taken one after the other, as the single calls take it."""
    return float(np.add.accumulate(np.concatenate(([start], values)))[-1])
