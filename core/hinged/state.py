"""The saved form of a learner: checked, versioned, plain numbers by name."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from hinged.errors import InvalidState, shown
from hinged.vector import WeightVector

__all__ = [
    "COUNT",
    "SIGNED",
    "STATE_VERSION",
    "SUM",
    "ScalarType",
    "checked_header",
    "part",
    "scalar",
    "vector",
]

STATE_VERSION = 1


class ScalarType(NamedTuple):
    """Type and range of a saved scalar.

    Parameters
    ----------
    type
        `int` or `float`; an `int` is taken for a `float`.
    least
        The smallest value allowed.

    """

    type: type[float]
    least: float


COUNT = ScalarType(int, 0.0)
SIGNED = ScalarType(float, -math.inf)
SUM = ScalarType(float, 0.0)


def checked_header(state: object, kind: str) -> Mapping[str, Any]:
    """Return `state` if it is a mapping of this version and of the learner `kind`."""
    if not isinstance(state, Mapping):
        raise InvalidState(f"must be a mapping, not {type(state).__name__}")
    version, found = state.get("version"), state.get("type")
    if type(version) is not int or (version, found) != (STATE_VERSION, kind):
        raise InvalidState(
            f"not a version {STATE_VERSION} state of {kind}: version {version!r}, type {found!r}"
        )
    return state


def part(state: Mapping[str, Any], name: str, keys: Collection[str]) -> Mapping[str, Any]:
    """Return one part of a state, which must have exactly these keys, or raise `InvalidState`."""
    given = state.get(name)
    if not isinstance(given, Mapping) or set(given) != set(keys):
        found = list(given) if isinstance(given, Mapping) else type(given).__name__
        raise InvalidState(f"the {name} must be {sorted(keys)}, not {shown(found)}")
    return given


def scalar(name: str, kind: ScalarType, value: object) -> float:
    """Return a saved scalar as its own type; it must be finite and large enough."""
    if type(value) is int or (kind.type is float and type(value) is float):
        try:
            if math.isfinite(value) and value >= kind.least:
                return kind.type(value)
        except OverflowError:  # an integer beyond every float
            pass
    least = "" if kind.least == -math.inf else f" of at least {kind.least:g}"
    what = f"a finite {kind.type.__name__}{least}"
    raise InvalidState(f"{name} must be {what}, not {shown(value)}")


def vector(name: str, values: object, least: float = -math.inf) -> WeightVector:
    """Return a saved vector of finite floats; a `WeightVector` is copied, a `dict` taken over."""
    if isinstance(values, WeightVector):
        values = dict(values.view())
    if not isinstance(values, dict):
        raise InvalidState(f"the vector {name} must be a dict, not {type(values).__name__}")
    for key, value in values.items():
        if type(value) is not float or not math.isfinite(value) or value < least:
            raise InvalidState(f"{name}[{key!r}] must be a finite float, not {shown(value)}")
    return WeightVector(values)
