"""The index of all models and aliases, by name."""

from __future__ import annotations

import hashlib
from typing import NamedTuple
from weakref import WeakKeyDictionary

from hinged_service.errors import Conflict, Detail, SetAside
from hinged_service.model.index_entry import Alias, IndexEntry
from hinged_service.store.connection import Connection
from hinged_service.store.keys import INDEX
from hinged_service.store.scripts import load

__all__ = [
    "DamagedEntry",
    "Index",
    "cached_entry",
    "compare_and_set",
    "enter",
    "find",
    "index",
    "read",
    "replace_damaged",
]

_COMPARE_AND_SET = load("index_compare_and_set")
_REPLACE_DAMAGED = load("index_replace_damaged")
_WHEN_FULL = load("index_compare_and_set", when_full=True)

_PIECE = 200
"""Index entries read in one go; other calls of Redis and this worker come in between."""


async def enter(connection: Connection, name: str, entry: IndexEntry | Alias, most: int) -> bool:
    """Put a model or alias into the index; `False` if the name is taken.

    Raises
    ------
    Conflict
        There are `most` models and aliases.

    """
    reply = await connection.run(_COMPARE_AND_SET, [INDEX], name, "", "", 0, entry.dumps(), most)
    if reply == 2:
        raise Conflict(
            f"There are {most} models and aliases, as many as max_models allows. Delete one that "
            "is not needed any more, or start the service with a greater HINGED_MAX_MODELS."
        )
    return bool(reply)


async def compare_and_set(
    connection: Connection,
    name: str,
    expected: IndexEntry | Alias,
    new: IndexEntry | Alias | None,
) -> bool:
    """Set the index entry of `name` if it is still the expected one; `None` removes it.

    To remove it, or to mark that it will be, works also when the memory of Redis is full.
    """
    stage = ("alias", "", 0)
    if isinstance(expected, IndexEntry):
        stage = (expected.uid, expected.base or "", int(expected.deleting))
    text = "" if new is None else new.dumps()
    removes = new is None or (isinstance(new, IndexEntry) and new.deleting)
    script = _WHEN_FULL if removes else _COMPARE_AND_SET
    return bool(await connection.run(script, [INDEX], name, *stage, text, 0))


async def find(connection: Connection, name: str) -> IndexEntry | Alias | None:
    """Return the index entry of a model or alias; `DamagedEntry` if it cannot be read here."""
    return read(connection, name, await connection.hget_bytes(INDEX, name))


def read(connection: Connection, name: str, stored: bytes | None) -> IndexEntry | Alias | None:
    """Return an index entry as `find` does, from its stored bytes."""
    if stored is None:
        return None
    try:
        return _decoded.setdefault(connection, {}).setdefault(name, _Cached()).meaning_of(stored)
    except ValueError as error:
        raise DamagedEntry(name, stored) from error


def cached_entry(connection: Connection, name: str) -> IndexEntry | None:
    """Return the entry of a whole model as it was read last, `None` if it was not.

    It may be another one by now.
    """
    cached = _decoded.get(connection, {}).get(name)
    entry = None if cached is None else cached.entry
    whole = isinstance(entry, IndexEntry) and entry.base is not None and not entry.deleting
    return entry if whole and isinstance(entry, IndexEntry) else None


class DamagedEntry(SetAside):
    """An index entry that cannot be read here.

    Attributes
    ----------
    stored
        The entry as it is stored.

    """

    def __init__(self, name: str, stored: bytes) -> None:
        super().__init__(
            f"The index entry of {name!r} is damaged, or of a newer version of the service. "
            f"POST /v1/models/{name}/repair puts back what its stream notes of it, PUT with the "
            "spec that it had takes the model over, DELETE removes it.",
            [Detail("index", f"holds an entry that cannot be read: {stored[:40]!r}")],
            retry_after_s=60,
        )
        self.stored = stored


async def replace_damaged(
    connection: Connection, name: str, damaged: DamagedEntry, new: IndexEntry | None
) -> bool:
    """Set or remove an index entry if it is still the damaged one."""
    text = "" if new is None else new.dumps()
    return bool(await connection.run(_REPLACE_DAMAGED, [INDEX], name, damaged.stored, text))


def _entry(stored: bytes) -> IndexEntry | Alias:
    try:
        if b'"alias_on"' in stored and b'"uid"' not in stored:
            return Alias.model_validate_json(stored)
        return IndexEntry.loads(stored)
    except RecursionError as error:
        raise ValueError("an index entry is nested too deep") from error


class Index(NamedTuple):
    """The whole index: entries by model, streams by alias, names that cannot be read here."""

    models: dict[str, IndexEntry]
    aliases: dict[str, str]
    unreadable: list[str]


class _Cached:
    """Meaning of an entry as last read, and a digest of its text.

    To decode one takes longer than all the rest, and few change between two reads.
    """

    __slots__ = ("_digest", "entry")

    def __init__(self) -> None:
        self.entry: IndexEntry | Alias | None = None
        self._digest = b""

    def meaning_of(self, stored: bytes) -> IndexEntry | Alias:
        """Return the meaning of a text; `ValueError` if it has none."""
        digest = hashlib.blake2b(stored, digest_size=16).digest()
        if self.entry is None or digest != self._digest:
            self.entry = None
            self.entry, self._digest = _entry(stored), digest
        return self.entry


_decoded: WeakKeyDictionary[Connection, dict[str, _Cached]] = WeakKeyDictionary()
"""The index as last read, by connection."""


async def index(connection: Connection) -> Index:
    """Return the index, read in pieces: an entry that changes meanwhile may be old or new."""
    found = Index({}, {}, [])
    cached = _decoded.get(connection, {})
    seen: dict[str, _Cached] = {}
    unreadable = set()
    async for piece in connection.hscan_bytes(INDEX, _PIECE):
        for field, stored in zip(piece[::2], piece[1::2], strict=True):
            name = field.decode(errors="backslashreplace")
            one = cached.get(name) or _Cached()
            try:
                field.decode()
                one.meaning_of(stored)
                seen[name] = one
            except ValueError:
                unreadable.add(name)
    _decoded[connection] = seen
    found.unreadable.extend(unreadable)
    for name, one in seen.items():
        if isinstance(one.entry, Alias):
            found.aliases[name] = one.entry.alias_on
        elif one.entry is not None:
            found.models[name] = one.entry
    return found
