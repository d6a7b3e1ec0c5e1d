"""Models in Redis: their place in the index, their snapshots, their end."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from hinged_service.codec import (
    DamagedState,
    OtherVersion,
    Position,
    StoredState,
    decode_field,
    decode_state,
    decode_value,
    encode_field,
    encode_state,
    place,
)
from hinged_service.errors import ModelGone, SetAside, Unavailable
from hinged_service.keys import INDEX, ModelKeys, StreamKeys
from hinged_service.scripts import load
from hinged_service.spec import IndexEntry
from hinged_service.store.connection import Connection

__all__ = [
    "Loaded",
    "Saved",
    "Snapshot",
    "all_entries",
    "delete",
    "find",
    "followers",
    "lag_bytes",
    "load_snapshot",
    "register",
    "save_changes",
    "save_full",
    "set_aside",
    "swap",
]

_SWAP = load("swap")
_REGISTER = load("register")
_DELETE = load("delete_model")
_HOLD = load("hold")
_CHANGES = load("snapshot_changes")
_FULL = load("snapshot_full")
_GATHER = load("gather")
_SET_ASIDE = load("set_aside")
_PACK = msgspec.msgpack.Encoder()

_GATHER_MS = 60_000
_LOAD_ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A model's state at a position, as it goes to Redis.

    Parameters
    ----------
    position
        Where in the log it stands.
    scalars
        All of the state but the vectors.
    vectors
        Per vector the names to write and their values, `None` for a name to remove.
    sizes
        Per vector how many names it has in all.
    marks
        Entry ids and the log's byte count at them.
    wanted
        The oldest entry id that retention wants kept.

    """

    position: Position
    scalars: Mapping[str, Any]
    vectors: Mapping[str, Mapping[Any, float | None]]
    sizes: Mapping[str, int]
    marks: list[tuple[str, int]]
    wanted: str


Saved = Literal["ok", "stored", "later", "full", "incomplete", "lost", "gone"]
"""What became of a snapshot: stored; not needed any more (a later one is stored); held back for a
reader; needed in full; a chunk got lost; not the log's own past; the model is gone."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A stored snapshot.

    Parameters
    ----------
    position
        Where in the log it stands.
    state
        The decoded state hash; `None` for a model that was never saved.
    vectors
        The values of each vector.

    """

    position: Position
    state: StoredState | None
    vectors: dict[str, dict[Any, float]]


async def swap(
    connection: Connection, name: str, expected: IndexEntry | None, new: IndexEntry | None
) -> bool:
    """Set the index entry of `name` if it is still the expected one; `None` means absent."""
    stage = ("", "", 0)
    if expected is not None:
        stage = (expected.uid, expected.base or "", int(expected.deleting))
    text = "" if new is None else new.dumps()
    return bool(await connection.run(_SWAP, [INDEX], name, *stage, text))


async def find(connection: Connection, name: str) -> IndexEntry | None:
    """Return the index entry of a model.

    Raises
    ------
    SetAside
        If it cannot be read here.

    """
    text = await connection.hget(INDEX, name)
    try:
        return None if text is None else IndexEntry.loads(text)
    except ValueError as error:
        raise SetAside(
            f"The index entry of {name!r} is damaged, or of a newer version of the service.",
            retry_after_s=60,
        ) from error


async def all_entries(connection: Connection) -> tuple[dict[str, IndexEntry], list[str]]:
    """Return the index by model name, and the names whose entry cannot be read here."""
    entries: dict[str, IndexEntry] = {}
    unreadable: list[str] = []
    for name, text in (await connection.hgetall(INDEX)).items():
        try:
            entries[name] = IndexEntry.loads(text)
        except ValueError:
            unreadable.append(name)
    return entries, unreadable


async def register(
    connection: Connection, keys: StreamKeys, uid: str, seen_ms: int, seen_ids: int
) -> Position:
    """Make `uid` a follower of the stream, from its end; return its snapshot's position."""
    reply = await connection.run(
        _REGISTER,
        [keys.meta, keys.log, keys.followers],
        uid,
        secrets.token_hex(16),
        seen_ms,
        seen_ids,
    )
    return Position(reply[0].decode(), reply[1].decode())


async def delete(connection: Connection, keys: ModelKeys) -> None:
    """Remove a follower and its keys; with the last one the stream goes too."""
    own = keys.all()
    await connection.run(_DELETE, [*keys.on.all(), *own], keys.uid, len(own))


async def followers(connection: Connection, keys: StreamKeys) -> dict[str, Position]:
    """Return the followers of a stream: model uid to the position of its snapshot."""
    found = await connection.hgetall(keys.followers)
    return {uid: _position(value) for uid, value in found.items()}


def _position(value: str) -> Position:
    try:
        return Position.parse(value.replace(" ", "."))
    except ValueError:  # damaged: before all entries, as the scripts read it
        return Position("0-0", "0" * 40)


def _state(snapshot: Snapshot) -> bytes:
    fields = encode_state(snapshot.position, snapshot.scalars, snapshot.sizes, snapshot.marks)
    return _PACK.encode([word for pair in fields.items() for word in pair])


def _places(snapshot: Snapshot) -> dict[str, list[tuple[Any, Mapping[Any, float | None]]]]:
    """Return the vectors to write by the kind of hash that they go to, with their tags."""
    places: dict[str, list[tuple[Any, Mapping[Any, float | None]]]] = {}
    for name, values in snapshot.vectors.items():
        kind, tag = place(name, snapshot.scalars["learner"])
        places.setdefault(kind, []).append((tag, values))
    return places


async def save_changes(
    connection: Connection, keys: ModelKeys, snapshot: Snapshot, base: str
) -> Saved:
    """Store a snapshot whose vectors hold only the names changed since `base`."""
    places = _places(snapshot)
    changes = []
    for vectors in places.values():
        written: list[str] = []
        removed: list[str] = []
        for tag, values in vectors:
            for name, value in values.items():
                field = encode_field(tag, name)
                if value is None:
                    removed.append(field)
                else:
                    written += (field, repr(float(value)))
        changes.append(_PACK.encode((written, removed)))
    reply = await connection.run(
        _CHANGES,
        [
            keys.on.meta,
            keys.on.log,
            keys.on.followers,
            keys.state,
            *(keys.vector(kind) for kind in places),
        ],
        keys.uid,
        base,
        snapshot.position.id,
        snapshot.position.chain,
        _state(snapshot),
        snapshot.wanted,
        *changes,
    )
    return reply[0].decode()  # type: ignore[no-any-return]


async def save_full(
    connection: Connection, keys: ModelKeys, snapshot: Snapshot, chunk: int
) -> Saved:
    """Store a whole snapshot, in chunks of `chunk` names and then all at once."""
    nonce = secrets.token_hex(8)
    both: list[str] = []
    counts: list[int] = []
    for kind, vectors in _places(snapshot).items():
        temporary = keys.temporary(kind, nonce)
        both += [keys.vector(kind), temporary]
        count = 0
        for tag, values in vectors:
            kept = [(name, value) for name, value in values.items() if value is not None]
            count += len(kept)
            for start in range(0, len(kept), chunk):
                flat = [
                    word
                    for name, value in kept[start : start + chunk]
                    for word in (encode_field(tag, name), repr(value))
                ]
                await connection.run(_GATHER, [temporary], _PACK.encode(flat), _GATHER_MS)
                await asyncio.sleep(0)
        counts.append(count)
    reply = await connection.run(
        _FULL,
        [keys.on.meta, keys.on.log, keys.on.followers, keys.state, *both],
        keys.uid,
        snapshot.position.id,
        snapshot.position.chain,
        _state(snapshot),
        snapshot.wanted,
        *counts,
    )
    return reply[0].decode()  # type: ignore[no-any-return]


async def load_snapshot(
    connection: Connection, keys: ModelKeys, base: str, chunk: int, hold_ms: int
) -> Loaded:
    """Read a model's snapshot, whole and of one moment.

    If the snapshot moves while it is read, it is held still for a while.

    Raises
    ------
    ModelGone
        If the model does not follow the stream.
    DamagedState
        If what is stored cannot be what was written.
    OtherVersion
        If another version of the service wrote it.
    Unavailable
        If Redis does not answer, or the snapshot moved at every attempt.

    """
    for attempt in range(_LOAD_ATTEMPTS):
        if attempt:
            await connection.run(_HOLD, [keys.on.meta, keys.on.followers], keys.uid, hold_ms)
        before = await connection.hget(keys.on.followers, keys.uid)
        if before is None:
            raise ModelGone("The model was deleted.")
        position = _position(before)
        vectors: dict[str, dict[Any, float]] = {}
        damage: DamagedState | OtherVersion | None = None
        state = None
        try:
            fields = await connection.hgetall(keys.state)
            state = decode_state(fields) if fields else None
            vectors = await _vectors(connection, keys, state, chunk)
        except (DamagedState, OtherVersion) as error:
            damage = error
        if await connection.hget(keys.on.followers, keys.uid) != before:
            continue
        if damage is not None:
            raise damage
        _check(position, state, vectors, base)
        return Loaded(position, state, vectors)
    raise Unavailable("The model's snapshot kept moving while it was read.", retry_after_s=1)


async def _vectors(
    connection: Connection, keys: ModelKeys, state: StoredState | None, chunk: int
) -> dict[str, dict[Any, float]]:
    """Read the vectors that the state names, and nothing else."""
    if state is None:
        return {}
    learner = state.scalars.get("learner")
    if not isinstance(learner, dict):
        raise DamagedState("the stored state has no learner")
    vectors: dict[str, dict[Any, float]] = {name: {} for name in state.sizes}
    places = {place(name, learner): name for name in vectors}
    for kind in sorted({kind for kind, _ in places}):
        tagged = (kind, None) not in places
        async for pairs in connection.hscan(keys.vector(kind), chunk):
            for field, value in pairs:
                tag, name = decode_field(field, tagged)
                vector = places.get((kind, tag))
                if vector is None:
                    raise DamagedState(f"a stored field is of no class: {field[:40]!r}")
                vectors[vector][name] = decode_value(value)
            await asyncio.sleep(0)
    return vectors


def _check(
    position: Position, state: StoredState | None, vectors: dict[str, dict[Any, float]], base: str
) -> None:
    if state is None:
        if position != Position.parse(base):
            raise DamagedState("the stored state is missing")
        return
    if state.position != position:
        raise DamagedState("the stored state is of another position than the follower")
    sizes = {name: len(values) for name, values in vectors.items()}
    if state.sizes != sizes:
        raise DamagedState(f"the stored vectors have {sizes} names instead of {state.sizes}")


async def lag_bytes(connection: Connection, keys: StreamKeys) -> dict[str, int]:
    """Return per follower how many payload bytes of log its snapshot is behind."""
    total = int(await connection.hget(keys.meta, "bytes") or 0)
    lags: dict[str, int] = {}
    for uid, position in (await followers(connection, keys)).items():
        entry = await connection.entry(keys.log, position.id)
        lags[uid] = total - int(entry[b"bytes"]) if entry is not None else total
    return lags


async def set_aside(connection: Connection, keys: StreamKeys, uid: str) -> None:
    """Let the log be trimmed past a follower that cannot advance, until it does."""
    await connection.run(_SET_ASIDE, [keys.meta, keys.followers], uid)
