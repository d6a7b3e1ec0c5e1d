"""Scales: the records of `hinged.AutoScaler`, and what they make of an event."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from itertools import islice
from typing import SupportsFloat, TypeVar, cast

from hinged.kernel.pure.steps import all_finite
from hinged.kernel.pure.storage import Event, Features, Numbers

__all__ = [
    "DEVIATIONS",
    "LARGEST_VALUE",
    "MEMORY",
    "PROBATION",
    "UNSEEN",
    "Record",
    "Scales",
    "learned",
    "revived_scales",
    "scale_of",
]

Name = TypeVar("Name", bound=Hashable)
Number = SupportsFloat | None

DEVIATIONS = 8.0
"""Standard deviations within which every value is kept; up to as many values are not judged."""
MEMORY = 1_000
"""Values that mean and variance look back on, about."""
PROBATION = 16
"""Values before a feature may be found dense that was not at once."""
LARGEST_VALUE = 1e100
"""The largest value; larger ones are cut to it."""

Record = tuple[int, int, int, bool, float, float, float, float]
"""State of one feature.

In this order: its values so far; the number of the event that had the first; values other than
0 and 1; whether it is scaled; mean and variance of all values but the two extremes; the extremes.
"""
UNSEEN: Record = (0, 0, 0, False, 0.0, 0.0, 0.0, 0.0)


class Scales:
    """The records of a scaler by name, in the order in which they came.

    `learn`, `after` and `now` raise `TypeError`, and change nothing, for anything but a mapping
    of finite numbers.

    Parameters
    ----------
    records
        The first ones, by name.

    """

    __slots__ = ("_records",)

    def __init__(self, records: Iterable[tuple[Hashable, Record]] = ()) -> None:
        self._records = dict(records)

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, name: object) -> bool:
        return name in self._records

    def __setitem__(self, name: Hashable, record: Record) -> None:
        self._records[name] = record

    def __reduce__(self) -> tuple[object, ...]:
        return revived_scales, (self.items(),)

    def get(self, name: Hashable, default: Record = UNSEEN) -> Record:
        """Return the record of a name."""
        return self._records.get(name, default)

    def items(self) -> list[tuple[Hashable, Record]]:
        """Return the names with their records."""
        return list(self._records.items())

    def unknown(self, names: Iterable[Name]) -> list[Name]:
        """Return those of the names that have no record, in order."""
        return [name for name in names if name not in self._records]

    def newest(self, count: int) -> list[Hashable]:
        """Return the names that came last."""
        return list(islice(reversed(self._records), count))

    def now(self, x: Mapping[Name, Number]) -> dict[Name, float]:
        """Return numbers scaled by the records of their names; a name without one is 0."""
        return {name: _scaled(self.get(name), float(v)) for name, v in _checked(x).items()}

    def learn(self, x: Event, events: int, cap: int | None) -> int:
        """Learn an event; return how many of its names have no room. See `after`."""
        return self.after(x, events, cap, keep=True)[1]

    def after(self, x: Event, events: int, cap: int | None, keep: bool) -> tuple[Numbers, int]:
        """Return an event scaled by the records that have learned it, and how many had no room.

        Parameters
        ----------
        x
            Finite numbers by name.
        events
            Events so far, this one included.
        cap
            The most records, or `None` for no limit; a name for which there is no room is 0.
        keep
            Whether the new records are kept.

        """
        records = self._records
        room = math.inf if cap is None else cap - len(records)
        found: Features = {}
        ignored = 0
        for name, number in _checked(x).items():
            value = float(number)
            record = records.get(name)
            if record is None:
                room -= 1
            if record is None and room < 0:
                ignored += 1
                found[name] = 0.0
            else:
                record = learned(UNSEEN if record is None else record, value, events)
                if keep:
                    records[name] = record
                found[name] = _scaled(record, value)
        return found, ignored


def revived_scales(records: list[tuple[Hashable, Record]]) -> Scales:
    """Return records of the version in use, compiled or not, from a pickle of either."""
    from hinged import kernel  # it imports this module

    return kernel.Scales(records)


def _checked(x: Mapping[Name, Number]) -> Mapping[Name, float]:
    if isinstance(x, Mapping) and all_finite(x if isinstance(x, dict) else dict(x)):
        return cast("Mapping[Name, float]", x)
    raise TypeError("not a mapping of finite numbers")


def learned(record: Record, value: float, events: int) -> Record:
    """Return the record after one value more.

    Parameters
    ----------
    record
        That of the feature; `UNSEEN` before its first value.
    value
        A finite number.
    events
        Events so far, this one included.

    """
    n, first, others, dense, mean, variance, least, largest = record
    value = max(-LARGEST_VALUE, min(LARGEST_VALUE, value))
    n += 1
    others += value not in (0.0, 1.0)
    small = value == math.floor(value) and abs(value) <= DEVIATIONS
    at_once = n == events < PROBATION and not small
    if n == 1:
        return n, events, others, at_once, 0.0, 0.0, value, value
    since = events - first + 1
    if dense:
        dense = 4 * n >= since
    else:
        dense = at_once or (n >= PROBATION and others >= 2 and 5 * n >= 3 * since)
    if n == 2:
        return n, first, others, dense, 0.0, 0.0, min(least, value), max(largest, value)
    if value < least:
        value, least = least, value
    elif value > largest:
        value, largest = largest, value
    off = value - mean
    if variance > 0.0:
        bound = DEVIATIONS * math.sqrt(variance)
        off = max(-bound, min(bound, off))
    mean, variance = _moved(min(n - 2, MEMORY), off, mean, variance)
    return n, first, others, dense, mean, variance, least, largest


def scale_of(record: Record) -> tuple[float, float, float, float]:
    """Return centre, divisor, least and most with which values are scaled and cut.

    >>> from hinged.kernel.pure import UNSEEN, learned, scale_of
    >>> record = UNSEEN
    >>> for events, value in enumerate((20.5, 22.5, 18.5, 24.5), start=1):
    ...     record = learned(record, value, events)
    >>> scale_of(record)
    (21.5, 2.23..., -2.0, 2.0)

    """
    n, _, _, dense, mean, variance, least, largest = record
    if dense:
        mean, variance = _moments(n, mean, variance, least, largest)
    if n == 0 or (dense and variance == 0.0):
        return 0.0, 1.0, 0.0, 0.0
    if dense:
        bound = min(DEVIATIONS, math.sqrt(n))
        return mean, math.sqrt(variance), -bound, bound
    size = min(abs(least), abs(largest)) if n <= 2 else math.sqrt(mean * mean + variance)
    if size > DEVIATIONS:
        return 0.0, size, -DEVIATIONS, DEVIATIONS
    bound = 2.0 * DEVIATIONS * max(1.0, size)
    return 0.0, 1.0, -bound, bound


def _scaled(record: Record, value: float) -> float:
    centre, divisor, least, most = scale_of(record)
    return max(least, min(most, (value - centre) / divisor))


def _moments(
    n: int, mean: float, variance: float, least: float, largest: float
) -> tuple[float, float]:
    """Return mean and variance of the values of a record, with the extremes that count."""
    if n == 1:
        return least, 0.0
    weight = min(n - 2, MEMORY)
    inside = DEVIATIONS * math.sqrt(variance) if n > DEVIATIONS else math.inf
    if least - mean >= -inside:
        weight += 1
        mean, variance = _moved(weight, least - mean, mean, variance)
    if largest - mean <= inside:
        mean, variance = _moved(weight + 1, largest - mean, mean, variance)
    return mean, variance


def _moved(weight: int, off: float, mean: float, variance: float) -> tuple[float, float]:
    """Return mean and variance of `weight` values, the last of them `off` from the mean before."""
    step = off / weight
    return mean + step, variance + (off * (off - step) - variance) / weight
