"""Sample weights that let every class count the same, from the labels so far."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from hinged.errors import InvalidState, shown

__all__ = ["MOST", "ClassBalance"]

MOST = 1e6


class ClassBalance:
    """The weight of each event that balances the classes.

    The event number n, whose class has come n_y times and is one of k, all counted with
    the event itself, weighs

        n / (k n_y), at most a million

    so a class of the share p weighs about 1 / (k p), and an event as much as without
    balance where all classes are as frequent. The first event of a class that comes
    late weighs most.

    How much a weight moves depends on the rule: see docs/sample-weights.md. A rule
    that takes whole sample weights only, such as the uncapped passive-aggressive one, cannot
    be balanced.

    Attributes
    ----------
    counts : dict
        Events by class.
    events : int
        Events of all classes.

    Examples
    --------
    >>> from hinged import ClassBalance, Perceptron
    >>> balance, model = ClassBalance(), Perceptron()
    >>> for x, y in [({"a": 1.0}, False), ({"a": 2.0}, False), ({"a": 3.0}, True)]:
    ...     w = balance.next_weight(y)
    ...     model.learn_one(x, y, w)
    ...     w
    1.0
    1.0
    1.5

    References
    ----------
    King, G. and Zeng, L., 2001. Logistic regression in rare events data. Political Analysis, 9(2).

    """

    def __init__(self) -> None:
        self.counts: dict[Hashable, int] = {}
        self.events = 0

    def weight(self, y: Hashable) -> float:
        """Return the weight of an event of the class `y`, were it the next; nothing changes."""
        own = self.counts.get(y, 0)
        classes = len(self.counts) + (own == 0)
        return min((self.events + 1) / (classes * (own + 1)), MOST)

    def count(self, y: Hashable) -> None:
        """Count an event of the class `y`."""
        self.counts[y] = self.counts.get(y, 0) + 1
        self.events += 1

    def next_weight(self, y: Hashable) -> float:
        """Count an event of the class `y` and return its weight."""
        weight = self.weight(y)
        self.count(y)
        return weight

    def get_state(self) -> dict[str, list[Any]]:
        """Return the classes and their counts."""
        return {"classes": list(self.counts), "counts": list(self.counts.values())}

    def set_state(self, saved: object) -> None:
        """Restore a state of `get_state`, or raise `InvalidState` and change nothing."""
        if not isinstance(saved, Mapping) or saved.keys() != {"classes", "counts"}:
            raise InvalidState(f"must be classes and counts, not {shown(saved)}")
        classes, counts = saved["classes"], saved["counts"]
        if not (isinstance(classes, list) and isinstance(counts, list)):
            raise InvalidState("classes and counts must be lists")
        if any(type(count) is not int or count < 1 for count in counts):
            raise InvalidState("counts must be whole numbers of at least 1")
        try:
            taken = dict(zip(classes, counts, strict=True))
        except (TypeError, ValueError) as error:
            raise InvalidState(f"classes and counts do not go together: {error}") from None
        if len(taken) != len(classes) or len({*map(type, classes)}) > 1:
            raise InvalidState("classes must be distinct labels of one type")
        self.counts, self.events = taken, sum(counts)
