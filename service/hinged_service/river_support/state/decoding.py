"""Rows to objects: first all of them empty, then filled, then checked together.

One file, since what is checked of an object depends on how it is filled.
"""

from __future__ import annotations

import functools
import random
import re
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

import numpy as np
from river._river_rust.vectordict import VectorDict

from hinged_service.river_support.state import callables, learners, rust
from hinged_service.river_support.state.catalogue import Entry, class_of, entry_of
from hinged_service.river_support.state.kinds import fits
from hinged_service.river_support.state.values import (
    DTYPES,
    MAX_DEPTH,
    NONFINITE,
    SCHEMA,
    damaged_number,
    plain,
    same_plain,
    scalar_from_numpy,
)
from hinged_service.wire.codec import DamagedState

__all__ = ["decode"]

_LEARNERS = {f"hinged.{name}": kind for name, kind in learners.LEARNERS.items()}
_DICTS: dict[str, type[dict[Any, Any]]] = {
    "dict": dict,
    "Counter": Counter,
    "OrderedDict": OrderedDict,
    "defaultdict": defaultdict,
}
_PLAIN_ROWS = frozenset((*_DICTS, "list", "set", "deque"))
"""Rows that may hold themselves, if no object of River or hinged stands in between."""

_RUST = frozenset(rust.RUST.values())
_LENGTHS = {
    "list": 1,
    "dict": 2,
    "Counter": 2,
    "OrderedDict": 2,
    "defaultdict": 3,
    "set": 1,
    "deque": 2,
    "VectorDict": 3,
    "Random": 4,
    "array": 3,
    **dict.fromkeys(_RUST, 1),
    **dict.fromkeys(_LEARNERS, 3),
}
"""Numbers of values after the name of a row; one, if it is that of a class of River."""

_WORDS = re.compile(r"[0-9a-f]{4992}")
"""624 words of 32 bits."""

_REFUSALS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""Errors that River and hinged may raise on parts that do not go together."""


def decode(data: object) -> object:
    """Return the object that `encode` wrote, ready to go on exactly where it stood.

    Parameters
    ----------
    data
        What `encode` returned, or anything: nothing of it is run or imported.
        Large lists in it are copied, never kept.

    Raises
    ------
    DamagedState
        If it is not what `encode` writes.

    """
    match data:
        case {"schema": int(schema), "root": root, "rows": list(rows), **rest} if not rest:
            if type(schema) is not int or schema != SCHEMA:
                raise DamagedState(f"a stored object of schema {schema!r}, not {SCHEMA}")
        case _:
            raise DamagedState("a stored object needs a schema, a root and rows")
    return _Decoder(rows).restored(root)


class _Decoder:
    def __init__(self, rows: list[Any]) -> None:
        self._rows = [_checked_row(row) for row in rows]
        self._objects: list[Any] = [None] * len(rows)
        self._held: list[list[int]] = [[] for _ in rows]
        """By row the rows that it refers to, but for owners of methods."""
        self._row = 0

    def restored(self, root: object) -> object:
        """Return the object of `root`, with all its parts."""
        ranks: list[list[int]] = [[] for _ in range(1 + max(learners.COMPOSITE.values()))]
        for number, (name, *encoded) in enumerate(self._rows):
            if name != "VectorDict":
                self._objects[number] = _empty(name, encoded)
            ranks[_rank(name)].append(number)
        for number, (name, *encoded) in enumerate(self._rows):
            if name == "VectorDict":
                self._row = number
                self._objects[number] = self._vector(*encoded)
        for rank in ranks:
            for number in rank:
                self._row = number
                self._fill(number)
        if any(self._rows[number][0] not in _PLAIN_ROWS for number in _circling(self._held)):
            raise DamagedState("a stored object holds itself")
        kinds = [name for name, *_ in self._rows]
        parts = [row for rows in self._held for row in rows if kinds[row] == "VectorDict"]
        parts += [row for rows in self._held for row in set(rows) if kinds[row] in _DICTS]
        if len(set(parts)) < len(parts):  # what one of them learns would change the other
            raise DamagedState("a stored vector or mapping is part of two objects")
        for value in self._objects:
            _check(value)
        return self.value(root)

    def value(self, encoded: object, depth: int = 0) -> object:
        """Return the value of a row."""
        if isinstance(encoded, list):
            return self._referred(encoded)
        if not isinstance(encoded, dict):
            if plain(encoded):
                return encoded
            raise damaged_number(encoded)
        if len(encoded) != 1 or depth >= MAX_DEPTH:
            raise DamagedState("a stored value is damaged")
        ((tag, inner),) = encoded.items()
        if tag == "tuple" and isinstance(inner, list):
            return tuple([self.value(part, depth + 1) for part in inner])
        if tag in ("partial", "method", "call"):
            return self._callable(tag, inner, depth)
        return _key(encoded, depth)

    def _values(self, encoded: object) -> list[Any]:
        if not isinstance(encoded, list):
            raise DamagedState("a stored container is damaged")
        return list(encoded) if same_plain(encoded) else [self.value(one) for one in encoded]

    def _referred(self, encoded: list[Any], owner: bool = False) -> object:
        if (
            len(encoded) != 1
            or type(encoded[0]) is not int
            or not 0 <= encoded[0] < len(self._rows)
        ):
            raise DamagedState("a stored reference leads nowhere")
        if not owner:
            self._held[self._row].append(encoded[0])
        return self._objects[encoded[0]]

    def _callable(self, tag: str, encoded: object, depth: int) -> object:
        match tag, encoded:
            case "call", str(name):
                found = callables.function_of(name)
                if found is not None:
                    return found
            case "method", [int(number), str(name)]:
                owner = self._referred([number], owner=True)
                if callables.is_method(owner, name):
                    return getattr(owner, name)
            case "partial", [dict(function), list(arguments), dict(named)]:
                called = self.value(function, depth + 1)
                if callable(called):
                    return functools.partial(
                        called,
                        *[self.value(one, depth + 1) for one in arguments],
                        **{str(k): self.value(one, depth + 1) for k, one in named.items()},
                    )
        raise DamagedState("a stored function is none of those that may be stored")

    def _items(self, names: object, values: object) -> dict[Any, Any]:
        keys, encoded = _keys(names), self._values(values)
        if len(keys) != len(encoded):
            raise DamagedState("a stored mapping has not as many values as keys")
        items = dict(zip(keys, encoded, strict=True))
        if len(items) != len(keys):
            raise DamagedState("a stored mapping has a key twice")
        return items

    def _vector(self, factory: object, names: object, values: object) -> object:
        data = self._items(names, values)
        if not fits(data, dict[Any, float]):
            raise DamagedState("a stored vector holds a value that is not a number")
        return VectorDict(data, self._factory(factory))

    def _fill(self, number: int) -> None:
        name, *encoded = self._rows[number]
        value = self._objects[number]
        entry = entry_of(type(value))
        if entry is not None:
            self._set_attributes(value, entry, encoded[0])
        elif name in _LEARNERS:
            self._restore(value, *encoded)
        elif name in _DICTS:
            self._fill_dict(value, *encoded)
        elif name in ("list", "deque"):
            value.extend(self._values(encoded[-1]))
            if len(value) != len(encoded[-1]):
                raise DamagedState("a stored window holds more than it may")
        elif name == "set":
            members = _keys(encoded[0])
            value.update(members)
            if len(value) != len(members):
                raise DamagedState("a stored set has a member twice")

    def _fill_dict(self, value: dict[Any, Any], *encoded: object) -> None:
        items = self._items(*encoded[-2:])
        if type(value) is Counter:
            dict.update(value, items)  # its own adds up, and only numbers
            return
        value.update(items)
        if isinstance(value, defaultdict):
            value.default_factory = self._factory(encoded[0])

    def _factory(self, encoded: object) -> Callable[[], Any] | None:
        factory = self.value(encoded)
        if factory is not None and not callable(factory):
            raise DamagedState("a stored default is no function")
        return factory

    def _set_attributes(self, value: object, entry: Entry, encoded: object) -> None:
        if not isinstance(encoded, dict) or not (
            entry.kinds.keys() <= encoded.keys() <= entry.kinds.keys() | entry.optional.keys()
        ):
            found = (
                sorted(map(str, encoded)) if isinstance(encoded, dict) else type(encoded).__name__
            )
            raise DamagedState(f"a stored {type(value).__name__} has the attributes {found}")
        vars(value).update({name: self.value(one) for name, one in encoded.items()})

    def _restore(self, made: object, *encoded: object) -> None:
        learner: Any = made
        match encoded:
            case [dict() as arguments, dict() as rest, dict() as vectors]:
                pass
            case _:
                raise DamagedState("a stored learner is damaged")
        state: dict[str, Any] = {
            name: {key: self.value(one) for key, one in part.items()}
            if isinstance(part, dict)
            else self._values(part)
            if isinstance(part, list)
            else self.value(part)
            for name, part in rest.items()
        }
        state["vectors"] = {
            name: self._items(*pair)
            for name, pair in vectors.items()
            if isinstance(pair, list) and len(pair) == 2
        }
        if len(state["vectors"]) != len(vectors):
            raise DamagedState("a stored learner is damaged")
        named = {name: self.value(one) for name, one in arguments.items()}
        if not learners.fits(type(learner), named.keys()):
            raise DamagedState("a stored learner has other parameters than its class")
        try:
            learner.__init__(**named)
            learner.set_state(state)
        except _REFUSALS as error:
            raise DamagedState(f"a stored learner is damaged: {error}") from error


def _circling(held: list[list[int]]) -> set[int]:
    """Return the rows that hold themselves, by way of others, or stand between such rows."""
    users: list[list[int]] = [[] for _ in held]
    for number, parts in enumerate(held):
        for part in parts:
            users[part].append(number)
    return _without_ends(held, users) & _without_ends(users, held)


def _without_ends(forth: list[list[int]], back: list[list[int]]) -> set[int]:
    """Return the rows that are left when those to which none leads are taken away, again and again.

    `forth` are the rows to which each leads, `back` those that lead to each.
    """
    leading = [len(rows) for rows in back]
    ends = [number for number, count in enumerate(leading) if not count]
    for number in ends:  # grows meanwhile
        for other in forth[number]:
            leading[other] -= 1
            if not leading[other]:
                ends.append(other)
    return set(range(len(forth))).difference(ends)


def _checked_row(row: object) -> list[Any]:
    if not isinstance(row, list) or not row or not isinstance(row[0], str):
        raise DamagedState("a stored row is of no type that may be stored")
    length = 1 if class_of(row[0]) else _LENGTHS.get(row[0])
    if length is None:
        raise DamagedState("a stored row is of no type that may be stored")
    if len(row) != 1 + length:
        raise DamagedState(f"a stored {row[0]} has not as many parts as it must")
    return row


def _rank(name: str) -> int:
    """Return in which turn a row is filled: learners of learners come after their members."""
    kind = _LEARNERS.get(name)
    return 0 if kind is None else learners.COMPOSITE.get(kind, 1)


def _empty(name: str, encoded: list[Any]) -> object:
    """Return the object of a row without its parts; whole, if it has none."""
    kind: Any = class_of(name) or _LEARNERS.get(name)
    if kind is not None:
        return kind.__new__(kind)
    if name in _DICTS:
        return _DICTS[name]()
    if name == "list":
        return []
    if name == "set":
        return set()
    if name == "deque":
        size = encoded[0]
        if size is not None and (type(size) is not int or not 0 <= size < 2**31):
            raise DamagedState("the size of a stored window is damaged")
        return deque(maxlen=size)
    if name == "Random":
        return _random(*encoded)
    if name == "array":
        return _array(*encoded)
    return rust.rust_from(name, encoded[0])


def _key(encoded: object, depth: int = 0) -> object:
    """Return a plain value, or that of a dictionary's key: no object."""
    match encoded:
        case {"float": str(text), **more} if text in NONFINITE and not more:
            return NONFINITE[text]
        case {"numpy": inner, **more} if not more:
            return scalar_from_numpy(inner)
        case {"tuple": list(parts), **more} if not more and depth < MAX_DEPTH:
            return tuple([_key(part, depth + 1) for part in parts])
        case {"frozenset": list(parts), **more} if not more and depth < MAX_DEPTH:
            members = frozenset(_key(part, depth + 1) for part in parts)
            if len(members) == len(parts):
                return members
        case _ if plain(encoded):
            return encoded
        case float() | int():
            raise damaged_number(encoded)
    raise DamagedState("a stored value is damaged")


def _keys(encoded: object) -> list[Any]:
    if not isinstance(encoded, list):
        raise DamagedState("a stored container is damaged")
    return list(encoded) if same_plain(encoded) else [_key(one) for one in encoded]


def _random(version: object, packed: object, place: object, spare: object) -> random.Random:
    if not (
        version == 3
        and isinstance(packed, str)
        and _WORDS.fullmatch(packed)
        and type(place) is int
        and 0 < place <= 624
        and (spare is None or (type(spare) is float and plain(spare)))
    ):
        raise DamagedState("stored random numbers are damaged")
    words = np.frombuffer(bytes.fromhex(packed), dtype=">u4").tolist()
    made = random.Random(0)  # noqa: S311
    made.setstate((version, (*words, place), spare))
    return made


def _array(name: object, shape: object, items: object) -> np.ndarray[Any, Any]:
    if not (isinstance(name, str) and name in DTYPES and isinstance(items, list)):
        raise DamagedState("a stored array is damaged")
    if not (isinstance(shape, list) and all(type(n) is int and 0 <= n < 2**31 for n in shape)):
        raise DamagedState("the shape of a stored array is damaged")
    made = np.array([scalar_from_numpy([name, one]) for one in items], dtype=DTYPES[name])
    try:
        return made.reshape(shape)
    except ValueError as error:
        raise DamagedState("the shape of a stored array is damaged") from error


def _check(value: object) -> None:
    """Check a whole object against its kinds and finish it, or raise `DamagedState`."""
    entry = entry_of(type(value))
    try:
        if type(value) is defaultdict and value.default_factory is not None:
            callables.product(value.default_factory)
        wrong = None if entry is None else _misfit(value, entry)
        if entry is not None and wrong is None:
            entry.finish(value)
    except DamagedState:
        raise
    except _REFUSALS as error:
        raise DamagedState(f"a stored {type(value).__name__} is damaged: {error}") from error
    if wrong is not None:
        raise DamagedState(f"the {wrong} of a stored {type(value).__name__} is damaged")


def _misfit(value: object, entry: Entry) -> str | None:
    """Return an attribute that is not of its kind."""
    found = vars(value)
    for name, kind in {**entry.kinds, **entry.optional}.items():
        if name in found and not fits(found[name], kind):
            return name
    return None
