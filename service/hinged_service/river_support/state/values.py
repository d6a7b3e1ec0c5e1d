"""Values in a row: plain ones, and forms for those that JSON lacks.

Forms:

    null, true, 3, 0.5, "a"           themselves
    [7]                               the object in row 7
    {"float": "inf"}                  a float that is not finite
    {"tuple": [value, ...]}           also "frozenset"
    {"numpy": ["float32", 0.5]}       a scalar
    {"call": name}                    a function, a class
    {"partial": [function, [value, ...], {name: value}]}
    {"method": [7, name]}             a method of the object in row 7
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from hinged_service.wire.codec import DamagedState

__all__ = [
    "DTYPES",
    "MAX_DEPTH",
    "MAX_INT",
    "NONFINITE",
    "PLAIN",
    "SCHEMA",
    "Unencodable",
    "canonical",
    "damaged_number",
    "plain",
    "same_plain",
    "scalar_from_numpy",
]

SCHEMA = 1
"""Raised whenever `decode` would read what an older `encode` wrote as something else."""

MAX_DEPTH = 200
"""Levels of tuples within tuples."""

MAX_INT = 2**1000
"""The bound of integers: below every one of them there is a float."""

PLAIN = frozenset((str, int, float, bool, type(None)))
"""The types that JSON has."""

NONFINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}

DTYPES: dict[str, np.dtype[Any]] = {
    "bool": np.dtype("bool"),
    **{f"int{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": np.dtype(f"float{bits}") for bits in (16, 32, 64)},
}
"""The kinds of numpy's numbers that are stored, by name."""


class Unencodable(TypeError):
    """An object that has no stored form; the text names its type."""


def plain(value: object) -> bool:
    """Return whether a value is stored unchanged: of JSON's types, finite, not too large."""
    if isinstance(value, float):
        return type(value) is float and math.isfinite(value)
    if type(value) is int:
        return -MAX_INT < value < MAX_INT
    return type(value) is str or type(value) is bool or value is None


def same_plain(values: list[Any]) -> bool:
    """Return whether all values stand for themselves; quick for many numbers or names."""
    kinds = set(map(type, values))
    if not kinds <= PLAIN:
        return False
    if kinds == {float}:
        return all(map(math.isfinite, values))
    return not kinds & {float, int} or all(map(plain, values))


def damaged_number(value: object) -> DamagedState:
    """Return the error for a number that the encoder would not write there."""
    what = "too large an integer" if type(value) is int else "a float that is not finite"
    return DamagedState(f"the stored object holds {what}")


def scalar_from_numpy(encoded: object) -> object:
    """Return the numpy scalar that `["float32", 0.5]` describes, or raise `DamagedState`."""
    match encoded:
        case [str(name), value] if name in DTYPES:
            if isinstance(value, dict) and value.get("float") in NONFINITE and len(value) == 1:
                value = NONFINITE[value["float"]]
            elif not plain(value):
                raise DamagedState("a stored numpy number is damaged")
            kind = DTYPES[name].type
            wanted = bool if name == "bool" else float if name.startswith("float") else int
            if type(value) is not wanted:
                raise DamagedState(f"a stored {name} is of another type")
            if wanted is int and not np.iinfo(kind).min <= value <= np.iinfo(kind).max:
                raise DamagedState(f"a stored {name} is out of range")
            with np.errstate(over="ignore"):
                scalar = kind(value)
            if wanted is float and not float(scalar) == value and not math.isnan(value):
                raise DamagedState(f"a stored {name} is out of range")
            return scalar
    raise DamagedState("a stored numpy number is damaged")


def canonical(data: object) -> str:
    """Return JSON-like data as the one text that equal data gives."""
    return json.dumps(data, allow_nan=False, sort_keys=True, separators=(",", ":"))
