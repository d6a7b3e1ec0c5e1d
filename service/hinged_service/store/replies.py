"""Replies of Redis as values: text, fields, positions, log entries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from hinged_service.store.log_types import Entry
from hinged_service.wire.codec import DamagedState
from hinged_service.wire.position import Position

__all__ = ["entries", "entry", "fields", "ids", "indices", "pairs", "position", "text"]


def text(value: bytes) -> str:
    """Decode a value; `DamagedState` if it is not UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise DamagedState("stored text is not UTF-8") from error


def pairs(flat: Iterable[bytes]) -> Iterable[tuple[str, str]]:
    """Pair the field, value list of a hash; `DamagedState` if one is not UTF-8."""
    try:
        words = iter([word.decode() for word in flat])
    except UnicodeDecodeError as error:
        raise DamagedState("stored text is not UTF-8") from error
    return zip(words, words, strict=True)


def fields(flat: Iterable[bytes]) -> dict[bytes, bytes]:
    """Return the field, value list of a stream's entry as a mapping."""
    words = iter(flat)
    return dict(zip(words, words, strict=True))


def position(entry_id: bytes, chain: bytes) -> Position:
    """Return a position in the log."""
    return Position(entry_id.decode(), chain.decode())


def entries(found: Sequence[Any]) -> list[Entry]:
    """Return log entries from their ids and field, value lists."""
    return [entry(entry_id, fields(flat)) for entry_id, flat in found]


def entry(entry_id: bytes, found: dict[bytes, bytes]) -> Entry:
    """Return a log entry from its id and fields."""
    return Entry(
        position(entry_id, found[b"chain"]),
        found.get(b"events"),
        indices(found.get(b"skip", b"[]")),
        int(found[b"bytes"]),
        int(found[b"count"]),
        found.get(b"command"),
        found.get(b"joined"),
    )


def ids(found: Iterable[bytes]) -> tuple[str, ...]:
    """Return ids of entries."""
    return tuple(entry_id.decode() for entry_id in found)


def indices(found: bytes) -> frozenset[int]:
    """Return a JSON list of indices."""
    return frozenset(msgspec.json.decode(found, type=list[int])) if found != b"[]" else frozenset()
