"""Parts that River made of a pattern: of the same class, with the same parameters."""

from __future__ import annotations

import operator
from collections.abc import Callable

from river import base

from hinged_service.wire.codec import DamagedState

__all__ = ["check_alike"]

_parameters: Callable[[object], dict[str, object]] = operator.methodcaller("_get_params")
"""Returns the parameters that River's own `clone` reads."""


def check_alike(made: object, pattern: object) -> None:
    """Raise `DamagedState` if an object cannot be a trained copy of another one."""
    if type(made) is not type(pattern):
        raise DamagedState(f"a stored {type(made).__name__} stands for another class")
    if not isinstance(made, base.Base):
        if made != pattern:
            raise DamagedState("a stored parameter is another one than its pattern's")
        return
    made_parameters, wanted = _parameters(made), _parameters(pattern)
    if made_parameters.keys() != wanted.keys():
        raise DamagedState(f"a stored {type(made).__name__} has other parameters")
    for name, value in made_parameters.items():
        check_alike(value, wanted[name])
