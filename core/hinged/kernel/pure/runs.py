"""Runs of many events: there are none in Python, where each is learned by itself."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from hinged.kernel.pure.rules import BinaryCore

__all__ = ["learn_rows", "learn_run"]


def learn_rows(learner: BinaryCore, names: list[Hashable], rows: object, labels: object) -> int:
    """Learn the first rows of a table as far as they are ordinary; return how many.

    The lock of the interpreter is let go meanwhile, if there are more than a few rows. Other
    threads that use the learner wait for the end.

    Parameters
    ----------
    learner
        Of a rule that is known.
    names
        Of the columns.
    rows
        A table of doubles, not necessarily in one piece.
    labels
        A byte for each row: 1 for true, 0 for false.

    """
    return 0


def learn_run(
    learner: BinaryCore,
    xs: Sequence[object],
    ys: Sequence[object],
    ws: Sequence[object],
    at: int,
    end: int,
    names: int,
) -> list[tuple[bool, float, bool, bool, float]]:
    """Learn events that were read, as far as they are ordinary; return their outcomes.

    It is for the lock of the interpreter as `learn_rows`; the parameters are those of
    `BinaryLinearClassifier.predict_learn_run`.
    """
    return []
