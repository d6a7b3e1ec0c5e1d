"""Constructor parameters that are checked whenever they are set, also by `mutate`."""

from __future__ import annotations

import math
from numbers import Real
from typing import TYPE_CHECKING, Any

from hinged.errors import InvalidParameter, shown

__all__ = ["PositiveNumber", "checked_flag", "checked_number"]


def checked_number(name: str, value: object, condition: str, low: float, closed: bool) -> float:
    """Return a parameter as a finite float.

    Parameters
    ----------
    name
        What the parameter is called.
    value
        A real number, NumPy's included; never text or a truth value.
    condition
        What must hold, for the message.
    low
        The lower end of the range.
    closed
        Whether the lower end itself is allowed.

    Raises
    ------
    InvalidParameter
        With the condition, unless it holds.

    """
    number = math.nan
    if isinstance(value, Real) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
    if not (low <= number < math.inf if closed else low < number < math.inf):
        raise InvalidParameter(f"{condition} must hold, not {name}={shown(value)}")
    return number


def checked_flag(name: str, value: object) -> bool:
    """Return a parameter that must be true or false.

    Raises
    ------
    InvalidParameter
        For anything else, the texts and numbers that Python counts as true included.

    """
    if value is True or value is False:
        return value
    if type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise InvalidParameter(f"{name} must be True or False, not {shown(value)}")


class PositiveNumber:
    """A parameter in (0, infinity), checked on every assignment and read at full speed.

    There is no `__get__` at run time, so a read finds the instance's own
    dictionary as it does for an ordinary attribute.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __set__(self, instance: Any, value: object) -> None:
        checked = checked_number(self.name, value, f"0 < {self.name} < inf", 0.0, closed=False)
        instance.__dict__[self.name] = checked

    if TYPE_CHECKING:

        def __get__(self, instance: Any, owner: type | None = None) -> float: ...
