"""Trained River objects as JSON-like data and back, through a closed list of types.

The form is a table: every object that can be changed or shared is a row, and
rows name each other by number, so that shared parts stay shared and nothing
nests deeply. Containers may hold themselves; objects of River may not, and the
parts of each are checked together. Reading builds only what the lists in
`catalogue`, `callables`, `rust` and `learners` name, checks every attribute
against its kind, and neither unpickles, evaluates nor imports anything but
the modules in which that closed list stands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hinged_service.river_support.lazy import imported

if TYPE_CHECKING:
    from hinged_service.river_support.state.decoding import decode
    from hinged_service.river_support.state.encoding import digest, encode
    from hinged_service.river_support.state.values import SCHEMA, Unencodable

__all__ = ["SCHEMA", "Unencodable", "decode", "digest", "encode"]

_MODULES = {
    "SCHEMA": "values",
    "Unencodable": "values",
    "decode": "decoding",
    "digest": "encoding",
    "encode": "encoding",
}


def __getattr__(name: str) -> object:
    """Import a name on demand, and NumPy with it; a worker without River's parts needs neither."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(imported(f"{__name__}.{_MODULES[name]}"), name)
    return found
