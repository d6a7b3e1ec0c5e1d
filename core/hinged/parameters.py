"""Constructor parameters that are checked whenever they are set, also by `mutate`."""

from __future__ import annotations

import abc
import math
from numbers import Integral, Real
from typing import TYPE_CHECKING, Generic, Self, TypeAlias, TypeGuard, TypeVar, cast, overload

from hinged.errors import InvalidParameter, shown

if TYPE_CHECKING:
    from river.optim.base import Scheduler

__all__ = [
    "Fraction",
    "LearningRate",
    "NonNegativeNumber",
    "PositiveNumber",
    "Rate",
    "checked_cap",
    "checked_choice",
    "checked_count",
    "checked_flag",
    "checked_number",
    "checked_real",
    "is_schedule",
    "rate_at",
]

Rate: TypeAlias = "float | Scheduler"
"""A learning rate: a number, or one of River's schedulers."""
Value = TypeVar("Value")


def checked_number(name: str, value: object, condition: str, low: float, closed: bool) -> float:
    """Return a real number in range as a float, or raise `InvalidParameter` with the condition."""
    number = math.nan
    if isinstance(value, Real) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
    if not (low <= number < math.inf if closed else low < number < math.inf):
        raise InvalidParameter(f"{condition} must hold, not {name}={shown(value)}")
    return number


def checked_real(name: str, value: object) -> float:
    """Return a parameter that may be any finite number, or raise `InvalidParameter`."""
    return checked_number(name, value, f"-inf < {name} < inf", -math.inf, closed=False)


def checked_flag(name: str, value: object) -> bool:
    """Return a parameter that must be true or false, not merely count as it in Python."""
    if value is True or value is False:
        return value
    if type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise InvalidParameter(f"{name} must be True or False, not {shown(value)}")


def checked_cap(name: str, value: object) -> int | None:
    """Return a cap: `None` for no limit, or a whole number of at least 1."""
    return None if value is None else checked_count(name, value)


def checked_count(name: str, value: object) -> int:
    """Return a whole number of at least 1, or raise `InvalidParameter`."""
    if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1:
        return int(value)
    raise InvalidParameter(f"{name} must be a whole number >= 1, not {shown(value)}")


def checked_choice(name: str, value: object, choices: tuple[str, ...]) -> str:
    """Return a parameter that must be one of some words, or raise `InvalidParameter`."""
    if isinstance(value, str) and value in choices:
        return value
    raise InvalidParameter(f"{name} must be one of {', '.join(choices)}, not {shown(value)}")


class Parameter(abc.ABC, Generic[Value]):
    """A constructor parameter that is checked on every assignment.

    The value is kept as the attribute of that name with a leading underscore,
    which inner loops read. No instance's `__dict__` is touched: once one exists,
    CPython reads every attribute of that instance more slowly.

    Parameters
    ----------
    mutable
        Whether River's `mutate` may set it on a learner that has learned.

    """

    def __init__(self, mutable: bool = False) -> None:
        self.mutable = mutable

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.kept = f"_{name}"

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...
    def __get__(self, instance: object, owner: type) -> Self | Value:
        return self if instance is None else cast("Value", getattr(instance, self.kept))

    def __set__(self, instance: object, value: Value) -> None:
        setattr(instance, self.kept, self.checked(value))

    @abc.abstractmethod
    def checked(self, value: Value) -> Value:
        """Return the value to keep, or raise `InvalidParameter`."""


class PositiveNumber(Parameter[float]):
    """A parameter in (0, infinity)."""

    def checked(self, value: float) -> float:
        """Return the value as a float, or raise `InvalidParameter`."""
        return checked_number(self.name, value, f"0 < {self.name} < inf", 0.0, closed=False)


class NonNegativeNumber(Parameter[float]):
    """A parameter in [0, infinity)."""

    def checked(self, value: float) -> float:
        """Return the value as a float, or raise `InvalidParameter`."""
        return checked_number(self.name, value, f"0 <= {self.name} < inf", 0.0, closed=True)


class Fraction(NonNegativeNumber):
    """A parameter in [0, 1)."""

    def checked(self, value: float) -> float:
        """Return the value as a float, or raise `InvalidParameter`."""
        number = super().checked(value)
        if not number < 1.0:
            condition = f"0 <= {self.name} < 1 must hold"
            raise InvalidParameter(f"{condition}, not {self.name}={shown(value)}")
        return number


class LearningRate(Parameter[Rate]):
    """A number in (0, infinity), or one of River's schedulers.

    The step of the event at clock t, counted from 1, is `scheduler.get(t - 1)`:
    `InverseScaling(eta, 0.5)` is eta / sqrt(t), `InverseScaling(eta, 1)` is eta / t.
    """

    def __init__(self) -> None:
        super().__init__(mutable=True)

    def checked(self, value: Rate) -> Rate:
        """Return a number as a float, a scheduler as it is, or raise `InvalidParameter`."""
        if is_schedule(value):
            first = value.get(0)
            checked_number(self.name, first, f"0 < {self.name}.get(0) < inf", 0.0, closed=False)
            return value
        return checked_number(self.name, value, f"0 < {self.name} < inf", 0.0, closed=False)


def is_schedule(value: object) -> TypeGuard[Scheduler]:
    """Return whether a value is one of River's schedulers."""
    if isinstance(value, Real):
        return False
    from river.optim.base import Scheduler  # not for numbers: it takes SciPy along

    return isinstance(value, Scheduler)


def rate_at(learning_rate: Rate, clock: int) -> float:
    """Return the rate at a clock counted from 1; NaN unless it is a positive number."""
    if type(learning_rate) is float:
        return learning_rate
    try:
        rate = float(cast("Scheduler", learning_rate).get(clock - 1))
    except OverflowError:  # a power of the clock beyond every float: the rate is as good as 0
        return math.nan
    return rate if rate > 0.0 else math.nan
