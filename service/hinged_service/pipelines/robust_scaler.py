"""Scaling by median and interquartile range."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import Field, model_validator

from hinged_service.pipelines.by_name import ByName
from hinged_service.pipelines.quantiles import dump_iqr, dump_quantile, load_iqr, load_quantile
from hinged_service.pipelines.stage import NOTHING, Scaling, StepSpec
from hinged_service.pipelines.state_checks import items
from hinged_service.pipelines.values import Features, clipped, floats
from hinged_service.river_support.lazy import stats

__all__ = ["RobustScalerSpec"]

Quantile = Annotated[float, Field(gt=0, lt=1)]


class Robust(NamedTuple):
    """The running quantiles of a feature."""

    median: stats.Quantile
    iqr: stats.IQR


class RobustScaler(ByName[Robust]):
    """River's running quantiles per name."""

    numbers = 10
    _spec: RobustScalerSpec

    def __init__(self, spec: RobustScalerSpec, max_features: int) -> None:
        super().__init__(spec, max_features)
        self._quantile, self._iqr = stats.Quantile, stats.IQR  # imported now, not at an event

    def transform(self, x: Features) -> dict[str, float]:
        records = self._records
        made = {}
        for name, value in floats(x, "RobustScaler").items():
            record = records.get(name)
            made[name] = 0.0 if record is None else self._scaled(value, record)
        return clipped(made)

    def learn_transform(self, x: Features) -> dict[str, float]:
        records, centred, scaled = self._records, self._spec.with_centering, self._spec.with_scaling
        made: dict[str, float] = {}
        for name, value in floats(x, "RobustScaler").items():
            if (record := records.get(name)) is None and (record := self._admit(name)) is None:
                made[name] = 0.0
                continue
            if centred:
                record.median.update(value)
            if scaled:
                record.iqr.update(value)
            made[name] = self._scaled(value, record)
        return clipped(made)

    def _scaled(self, value: float, record: Robust) -> float:
        if self._spec.with_centering:
            value -= record.median.get() or 0.0
        if self._spec.with_scaling:
            iqr = record.iqr.get()
            return value / iqr if iqr else 0.0
        return value

    def scaling(self, name: str) -> Scaling:
        record = self._records.get(name)
        if record is None:
            return NOTHING
        centre = (record.median.get() or 0.0) if self._spec.with_centering else 0.0
        iqr = record.iqr.get() if self._spec.with_scaling else 1.0
        return Scaling(centre, iqr) if iqr else NOTHING

    def _fresh(self) -> Robust:
        return Robust(self._quantile(0.5), self._iqr(self._spec.q_inf, self._spec.q_sup))

    def _dump(self, record: Robust) -> list[Any]:
        return [dump_quantile(record.median), dump_iqr(record.iqr)]

    def _load(self, data: list[Any]) -> Robust:
        median, iqr = items(data, "a record of RobustScaler", 2)
        return Robust(load_quantile(0.5, median), load_iqr(self._spec.q_inf, self._spec.q_sup, iqr))


class RobustScalerSpec(StepSpec):
    """Subtract each feature's median so far and divide by its interquartile range.

    Both are River's running estimates, rough for the first values of a feature: the median
    of 1 and 5 is 5. As `river.preprocessing.RobustScaler`, but a feature not seen before is 0, and
    stays unknown.
    """

    stage: ClassVar = RobustScaler
    type: Literal["RobustScaler"]
    with_centering: bool = Field(True, description="Subtract the median.")
    with_scaling: bool = Field(True, description="Divide by the interquartile range.")
    q_inf: Quantile = Field(0.25, description="The range's lower quantile.")
    q_sup: Quantile = Field(0.75, description="The range's upper quantile.")

    @model_validator(mode="after")
    def _consistent(self) -> RobustScalerSpec:
        if not self.q_inf < self.q_sup:
            raise ValueError("q_inf must be below q_sup")
        return self
