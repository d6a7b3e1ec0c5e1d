"""Scaling by running moments or extremes, with River's arithmetic."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

from pydantic import Field

import hinged
from hinged_service.pipelines.by_name import ByName
from hinged_service.pipelines.stage import NOTHING, Scaling, StepSpec
from hinged_service.pipelines.state_checks import count, items, number
from hinged_service.pipelines.values import MAX_VALUE, Features, Numbers, clipped, floats

__all__ = ["MaxAbsScalerSpec", "MinMaxScalerSpec", "StandardScalerSpec"]

_MAX_VARIANCE = 1e201

Moments = tuple[int, float, float]
_NO_MOMENTS: Moments = (0, 0.0, 0.0)


class StandardScaler(ByName[Moments]):
    """Count, mean and variance per name (Welford's method, as River writes it)."""

    _spec: StandardScalerSpec

    def transform(self, x: Features) -> dict[str, float]:
        if not self._spec.with_std:
            return clipped(self._centred(x))
        records = self._records
        made = {}
        for name, value in floats(x, "StandardScaler").items():
            _, mean, variance = records.get(name, _NO_MOMENTS)
            made[name] = (value - mean) / variance**0.5 if variance else 0.0
        return clipped(made)

    def learn_transform(self, x: Features) -> dict[str, float]:
        """Learn and scale in one pass; the variance includes `x`, so nothing grows too large."""
        records = self._records
        made: dict[str, float] = {}
        for name, value in floats(x, "StandardScaler").items():
            if (record := records.get(name)) is None and (record := self._admit(name)) is None:
                made[name] = 0.0
                continue
            n, old_mean, variance = record
            n += 1
            mean = old_mean + (value - old_mean) / n
            variance += ((value - old_mean) * (value - mean) - variance) / n
            records[name] = n, mean, variance
            made[name] = (value - mean) / variance**0.5 if variance else 0.0
        return made if self._spec.with_std else clipped(self._centred(x))

    def progress(self, x: Numbers) -> tuple[dict[str, float], dict[str, float]]:
        """Scale, learn and scale again in one pass, with the values of two."""
        if not self._spec.with_std:
            return self.transform(x), self.learn_transform(x)
        records = self._records
        before: dict[str, float] = {}
        after: dict[str, float] = {}
        for name, value in x.items():
            if (record := records.get(name)) is None and (record := self._admit(name)) is None:
                before[name] = after[name] = 0.0
                continue
            n, mean, variance = record
            off = value - mean
            before[name] = off / variance**0.5 if variance else 0.0
            n += 1
            mean += off / n
            rest = value - mean
            variance += (off * rest - variance) / n
            records[name] = n, mean, variance
            after[name] = rest / variance**0.5 if variance else 0.0
        return clipped(before), after

    def scaling(self, name: str) -> Scaling:
        _, mean, variance = self._records.get(name, _NO_MOMENTS)
        if not self._spec.with_std:
            return Scaling(mean) if name in self._records else NOTHING
        return Scaling(mean, variance**0.5) if variance else NOTHING

    def _centred(self, x: Features) -> dict[str, float]:
        records, numbers = self._records, floats(x, "StandardScaler")
        return {
            name: v - records[name][1] if name in records else 0.0 for name, v in numbers.items()
        }

    def _fresh(self) -> Moments:
        return _NO_MOMENTS

    def _dump(self, record: Moments) -> list[Any]:
        return list(record)

    def _load(self, data: list[Any]) -> Moments:
        n, mean, variance = items(data, "a record of StandardScaler", 3)
        return (
            count(n, "a count", 1),
            number(mean, "a mean", -MAX_VALUE, MAX_VALUE),
            number(variance, "a variance", 0.0, _MAX_VARIANCE),
        )


class MinMaxScaler(ByName[list[float]]):
    """`[least, largest]` per name."""

    def transform(self, x: Features) -> dict[str, float]:
        records = self._records
        made = {}
        for name, value in floats(x, "MinMaxScaler").items():
            least, largest = records.get(name, (0.0, 0.0))
            span = largest - least
            made[name] = (value - least) / span if span else 0.0
        return clipped(made)

    def learn_transform(self, x: Features) -> dict[str, float]:
        """Learn and scale in one pass; a learned value is in range."""
        records = self._records
        made: dict[str, float] = {}
        for name, value in floats(x, "MinMaxScaler").items():
            if (record := records.get(name)) is None and (record := self._admit(name)) is None:
                made[name] = 0.0
                continue
            least, largest = record
            if value < least:
                record[0] = least = value
            if value > largest:
                record[1] = largest = value
            span = largest - least
            made[name] = (value - least) / span if span else 0.0
        return made

    def scaling(self, name: str) -> Scaling:
        least, largest = self._records.get(name, (0.0, 0.0))
        return Scaling(least, largest - least) if largest > least else NOTHING

    def _fresh(self) -> list[float]:
        return [math.inf, -math.inf]

    def _dump(self, record: list[float]) -> list[float]:
        return record.copy()

    def _load(self, data: list[Any]) -> list[float]:
        least, largest = items(data, "a record of MinMaxScaler", 2)
        record = [number(value, "an extreme", -MAX_VALUE, MAX_VALUE) for value in (least, largest)]
        if record[0] > record[1]:
            raise hinged.InvalidState("a minimum lies above its maximum")
        return record


class MaxAbsScaler(ByName[float]):
    """The largest absolute value per name."""

    def transform(self, x: Features) -> dict[str, float]:
        records = self._records
        made = {}
        for name, value in floats(x, "MaxAbsScaler").items():
            largest = records.get(name, 0.0)
            made[name] = value / largest if largest else 0.0
        return clipped(made)

    def learn_transform(self, x: Features) -> dict[str, float]:
        """Learn and scale in one pass; a learned value is in range."""
        records = self._records
        made: dict[str, float] = {}
        for name, value in floats(x, "MaxAbsScaler").items():
            if (largest := records.get(name)) is None and (largest := self._admit(name)) is None:
                made[name] = 0.0
                continue
            if (size := abs(value)) > largest:
                records[name] = largest = size
            made[name] = value / largest if largest else 0.0
        return made

    def scaling(self, name: str) -> Scaling:
        largest = self._records.get(name)
        return Scaling(0.0, largest) if largest else NOTHING

    def _fresh(self) -> float:
        return 0.0

    def _dump(self, record: float) -> list[float]:
        return [record]

    def _load(self, data: list[Any]) -> float:
        (largest,) = items(data, "a record of MaxAbsScaler", 1)
        return number(largest, "a maximum", 0.0, MAX_VALUE)


class StandardScalerSpec(StepSpec):
    """Scale each feature to mean 0 and variance 1, by its mean and variance so far.

    As `river.preprocessing.StandardScaler`, but a feature not seen before is 0
    also without `with_std`.
    """

    stage: ClassVar = StandardScaler
    type: Literal["StandardScaler"]
    with_std: bool = Field(True, description="Divide by the standard deviation too.")


class MinMaxScalerSpec(StepSpec):
    """Scale each feature to 0..1 by its least and largest value so far.

    A prediction of a value beyond them lies beyond 0..1, and a feature that has had one
    value only is 0.

    As `river.preprocessing.MinMaxScaler`, but a feature not seen before is 0, and
    stays unknown.
    """

    stage: ClassVar = MinMaxScaler
    type: Literal["MinMaxScaler"]


class MaxAbsScalerSpec(StepSpec):
    """Scale each feature to -1..1 by its largest absolute value so far.

    A prediction of a value beyond it lies beyond -1..1.

    As `river.preprocessing.MaxAbsScaler`, but a feature not seen before stays unknown.
    """

    stage: ClassVar = MaxAbsScaler
    type: Literal["MaxAbsScaler"]
