"""Scaling that needs no choice: dense numbers are scaled, flags and sparse features are not."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

from river import base

from hinged import frames, state
from hinged.errors import InvalidState
from hinged.events import checked_features, finite_features
from hinged.kernel import Scales, pure
from hinged.kernel.pure import LARGEST_VALUE, Record
from hinged.parameters import checked_cap
from hinged.state import COUNT
from hinged.vector import VALUE_BYTES, Event, Features, Numbers, name_bytes

__all__ = ["NUMBERS", "AutoScaler", "new_scales", "restored"]

NUMBERS = 8
"""The numbers of a record."""
_MOST_EVENTS = 2**52


class AutoScaler(base.MiniBatchTransformer):
    """Centre and scale dense numeric features; leave flags and sparse features alone.

    A feature is *dense* if three in five of the events since its first have it, once
    it has 16 values and two of them are other than 0 and 1. One that every event so far
    has is dense at once, with the first of its first 15 values that is no whole number from -8
    to 8: those may be flags or counts of words. A dense feature stays so until fewer than a
    quarter of the events have it. What comes out for the value v:

    - dense: `(v - mean) / sd`, cut to 8, or to the root of the number of values if that
      is less; 0 while all values are equal, of more than 8 all but the least and the largest;
    - any other: v as it is. Where the root mean square is above 8, v is divided by it. A
      value beyond 16 and 16 times the root mean square is cut to the larger of the two.

    Mean and variance are kept of all values but the least and the largest ever, those two
    being held out until more extreme ones come; of the values kept, each is first cut to 8
    standard deviations. The two count as well if they are within 8 standard deviations of
    the others, and of the first 8 values in any case. So one huge value, first or later,
    changes no other value, once there are more than 8. Up to 1,000 values all weigh the
    same; later ones weigh 1/1000, and older ones fade.

    How it treats

    - a feature that is missing in an event: it is not there afterwards, which to a learner
      is 0: the mean of a dense feature;
    - a constant: 0, unless it is 0 or 1, which stay;
    - a flag, 0 or 1: it stays, also with one value in between that is neither; from the
      second such value on it counts as numeric, so that it is scaled if it is dense;
    - whole numbers that code categories: as numbers; use a one-hot encoder before;
    - a name that was never learned: 0.

    Parameters
    ----------
    max_features
        The most names kept, or `None` for no limit; others are 0, and counted.

    Attributes
    ----------
    events : int
        Events learned.
    ignored : int
        Values of names for which there was no room.

    Examples
    --------
    >>> from hinged import AutoScaler
    >>> scaler = AutoScaler()
    >>> for celsius in (18.5, 21.5, 19.5, 23.0, 20.5, 24.0):
    ...     scaler.learn_one({"celsius": celsius, "raining": 1.0})
    >>> scaler.transform_one({"celsius": 22.5, "raining": 1.0, "windy": 1.0})
    {'celsius': 0.69..., 'raining': 1.0, 'windy': 0.0}

    """

    def __init__(self, max_features: int | None = None) -> None:
        self.max_features = checked_cap("max_features", max_features)
        self.events = self.ignored = 0
        self._records = Scales()
        self._measured = self._name_bytes = 0

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_records": dict(self._records.items())}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        vars(self).update(saved)
        self._records = new_scales(self.events, saved["_records"].items())

    def learn_one(self, x: Event) -> None:
        """Learn from one event; NaN and `None` count as absent.

        Raises
        ------
        InvalidEvent
            Naming the feature that is neither missing nor a finite real number; nothing
            has changed then.

        """
        at, cap = self.events + 1, self.max_features
        try:
            ignored = self._records.learn(x, at, cap)
        except TypeError:
            ignored = self._records.learn(checked_features(x), at, cap)
        self.events = at
        self.ignored += ignored

    def learn_transform_one(self, x: Event) -> Features:
        """Learn from one event as `learn_one` does, and return it scaled.

        Raises
        ------
        InvalidEvent
            Naming the feature that is neither missing nor a finite real number; nothing
            has changed then.

        """
        return dict(self.scaled_after(x, learn=True).items())

    def expect_one(self, x: Event) -> Features:
        """Return the features scaled as they are once `x` is learned; nothing changes."""
        return dict(self.scaled_after(x, learn=False).items())

    def scaled_after(self, x: Event, learn: bool) -> Numbers:
        """Return the features as `expect_one` does, as any mapping, and learn `x` if asked to."""
        at, cap = self.events + 1, self.max_features
        try:
            found, ignored = self._records.after(x, at, cap, learn)
        except TypeError:
            found, ignored = self._records.after(checked_features(x), at, cap, learn)
        if learn:
            self.events = at
            self.ignored += ignored
        return found

    def transform_one(self, x: Event) -> Features:
        """Return the features scaled; nothing changes."""
        try:
            return self._records.now(x)
        except TypeError:
            return self._records.now(checked_features(x))

    def learn_many(self, X: frames.Frame) -> None:
        """Learn the rows of a frame one after the other, all of them or, refused, none."""
        for x in frames.each_row(frames.rows(X), finite_features):
            self.learn_one(x)

    def transform_many(self, X: frames.Frame) -> frames.Frame:
        """Return the frame scaled; what is missing stays so."""
        rows = [self.transform_one(x) for x in frames.rows(X)]
        return frames.frame({c: [row.get(c, math.nan) for row in rows] for c in X.columns}, like=X)

    def stored_bytes(self) -> int:
        """Return what the records take, each number and name as a learner's."""
        records = self._records
        if new := len(records) - self._measured:
            self._name_bytes += name_bytes(records.newest(new))
            self._measured += new
        return len(records) * NUMBERS * VALUE_BYTES + self._name_bytes

    def growth_bytes(self, x: Event) -> int:
        """Return how many more bytes learning `x` stores at most."""
        new = self._records.unknown(x)
        if self.max_features is not None:
            del new[max(0, self.max_features - len(self._records)) :]
        return len(new) * NUMBERS * VALUE_BYTES + name_bytes(new)

    def get_state(self) -> dict[str, Any]:
        """Return `{"version", "type", "events", "ignored", "records": {name: [number, ...]}}`."""
        return {
            "version": state.STATE_VERSION,
            "type": type(self).__name__,
            "events": self.events,
            "ignored": self.ignored,
            "records": {name: list(record) for name, record in self._records.items()},
        }

    def set_state(self, saved: Mapping[str, Any]) -> None:
        """Take over a saved state, or raise `InvalidState` and change nothing."""
        saved = state.checked_header(saved, type(self).__name__)
        events = int(state.scalar("events", COUNT, saved.get("events")))
        ignored = int(state.scalar("ignored", COUNT, saved.get("ignored")))
        given = saved.get("records")
        if not isinstance(given, Mapping):
            raise InvalidState(f"the records must be a mapping, not {type(given).__name__}")
        if self.max_features is not None and len(given) > self.max_features:
            raise InvalidState(f"there are {len(given)} names, too many")
        checked = ((name, restored(data, events)) for name, data in given.items())
        records = new_scales(events, checked)
        self.events, self.ignored, self._records = events, ignored, records
        self._measured = self._name_bytes = 0


def new_scales(events: int, records: Iterable[tuple[Hashable, Record]] = ()) -> Scales:
    """Return records of that version, compiled or not, that can count so many events."""
    return Scales(records) if events < _MOST_EVENTS else pure.Scales(records)


def restored(data: object, events: int) -> Record:
    """Return a stored record, or raise `InvalidState`.

    Parameters
    ----------
    data
        The numbers of a record, as a list.
    events
        Events learned so far.

    """
    match data:
        case [
            int(n), int(first), int(others), bool(dense),
            float(mean), float(variance), float(least), float(largest),
        ] if (
            bool not in map(type, (n, first, others))
            and 1 <= first <= events
            and 1 <= n <= events - first + 1
            and 0 <= others <= n
            and -LARGEST_VALUE <= mean <= LARGEST_VALUE
            and 0.0 <= variance <= LARGEST_VALUE * LARGEST_VALUE
            and -LARGEST_VALUE <= least <= largest <= LARGEST_VALUE
        ):  # fmt: skip
            return n, first, others, dense, mean, variance, least, largest
    raise InvalidState(f"a record of AutoScaler must be {NUMBERS} numbers that go together")
