"""Training on a data set at hand: many passes, a stopping rule, a history to plot."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from hinged import frames
from hinged.base import LinearClassifier
from hinged.errors import InvalidParameter
from hinged.events import binary_target, checked_features, checked_numbers
from hinged.multiclass import checked_class
from hinged.parameters import checked_cap, checked_choice, checked_number

__all__ = [
    "BatchFit",
    "Epoch",
    "History",
    "batch_gradient_descent",
    "fit",
    "fit_until_separated",
]

Row = tuple[Mapping[Any, Any], Any]


class Epoch(NamedTuple):
    """One pass over the data.

    Parameters
    ----------
    number
        From 1.
    mistakes
        Rows predicted wrongly, each before it was learned.
    updates
        Weight changes.
    hinge_loss
        Sum of the rows' losses before learning.
    held_out_errors
        Wrong labels on the held-out rows after the pass; `None` without any.
    learning_rate
        Of this pass; `None` if the learner has no constant one.

    """

    number: int
    mistakes: int
    updates: int
    hinge_loss: float
    held_out_errors: int | None
    learning_rate: float | None


@dataclass
class History:
    """History of a training run.

    Parameters
    ----------
    epochs
        One entry per pass, in order.
    stopped
        Why it ended: `"no mistakes"`, `"mistakes settled"`, `"held-out errors
        settled"` or `"epochs"`.

    """

    epochs: list[Epoch] = field(default_factory=list)
    stopped: str = "epochs"

    def column(self, name: str) -> list[Any]:
        """Return one field of all epochs, ready to plot against 1, 2, ..."""
        return [getattr(epoch, name) for epoch in self.epochs]


def fit(
    model: LinearClassifier,
    rows: Iterable[Row],
    *,
    epochs: int = 100,
    order: str = "given",
    seed: int = 0,
    decay: float = 1.0,
    stop_without_mistakes: bool = True,
    patience: int | None = None,
    held_out: Iterable[Row] = (),
    held_out_patience: int | None = None,
    progress: Callable[[Epoch], Any] | None = None,
) -> History:
    """Train a learner in passes over the rows.

    Time is that of `learn_one`, times rows, times epochs.

    Parameters
    ----------
    model
        Any learner of this package; it goes on from where it stands.
    rows
        Pairs of features and label; kept in memory.
    epochs
        Passes at most, at least 1.
    order
        `"given"`, or `"shuffled"` anew for each pass.
    seed
        Of the shuffling.
    decay
        The learning rate is multiplied by this after each pass; in (0, 1].
    stop_without_mistakes
        Stop after a pass without an update and without a mistake.
    patience
        Stop once the mistakes per pass have not changed for this number of passes.
    held_out
        Rows never learned, on which errors are counted after each pass.
    held_out_patience
        Stop once the held-out errors have not changed for this number of passes.
    progress
        Called with each `Epoch` when it ends. Nothing is printed.

    Raises
    ------
    InvalidParameter
        With the condition that must hold.
    InvalidEvent
        Naming the row whose label is none; nothing has been learned.

    Examples
    --------
    The logical AND is learned in eight passes; the ninth is clean:

    >>> from hinged import Perceptron
    >>> rows = [({"a": a, "b": b}, a == b == 1) for a in (0, 1) for b in (0, 1)]
    >>> model = Perceptron()
    >>> history = fit(model, rows)
    >>> len(history.epochs), history.stopped, sum(history.column("updates"))
    (9, 'no mistakes', 18)
    >>> model.intercept, dict(model.weights)
    (-4.0, {'a': 3.0, 'b': 2.0})

    """
    rows, held_out = _with_labels(model, rows), _with_labels(model, held_out)
    checked_cap("epochs", epochs)
    checked_choice("order", order, ("given", "shuffled"))
    checked_cap("patience", patience)
    checked_cap("held_out_patience", held_out_patience)
    _check_decay(model, decay)
    if held_out_patience is not None and not held_out:
        raise InvalidParameter("held_out_patience needs held_out rows")
    shuffle = random.Random(seed).shuffle  # noqa: S311
    history = History()
    for number in range(1, epochs + 1):
        if order == "shuffled":
            shuffle(rows)
        epoch = _one_pass(model, rows, held_out, number)
        history.epochs.append(epoch)
        if progress is not None:
            progress(epoch)
        reasons = {
            "no mistakes": stop_without_mistakes and epoch.mistakes == epoch.updates == 0,
            "mistakes settled": _settled(history.column("mistakes"), patience),
            "held-out errors settled": _settled(
                history.column("held_out_errors"), held_out_patience
            ),
        }
        if any(reasons.values()):
            history.stopped = next(reason for reason, holds in reasons.items() if holds)
            break
        if decay < 1.0 and epoch.learning_rate is not None:
            model.mutate({"learning_rate": epoch.learning_rate * decay})
    return history


def _with_labels(model: LinearClassifier, rows: Iterable[Row]) -> list[Row]:
    """Return the rows with their labels as the model would predict them."""
    rows = list(rows)
    multiclass = model._multiclass  # noqa: SLF001 - River has no other name for it
    labels = frames.each_row([y for _, y in rows], checked_class if multiclass else _truth)
    return [(x, y) for (x, _), y in zip(rows, labels, strict=True)]


def _truth(y: object) -> bool:
    return binary_target(y) > 0.0


def _check_decay(model: LinearClassifier, decay: float) -> None:
    if checked_number("decay", decay, "0 < decay <= 1", 0.0, closed=False) > 1.0:
        raise InvalidParameter(f"0 < decay <= 1 must hold, not decay={decay!r}")
    if decay < 1.0 and not isinstance(getattr(model, "learning_rate", None), float):
        raise InvalidParameter("decay needs a learner with a constant learning_rate")


def _one_pass(
    model: LinearClassifier, rows: Sequence[Row], held_out: Sequence[Row], number: int
) -> Epoch:
    outcomes = [model.predict_learn_one(x, y) for x, y in rows]
    rate = getattr(model, "learning_rate", None)
    errors = [model.predict_one(dict(x)) != y for x, y in held_out]
    return Epoch(
        number,
        mistakes=[o.mistake for o in outcomes].count(True),
        updates=[o.updated for o in outcomes].count(True),
        hinge_loss=math.fsum(o.hinge_loss for o in outcomes),
        held_out_errors=errors.count(True) if held_out else None,
        learning_rate=rate if isinstance(rate, float) else None,
    )


def _settled(values: Sequence[Any], patience: int | None) -> bool:
    return patience is not None and len(values) > patience and len({*values[-patience - 1 :]}) == 1


def fit_until_separated(
    model: LinearClassifier, rows: Iterable[Row], *, seed: int = 0, max_updates: int = 100_000
) -> bool:
    """Learn any one misclassified row, picked at random, until there is none.

    The perceptron's classic training: on separable rows it ends with a separator
    after at most (R / gamma)^2 updates. A row that a tie leaves undecided counts
    as misclassified. Time per update is linear in all rows.

    Parameters
    ----------
    model
        A binary or multiclass learner; it goes on from where it stands.
    rows
        Pairs of features and label; kept in memory.
    seed
        Of the picking.
    max_updates
        Rows learned at most, at least 1.

    Returns
    -------
    True if the model separates the rows.

    Raises
    ------
    InvalidEvent
        Naming the row whose label is none; nothing has been learned.

    Examples
    --------
    >>> from hinged import Perceptron
    >>> rows = [({"a": a, "b": b}, a == b == 1) for a in (0, 1) for b in (0, 1)]
    >>> fit_until_separated(Perceptron(), rows)
    True
    >>> xor = [({"a": a, "b": b}, a != b) for a in (0, 1) for b in (0, 1)]
    >>> fit_until_separated(Perceptron(), xor, max_updates=1000)
    False

    """
    rows = _with_labels(model, rows)
    checked_cap("max_updates", max_updates)
    pick = random.Random(seed)  # noqa: S311
    for _ in range(max_updates):
        wrong = [row for row in rows if _misclassified(model, row)]
        if not wrong:
            return True
        model.learn_one(*pick.choice(wrong))
    return not any(_misclassified(model, row) for row in rows)


def _misclassified(model: LinearClassifier, row: Row) -> bool:
    x, y = row
    tie_is_wrong = not model._multiclass  # noqa: SLF001
    return model.predict_one(dict(x)) != y or (tie_is_wrong and model.score_one(x) == 0.0)


class BatchFit(NamedTuple):
    """A linear function found by batch descent.

    Parameters
    ----------
    weights
        By feature name.
    intercept
        The intercept.
    losses
        Mean of (target - output)^2 / 2 before each step and after the last.

    """

    weights: dict[Any, float]
    intercept: float
    losses: list[float]


def batch_gradient_descent(
    rows: Iterable[tuple[Mapping[Any, Any], float]],
    *,
    learning_rate: float | None = None,
    epochs: int = 1_000,
    tolerance: float = 0.0,
    fit_intercept: bool = True,
    progress: Callable[[int, float], Any] | None = None,
) -> BatchFit:
    r"""Fit the linear unit to real targets by batch gradient descent.

    Each epoch takes one step on all rows, `w += eta X^T (targets - X w)`, X having
    a column of ones for the intercept. It converges to least squares for
    eta < 2 / lambda_max(X^T X). Time per epoch is rows times names.

    Parameters
    ----------
    rows
        Pairs of features and target, a real number; +1 and -1 for labels.
    learning_rate
        eta > 0; `None` takes 1 / lambda_max(X^T X).
    epochs
        Steps at most, at least 1.
    tolerance
        Stop when no component of a step exceeds this; at least 0.
    fit_intercept
        Whether to fit an intercept.
    progress
        Called with the number and the loss of each epoch. Nothing is printed.

    Raises
    ------
    InvalidParameter
        If a parameter is out of range or the descent diverges.

    Examples
    --------
    >>> points = [({"x": 1.0}, 2.0), ({"x": 2.0}, 1.0), ({"x": 3.0}, 4.0), ({"x": 4.0}, 3.0)]
    >>> line = batch_gradient_descent(points, epochs=2_000)
    >>> round(line.weights["x"], 6), round(line.intercept, 6)
    (0.6, 1.0)

    """
    rows = [(checked_features(x), checked_numbers({"target": y})["target"]) for x, y in rows]
    checked_cap("epochs", epochs)
    tolerance = checked_number("tolerance", tolerance, "0 <= tolerance < inf", 0.0, closed=True)
    names = list(dict.fromkeys(name for x, _ in rows for name in x))
    X = np.array([[x.get(n, 0.0) for n in names] + [1.0] * fit_intercept for x, _ in rows])
    targets = np.array([y for _, y in rows])
    if X.size == 0:
        return BatchFit({}, 0.0, [])
    largest = float(np.linalg.eigvalsh(X.T @ X)[-1])
    if learning_rate is None:
        learning_rate = 1.0 / largest if largest > 0.0 else 1.0
    eta = checked_number("learning_rate", learning_rate, "0 < learning_rate < inf", 0.0, False)
    if eta * largest > 2.0:
        raise InvalidParameter(f"learning_rate <= {2.0 / largest!r} must hold for these rows")
    w, losses = np.zeros(X.shape[1]), []
    for number in range(1, epochs + 1):
        errors = targets - X @ w
        losses.append(float(errors @ errors) / (2 * len(rows)))
        if progress is not None:
            progress(number, losses[-1])
        step = eta * (X.T @ errors)
        w += step
        if np.max(np.abs(step)) <= tolerance:
            break
    errors = targets - X @ w
    losses.append(float(errors @ errors) / (2 * len(rows)))
    fitted = dict(zip(names, w.tolist(), strict=False))
    return BatchFit(fitted, float(w[-1]) if fit_intercept else 0.0, losses)
