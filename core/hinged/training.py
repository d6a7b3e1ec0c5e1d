"""Training on a data set at hand: many passes, a stopping rule, a history to plot.

The file is long: three ways of training, with their parameters and sources.
"""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from hinged import frames
from hinged.base import LinearClassifier
from hinged.batch_descent import BatchFit, batch_gradient_descent
from hinged.errors import InvalidParameter
from hinged.events import binary_target
from hinged.multiclass import checked_class
from hinged.parameters import checked_cap, checked_choice, checked_count, checked_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "BatchFit",
    "Epoch",
    "History",
    "PocketFit",
    "batch_gradient_descent",
    "fit",
    "fit_pocket",
    "fit_until_separated",
]

Row = tuple[Mapping[Any, Any], Any]

_SUMS = ("mistakes", "updates", "hinge_loss", "perceptron_loss", "squared_loss")


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
        Sum of the rows' `max(0, 1 - margin)`, each before it was learned.
    held_out_errors
        Wrong labels on the held-out rows after the pass; `None` without any.
    learning_rate
        Of this pass; `None` if the learner has no constant one.
    perceptron_loss
        Sum of the rows' `max(0, -margin)`, likewise.
    squared_loss
        Sum of the rows' (target - score)^2 / 2, the E of the linear unit, likewise; `None` of a
        multiclass learner.
    rows
        Rows of the pass.

    """

    number: int
    mistakes: int
    updates: int
    hinge_loss: float
    held_out_errors: int | None
    learning_rate: float | None
    perceptron_loss: float
    squared_loss: float | None
    rows: int


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

    def column(self, name: str, *, mean: bool = False) -> list[Any]:
        """Return one field of all epochs, ready to plot against 1, 2, ...

        Parameters
        ----------
        name
            A field of `Epoch`.
        mean
            Whether to divide a sum over the rows by their number.

        """
        values = [getattr(epoch, name) for epoch in self.epochs]
        if not mean:
            return values
        checked_choice("name", name, _SUMS)
        rows = [max(epoch.rows, 1) for epoch in self.epochs]
        return [None if v is None else v / n for v, n in zip(values, rows, strict=True)]

    def plot(self, *names: str, axes: Axes | None = None) -> Axes:
        """Draw columns of all epochs with Matplotlib.

        Parameters
        ----------
        names
            Fields of `Epoch`. Without any: mistakes, updates and, with held-out rows, the
            errors on those.
        axes
            The place to draw; a figure of its own if `None`.

        Returns
        -------
        The axes. `history.plot().figure.savefig("history.png")` writes a picture.

        Raises
        ------
        ImportError
            Matplotlib is not installed.
        InvalidParameter
            A name is no field of `Epoch`.

        """
        chosen = names or ("mistakes", "updates", "held_out_errors")
        for name in chosen:
            checked_choice("name", name, Epoch._fields)
        if axes is None:
            try:
                from matplotlib.figure import Figure
            except ImportError as error:
                raise ImportError("plot needs Matplotlib: pip install 'hinged[plot]'") from error
            axes = Figure(layout="constrained").subplots()
        epochs = self.column("number")
        for name in chosen:
            values = self.column(name)
            if names or any(value is not None for value in values):
                shown = [math.nan if value is None else value for value in values]
                axes.plot(epochs, shown, marker=".", label=name.replace("_", " "))
        axes.set(xlabel="epoch", title=f"Training, {len(epochs)} epochs: {self.stopped}")
        axes.legend()
        return axes


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
        `"given"`, or `"shuffled"` again for each pass.
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
    checked_count("epochs", epochs)
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
    squared = None
    if not model._multiclass:  # noqa: SLF001
        pairs = zip(outcomes, rows, strict=True)
        squared = math.fsum(((1.0 if y else -1.0) - o.score) ** 2 / 2.0 for o, (_, y) in pairs)
    return Epoch(
        number,
        mistakes=[o.mistake for o in outcomes].count(True),
        updates=[o.updated for o in outcomes].count(True),
        hinge_loss=math.fsum(o.hinge_loss for o in outcomes),
        held_out_errors=errors.count(True) if held_out else None,
        learning_rate=rate if isinstance(rate, float) else None,
        perceptron_loss=math.fsum(max(0.0, o.hinge_loss - 1.0) for o in outcomes),
        squared_loss=squared,
        rows=len(rows),
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
    checked_count("max_updates", max_updates)
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


class PocketFit(NamedTuple):
    """End of a training with a pocket.

    Parameters
    ----------
    errors
        Rows that the pocketed weights get wrong.
    picks
        Rows picked.
    run
        Rows in a row that the weights had got right when they went into the pocket.

    """

    errors: int
    picks: int
    run: int


def fit_pocket(
    model: LinearClassifier, rows: Iterable[Row], *, seed: int = 0, picks: int = 10_000
) -> PocketFit:
    """Train with Gallant's pocket and its ratchet: the best weights met are never lost.

    A row is picked at random and learned, which moves the weights only if they get it
    wrong. Weights whose run of right rows is the longest so far are counted on all
    rows; with fewer errors than those in the pocket, they replace them. At the end the
    model has the weights of the pocket. It needs the whole set of rows, so it is not
    for streams: online, `PocketPerceptron` goes by the run alone.

    Parameters
    ----------
    model
        A learner that predicts by the weights that learn, such as `Perceptron` or
        `MulticlassPerceptron`; its weights as they stand are the first in the pocket.
    rows
        Pairs of features and label; kept in memory.
    seed
        Of the picking.
    picks
        Rows picked at most, at least 1; it ends before if no row is wrong.

    Raises
    ------
    InvalidParameter
        If the learner predicts by other weights than those that learn.
    InvalidEvent
        Naming the row whose label is none; nothing has been learned.

    Examples
    --------
    No line gets all four points of XOR right; three is the most:

    >>> from hinged import Perceptron
    >>> xor = [({"a": a, "b": b}, a != b) for a in (0, 1) for b in (0, 1)]
    >>> fit_pocket(Perceptron(), xor, picks=1000).errors
    1

    References
    ----------
    Gallant, S. I., 1990. Perceptron-based learning algorithms. IEEE Transactions on Neural
    Networks, 1(2).

    """
    if not getattr(model, "_serves_raw", False):
        kind = type(model).__name__
        raise InvalidParameter(f"model must predict by the weights that learn, not be {kind}")
    rows = _with_labels(model, rows)
    checked_count("picks", picks)
    pick = random.Random(seed)  # noqa: S311
    least, best = _errors(model, rows), copy.deepcopy(model.get_state())
    longest = run = number = 0
    worse = False  # the present weights were counted, and are no better than the pocket's
    while number < picks and least > 0:
        number += 1
        if model.predict_learn_one(*pick.choice(rows)).updated:
            run, worse = 0, False
            continue
        run += 1
        if run > longest and not worse:
            errors = _errors(model, rows)
            worse = errors >= least
            if not worse:
                longest, least, best = run, errors, copy.deepcopy(model.get_state())
    model.set_state(best)
    return PocketFit(least, number, longest)


def _errors(model: LinearClassifier, rows: Sequence[Row]) -> int:
    return [_misclassified(model, row) for row in rows].count(True)
