"""Objects to rows: every object that can change or be shared gets a row of its own."""

from __future__ import annotations

import functools
import hashlib
import random
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from river._river_rust.vectordict import VectorDict

import hinged
from hinged_service.river_support.state import callables, learners, rust
from hinged_service.river_support.state.catalogue import Entry, entry_of
from hinged_service.river_support.state.naming import full_name, stored_name
from hinged_service.river_support.state.values import (
    DTYPES,
    MAX_DEPTH,
    PLAIN,
    SCHEMA,
    Unencodable,
    canonical,
    plain,
    same_plain,
)
from hinged_service.wire.codec import DamagedState

__all__ = ["digest", "encode"]


def encode(value: object) -> dict[str, Any]:
    """Return an object as JSON-like data that `decode` gives back.

    Parameters
    ----------
    value
        A River object of a class in the catalogue, a learner of hinged, or plain
        Python data of these. It does not change.

    Returns
    -------
    `{"schema": 1, "root": value, "rows": [row, ...]}`; equal objects give equal
    data, in any process. Time and memory are linear in the object's size.

    Raises
    ------
    Unencodable
        Naming the type or the attribute that has no stored form.

    """
    encoder = _Encoder()
    root = encoder.value(value)
    return {"schema": SCHEMA, "root": root, "rows": encoder.rows()}


def digest(value: object) -> str:
    """Return 40 hex digits that two objects share exactly if `encode` gives the same data."""
    text = canonical(encode(value))
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


_CONTAINERS = frozenset((list, dict, Counter, OrderedDict, defaultdict, set, deque))
_KEYS = frozenset((*PLAIN, tuple, frozenset))


class _Encoder:
    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._objects: list[Any] = []

    def rows(self) -> list[Any]:
        """Return the rows of all objects that were named, and of those that these name."""
        rows: list[Any] = []
        while len(rows) < len(self._objects):
            rows.append(self._row(len(rows)))
        return rows

    def value(self, value: object, depth: int = 0) -> object:
        """Return the form of a value in a row."""
        if plain(value):
            return value
        kind = type(value)
        if kind is float:
            return {"float": str(value)}
        if kind is int:
            raise Unencodable("an integer so large cannot be stored")
        if depth >= MAX_DEPTH:
            raise Unencodable(f"a {full_name(kind)} so deeply nested cannot be stored")
        if isinstance(value, tuple) and kind is tuple:
            return {"tuple": [self.value(part, depth + 1) for part in value]}
        if isinstance(value, frozenset) and kind is frozenset:
            return {"frozenset": self._sorted(value, depth + 1)}
        if isinstance(value, np.generic):
            return {"numpy": _numpy_scalar(value)}
        if callable(value) and not (entry_of(kind) or kind in learners.LEARNERS.values()):
            return self._callable(value, depth)
        return [self._number(value)]

    def _values(self, values: Iterable[Any]) -> list[Any]:
        members = list(values)
        return members if same_plain(members) else [self.value(one) for one in members]

    def _sorted(self, values: Iterable[Any], depth: int) -> list[Any]:
        return sorted((self._key(one, depth) for one in values), key=canonical)

    def _key(self, value: object, depth: int = 0) -> object:
        """Return the form of a dictionary's key or a set's member: no object."""
        if type(value) is tuple and depth < MAX_DEPTH:
            return {"tuple": [self._key(part, depth + 1) for part in value]}
        if type(value) in _KEYS or isinstance(value, np.generic):
            return self.value(value, depth)
        raise Unencodable(f"{full_name(type(value))} cannot be stored as a key")

    def _number(self, value: object) -> int:
        number = self._numbers.setdefault(id(value), len(self._objects))
        if number == len(self._objects):
            self._objects.append(value)
        return number

    def _items(self, value: Mapping[Any, Any]) -> list[Any]:
        keys = list(value)
        return [
            keys if same_plain(keys) else [self._key(key) for key in keys],
            self._values(value.values()),
        ]

    def _row(self, number: int) -> list[Any]:
        value = self._objects[number]
        kind = type(value)
        entry = entry_of(kind)
        if entry is not None:
            return [stored_name(kind), self._attributes(value, entry)]
        if learners.LEARNERS.get(kind.__name__) is kind:
            return self._learner(value)
        if kind in _CONTAINERS:
            return [kind.__name__, *self._contents(value)]
        if kind is VectorDict:
            return ["VectorDict", *self._vector(value)]
        if kind is random.Random:
            return ["Random", *_random(value)]
        if kind is np.ndarray:
            return ["array", *_array(value)]
        if kind in rust.RUST:
            try:
                return [rust.RUST[kind], rust.rust_state(value)]
            except DamagedState as error:
                raise Unencodable(f"this {full_name(kind)} cannot be stored: {error}") from error
        raise Unencodable(f"{full_name(kind)} cannot be stored")

    def _contents(self, value: list[Any] | set[Any] | deque[Any] | dict[Any, Any]) -> list[Any]:
        if isinstance(value, list):
            return [self._values(value)]
        if isinstance(value, set):
            return [self._sorted(value, 0)]
        if isinstance(value, deque):
            return [value.maxlen, self._values(value)]
        if isinstance(value, defaultdict):
            return [self.value(value.default_factory), *self._items(value)]
        return self._items(value)

    def _attributes(self, value: object, entry: Entry) -> dict[str, Any]:
        found = entry.parts(value)
        if (
            not entry.kinds.keys()
            <= found.keys()
            <= (entry.kinds.keys() | entry.optional.keys() | entry.derived)
        ):
            odd = sorted(
                (found.keys() ^ entry.kinds.keys()) - entry.optional.keys() - entry.derived
            )
            raise Unencodable(f"{full_name(type(value))} with {odd} cannot be stored")
        return {
            name: self.value(found[name])
            for name in (*entry.kinds, *entry.optional)
            if name in found and not (name == "_rng" and _is_unseeded(value, entry))
        }

    def _vector(self, value: VectorDict[Any, Any]) -> list[Any]:
        _, (data, factory, mask, _) = value.__reduce__()
        if mask is not None:
            raise Unencodable("a masked VectorDict cannot be stored")
        return [self.value(factory), *self._items(data)]

    def _learner(self, value: hinged.LinearClassifier) -> list[Any]:
        state = value.get_state()
        vectors = {name: self._items(vector.view()) for name, vector in state["vectors"].items()}
        rest = {
            name: {key: self.value(one) for key, one in part.items()}
            if isinstance(part, dict)
            else self._values(part)
            if isinstance(part, list)
            else part
            for name, part in state.items()
            if name != "vectors"
        }
        encoded = {name: self.value(one) for name, one in learners.parameters(value).items()}
        return [f"hinged.{type(value).__name__}", encoded, rest, vectors]

    def _callable(self, value: object, depth: int) -> dict[str, Any]:
        if type(value) is functools.partial:
            arguments = [self.value(one, depth + 1) for one in value.args]
            named = {name: self.value(one, depth + 1) for name, one in value.keywords.items()}
            return {"partial": [self._callable(value.func, depth + 1), arguments, named]}
        name = callables.method_name(value)
        if name is not None:
            return {"method": [self._number(getattr(value, callables.OWNER)), name]}
        name = getattr(value, "__qualname__", None)
        if isinstance(name, str) and callables.function_of(name) is value:
            return {"call": name}
        raise Unencodable(f"the function {name or full_name(type(value))} cannot be stored")


def _is_unseeded(value: object, entry: Entry) -> bool:
    """Return whether random numbers are of no consequence: those of a distribution without seed."""
    return "_rng" in entry.optional and vars(value)["seed"] is None


def _numpy_scalar(value: np.generic) -> list[Any]:
    name, number = value.dtype.name, value.item()
    if name not in DTYPES or type(value) is not DTYPES[name].type:
        raise Unencodable(f"{full_name(type(value))} cannot be stored")
    return [name, number if plain(number) else {"float": str(number)}]


def _random(value: random.Random) -> list[Any]:
    version, words, spare = value.getstate()
    packed = b"".join(word.to_bytes(4, "big") for word in words[:-1]).hex()
    return [version, packed, words[-1], spare]


def _array(value: np.ndarray[Any, Any]) -> list[Any]:
    if value.dtype.name not in DTYPES or value.dtype != DTYPES[value.dtype.name]:
        raise Unencodable(f"an array of {value.dtype} cannot be stored")
    items = [one if plain(one) else {"float": str(one)} for one in value.ravel().tolist()]
    return [value.dtype.name, list(value.shape), items]
