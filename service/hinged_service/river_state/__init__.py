"""Trained River objects as JSON-like data and back, through a closed list of types.

The form is a table: every object that can be changed or shared is a row, and
rows name each other by number, so that shared parts stay shared, cycles are no
trouble and nothing nests deeply. Reading builds only what the lists in
`catalogue`, `callables`, `rust` and `learners` name, checks every attribute
against its kind, and neither unpickles, evaluates nor imports anything.
"""

from hinged_service.river_state.decoding import decode
from hinged_service.river_state.encoding import digest, encode
from hinged_service.river_state.values import SCHEMA, Unencodable

__all__ = ["SCHEMA", "Unencodable", "decode", "digest", "encode"]
