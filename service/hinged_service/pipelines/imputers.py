"""Values for missing features."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr, model_validator

import hinged
from hinged_service.pipelines.quantiles import dump_quantile, load_quantile
from hinged_service.pipelines.selection import Name
from hinged_service.pipelines.stage import Stage, StepSpec
from hinged_service.pipelines.state_checks import count, items, number
from hinged_service.pipelines.values import MAX_VALUE, Features, Value, floats
from hinged_service.river_support.lazy import stats
from hinged_service.wire.strict_model import StrictModel

__all__ = ["StatImputerSpec"]

_MODES = 25

Constant = (
    Annotated[StrictStr, Field(max_length=256)]
    | StrictBool
    | Annotated[StrictInt, Field(ge=-(2**63), lt=2**63)]
    | Annotated[StrictFloat, Field(ge=-MAX_VALUE, le=MAX_VALUE, allow_inf_nan=False)]
)


class Imputer(StrictModel):
    """A stand-in for one feature: a running statistic of it, or a constant."""

    feature: Name = Field(description="The feature that may be missing.")
    statistic: Literal["Mean", "Median", "Min", "Max", "Mode"] | None = Field(
        None, description="Of the feature's values so far; all but Mode take numbers only."
    )
    value: Constant | None = Field(None, description="A constant instead of a statistic.")

    @model_validator(mode="after")
    def _one(self) -> Imputer:
        if (self.statistic is None) == (self.value is None):
            raise ValueError("give either a statistic or a value")
        return self

    def build(self) -> Statistic:
        """Return the fresh statistic."""
        return _Fixed(self.value) if self.statistic is None else _STATISTICS[self.statistic]()


class Statistic(ABC):
    """A running statistic that can be stored.

    Attributes
    ----------
    numeric
        Whether it takes and gives numbers only.

    """

    numeric = True

    @abstractmethod
    def update(self, value: Any) -> None:
        """Learn a value."""

    @abstractmethod
    def get(self) -> Value:
        """Return the value to use for a missing one; `None` if there is none."""

    @abstractmethod
    def get_state(self) -> Any:
        """Return JSON-like data."""

    @abstractmethod
    def set_state(self, data: Any) -> None:
        """Check and restore the state that `get_state` returned."""


class _Mean(Statistic):
    """River's running mean, stored as count and mean."""

    def __init__(self) -> None:
        self._mean = stats.Mean()

    def update(self, value: float) -> None:
        self._mean.update(value)

    def get(self) -> float:
        return self._mean.get()

    def get_state(self) -> list[float]:
        return [self._mean.n, self._mean.get()]

    def set_state(self, data: Any) -> None:
        n, mean = items(data, "a mean", 2)
        self._mean = stats.Mean._from_state(  # noqa: SLF001 - River has no public way
            number(n, "a count", 0.0), number(mean, "a mean", -MAX_VALUE, MAX_VALUE)
        )


class _Median(Statistic):
    """River's running estimate of the median, stored as its markers; 0 before the first value."""

    def __init__(self) -> None:
        self._quantile = stats.Quantile(0.5)

    def update(self, value: float) -> None:
        self._quantile.update(value)

    def get(self) -> float:
        return self._quantile.get() or 0.0

    def get_state(self) -> list[Any]:
        return dump_quantile(self._quantile)

    def set_state(self, data: Any) -> None:
        self._quantile = load_quantile(0.5, data)


class _Min(Statistic):
    """The least value, 0 before the first one."""

    _extreme = staticmethod(min)

    def __init__(self) -> None:
        self._value: float | None = None

    def update(self, value: float) -> None:
        self._value = value if self._value is None else self._extreme(self._value, value)

    def get(self) -> float:
        return self._value or 0.0

    def get_state(self) -> float | None:
        return self._value

    def set_state(self, data: Any) -> None:
        self._value = None if data is None else number(data, "an extreme", -MAX_VALUE, MAX_VALUE)


class _Max(_Min):
    """The largest value, 0 before the first one."""

    _extreme = staticmethod(max)


class _Mode(Statistic):
    """River's mode, stored as the values with their counts, in the order they came."""

    numeric = False

    def __init__(self) -> None:
        self._mode = stats.Mode(_MODES)

    def update(self, value: Value) -> None:
        self._mode.update(value)

    def get(self) -> Value:
        return self._mode.get()  # type: ignore[return-value]

    def get_state(self) -> list[Any]:
        return [[value, n] for value, n in self._mode.counts.items()]

    def set_state(self, data: Any) -> None:
        for entry in items(data, "the counts of a mode"):
            value, n = items(entry, "a value with its count", 2)
            finite = isinstance(value, float) and math.isfinite(value)
            if not (finite or isinstance(value, (str, int))):
                raise hinged.InvalidState("a value of a mode cannot be that of a feature")
            self._mode.counts[value] = count(n, "a count", 1)
        if len(self._mode.counts) != len(data) or len(data) > _MODES:
            raise hinged.InvalidState("the values of a mode are too many, or some there twice")


class _Fixed(Statistic):
    """A constant, which learns nothing and has no state."""

    def __init__(self, value: Value) -> None:
        self.numeric = type(value) in (int, float)
        self._value = float(value) if type(value) is int else value  # as events have numbers

    def update(self, value: Value) -> None:
        pass

    def get(self) -> Value:
        return self._value

    def get_state(self) -> None:
        return None

    def set_state(self, data: Any) -> None:
        if data is not None:
            raise hinged.InvalidState("a constant has no state")


_STATISTICS: dict[str, Callable[[], Statistic]] = {
    "Mean": _Mean,
    "Median": _Median,
    "Min": _Min,
    "Max": _Max,
    "Mode": _Mode,
}


class StatImputer(Stage):
    """A statistic per imputed feature."""

    learns = True
    gives_numbers = False

    def __init__(self, spec: StatImputerSpec, max_features: int) -> None:
        super().__init__(spec, max_features)
        self._imputers = {imputer.feature: imputer.build() for imputer in spec.imputers}
        self.added = tuple(self._imputers)
        self.learns = not all(isinstance(i, _Fixed) for i in self._imputers.values())
        self.numbers_suffice = all(i.numeric for i in self._imputers.values())

    def transform(self, x: Features) -> dict[str, Value]:
        """Return `x` with values for missing features."""
        self._check(x)
        return self._filled(x)

    def learn_transform(self, x: Features) -> dict[str, Value]:
        """Learn the values that are present, then fill in the missing ones."""
        numbers = self._check(x)
        for name, imputer in self._imputers.items():
            if (value := numbers.get(name, x.get(name))) is not None:
                imputer.update(value)
        return self._filled(x)

    def _check(self, x: Features) -> dict[str, float]:
        numeric = {
            name: x[name]
            for name, imputer in self._imputers.items()
            if x.get(name) is not None and imputer.numeric and not isinstance(imputer, _Fixed)
        }
        return dict(floats(numeric, "StatImputer"))

    def _filled(self, x: Features) -> dict[str, Value]:
        made = dict(x)
        for name, imputer in self._imputers.items():
            if made.get(name) is None:
                if (value := imputer.get()) is None:
                    made.pop(name, None)
                else:
                    made[name] = value
        return made

    def get_state(self) -> list[Any]:
        """Return each imputer's state, in the spec's order."""
        return [imputer.get_state() for imputer in self._imputers.values()]

    def set_state(self, data: Any) -> None:
        states = items(data, "the imputers", len(self._imputers))
        for imputer, state in zip(self._imputers.values(), states, strict=True):
            imputer.set_state(state)


class StatImputerSpec(StepSpec):
    """Replace the named features where they are missing (null, or not in the event).

    As `river.preprocessing.StatImputer`, but an absent feature counts as missing
    instead of failing, and a number as `value` is a float, as the numbers of events are.
    Before a feature's first value, Mode leaves it out and the other statistics give 0.
    Median is River's running estimate, rough for the first values: that of 1 and 5 is 5.
    Mode is the most frequent of the first 25 different values, the first one among equals.
    """

    stage: ClassVar = StatImputer
    type: Literal["StatImputer"]
    imputers: tuple[Imputer, ...] = Field(
        min_length=1, max_length=1_000, description="What stands in for which feature."
    )

    @model_validator(mode="after")
    def _different(self) -> StatImputerSpec:
        if len({imputer.feature for imputer in self.imputers}) < len(self.imputers):
            raise ValueError("there are two imputers for one feature")
        return self
