"""Feature names and learner states as text in Redis, and back. Never code.

A weight is stored under its feature's name as the shortest decimal that reads back as the same
float. A name that is not text (learners in Python may use numbers or tuples) is stored as JSON
behind a marker that no plain name starts with.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
import sys
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import msgspec

import hinged
from hinged.vector import all_finite
from hinged_service.wire.position import EntryId, Mark, Position

__all__ = [
    "VECTORS",
    "DamagedState",
    "OtherVersion",
    "decode_field",
    "decode_name",
    "decode_state",
    "decode_value",
    "decode_weights",
    "encode_field",
    "encode_name",
    "encode_state",
    "fold_tag",
    "place",
]

VECTORS = (
    *("weights", "sums", "pocket", "variance", "squares", "shrink_marks", "pull_marks"),
    *("scales", "sizes", "rewards"),
)
"""The kinds of vectors that a learner's state may have, each a hash of its own: the weights that
learn, and the vectors that averaging, pocket, variances, sums of squares, lazy penalties and coin
betting add."""

SCHEMA = 1
_FOLD_TAG = (
    f"hinged-{hinged.FOLD_VERSION} river-{metadata.version('river')} "
    f"python-{sys.version_info.major}.{sys.version_info.minor} {sys.platform}-{platform.machine()}"
)
_decoded = msgspec.json.Decoder().decode
_FEW = 64
_PIECE = 1_000  # values that one call of json.dumps encodes
_MARKER = "\x00json:"


class DamagedState(ValueError):
    """Stored state that was damaged after it was written."""


class OtherVersion(Exception):
    """A sound state of a version of the service that may fold otherwise; the text names it."""


def fold_tag() -> str:
    """Return the versions that decide this process's arithmetic: of one tag all fold alike.

    Sums are River's; some rules take logarithms and powers from the platform's library.
    """
    return _FOLD_TAG


def encode_name(name: Hashable) -> str:
    """Return a feature name as the text of a Redis field; different names stay different.

    Raises
    ------
    TypeError
        For a name that is not text, a number, a bool, `None` or a tuple of these.

    """
    if isinstance(name, str) and not name.startswith(_MARKER):
        return name
    return _MARKER + json.dumps(_tagged(name))


def _tagged(name: Hashable) -> Any:
    if name is None or type(name) in (str, int, bool):
        return name
    if type(name) is float and math.isfinite(name):
        return name
    if isinstance(name, tuple):
        return [_tagged(part) for part in name]
    raise TypeError(f"a feature name of type {type(name).__name__} cannot be stored")


def decode_name(field: str) -> Hashable:
    """Return the feature name that `encode_name` stored; raise `DamagedState` if it did not."""
    if not field.startswith(_MARKER):
        return field
    try:
        name = _untagged(json.loads(field[len(_MARKER) :]))
        whole = encode_name(name) == field
    except (ValueError, TypeError, RecursionError) as error:
        raise DamagedState("a stored feature name is damaged") from error
    if not whole:  # it could not be stored again under the same field
        raise DamagedState("a stored feature name is damaged")
    return name


def _untagged(value: Any) -> Hashable:
    if isinstance(value, list):
        return tuple(_untagged(part) for part in value)
    if isinstance(value, dict):
        raise TypeError("no name is an object")
    return value  # type: ignore[no-any-return]


def decode_value(text: str) -> float:
    """Return a stored weight; raise `DamagedState` if it is not a finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DamagedState("a stored weight is not a finite number")
    return value


def decode_weights(pairs: Sequence[tuple[str, str]]) -> dict[Hashable, float]:
    """Return the weights of the only vector of a kind by name; raise `DamagedState` as above."""
    fields, texts = zip(*pairs, strict=True) if pairs else ((), ())
    names = list(map(sys.intern, fields))  # models of one kind have the same
    try:
        values = list(map(float, texts))
    except ValueError:
        plain = False
    else:
        plain = all_finite(values) and _MARKER not in "".join(names)
    if plain:
        return dict(zip(names, values, strict=True))
    return {decode_name(name): decode_value(text) for name, text in pairs}


def place(vector: str, learner: Mapping[str, Any]) -> tuple[str, Any]:
    """Return the storage of a vector of a learner's state.

    Parameters
    ----------
    vector
        The vector's name: `"weights"`, or with the number of a class or member:
        `"weights/3"`, `"3/weights"`, or of members within members: `"0/weights/3"`. One that
        no learner has raises `DamagedState`.
    learner
        The rest of the state, with its `"classes"` if it has any.

    Returns
    -------
    The kind of hash; the class or the number of the member that goes into each field, of
    members within members the name without the kind, and `None` if there is only one vector
    of the kind.

    """
    parts = vector.split("/")
    kinds = [part for part in parts if not part.isdecimal()]
    if len(kinds) != 1 or kinds[0] not in VECTORS:
        raise DamagedState(f"there is no vector {vector!r}")
    kind = kinds[0]
    if len(parts) == 1:
        return kind, None
    if len(parts) > 2:
        return kind, "/".join("" if part == kind else part for part in parts)
    number = parts[0] if parts[1] == kind else parts[1]
    classes = learner.get("classes")
    try:
        tag = int(number) if classes is None else classes[int(number)]
    except (ValueError, LookupError, TypeError) as error:
        raise DamagedState(f"there is no vector {vector!r}") from error
    if not isinstance(tag, (str, int)):
        raise DamagedState(f"no class is like that of the vector {vector!r}")
    return kind, tag


def encode_field(tag: Any, name: Hashable) -> str:
    """Return the Redis field of one weight: its name, or JSON of class and name."""
    field = encode_name(name)
    return field if tag is None else json.dumps([tag, field], ensure_ascii=False)


def decode_field(field: str) -> tuple[Any, Hashable]:
    """Return class or member, and feature name, that `encode_field` stored."""
    try:
        tag, name = json.loads(field)
    except (ValueError, TypeError, RecursionError) as error:
        raise DamagedState("a stored field is damaged") from error
    if not isinstance(name, str) or not isinstance(tag, (str, int)):
        raise DamagedState("a stored field is damaged")
    return tag, decode_name(name)


def encode_state(
    position: Position,
    scalars: Mapping[str, Any],
    sizes: Mapping[str, int],
    marks: Iterable[Mark],
) -> dict[str, str]:
    """Return the fields of a model's state hash, digest included.

    Parameters
    ----------
    position
        Where in the log the state stands.
    scalars
        Counters and intercept: names to JSON-like values with finite numbers.
    sizes
        Number of entries of each vector, checked when it is read.
    marks
        Marks of the log, for trimming.

    """
    fields = {
        "schema": str(SCHEMA),
        "fold": fold_tag(),
        "position": position.id,
        "chain": position.chain,
        "scalars": "".join(_pieces(scalars)),
        "sizes": json.dumps(sizes, sort_keys=True),
        "marks": json.dumps(list(marks)),
    }
    return fields | {"digest": _digest(fields)}


def _pieces(value: object) -> Iterator[str]:
    """Yield the JSON text of a value, keys sorted, in pieces: no one call of a large state is long.

    A call of `json.dumps` keeps all other threads waiting.
    """
    if isinstance(value, dict) and value and all(type(key) is str for key in value):
        for i, key in enumerate(sorted(value)):
            yield f"{', ' if i else '{'}{json.dumps(key)}: "
            yield from _pieces(value[key])
        yield "}"
    elif isinstance(value, list | tuple) and len(value) > _PIECE:
        for i in range(0, len(value), _PIECE):
            yield ", " if i else "["
            yield _json(value[i : i + _PIECE])[1:-1]
        yield "]"
    elif isinstance(value, list | tuple) and 0 < len(value) <= _FEW:
        for i, one in enumerate(value):
            yield ", " if i else "["
            yield from _pieces(one)
        yield "]"
    else:
        yield _json(value)


def _json(value: object) -> str:
    return json.dumps(value, allow_nan=False, sort_keys=True)


@dataclass(frozen=True, slots=True)
class StoredState:
    """A decoded state hash: the parameters of `encode_state`, and the fold tag that wrote it."""

    position: Position
    scalars: dict[str, Any]
    sizes: dict[str, int]
    marks: list[Mark]
    fold: str = ""


def decode_state(fields: Mapping[str, str]) -> StoredState:
    """Return the state that `encode_state` wrote.

    Raises
    ------
    DamagedState
        If the digest or the form is wrong.
    OtherVersion
        If it is whole, but of another schema.

    """
    rest = {name: value for name, value in fields.items() if name != "digest"}
    if fields.get("digest") != _digest(rest):
        raise DamagedState("the stored state does not match its digest")
    if rest.get("schema") != str(SCHEMA):
        raise OtherVersion(f"{rest.get('fold')}, schema {rest.get('schema')}")
    try:
        return StoredState(
            position=Position.parse(f"{rest['position']}.{rest['chain']}"),
            scalars=dict(_decoded(rest["scalars"])),
            sizes={str(k): int(v) for k, v in _decoded(rest["sizes"]).items()},
            marks=[_mark(*mark) for mark in _decoded(rest["marks"])],
            fold=rest["fold"],
        )
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedState(f"the stored state is damaged: {error}") from error


def _mark(entry_id: Any, log_bytes: Any, log_events: Any) -> Mark:
    if not type(log_bytes) is type(log_events) is int:
        raise ValueError("a mark is an entry id and two counts")
    EntryId.parse(entry_id)
    return Mark(entry_id, log_bytes, log_events)


def _digest(fields: Mapping[str, str]) -> str:
    text = json.dumps(sorted(fields.items()))
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
