"""What a model can refuse of well-formed events before anything is logged."""

from __future__ import annotations

from collections.abc import Sequence

from hinged_service.events import Event
from hinged_service.fold import Fold, Refused

__all__ = ["faults_of"]


def faults_of(events: Sequence[Event], fold: Fold, closely: bool) -> list[tuple[int, Refused]]:
    """Return what is wrong with labels, weights and features, by the index of the event.

    Parameters
    ----------
    events
        Well-formed events.
    fold
        The model's present state.
    closely
        Whether features may be refused too, as `ModelSpec.may_refuse` tells.

    """
    faults = []
    target, expected = fold.answers.target, fold.answers.expected
    for i, event in enumerate(events):
        if target(event.y) is None:
            faults.append((i, Refused("y", expected())))
        if (event.w != 1.0 or closely) and (fault := fold.check(event)) is not None:
            faults.append((i, fault))
    return faults
