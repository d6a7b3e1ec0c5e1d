"""Models in Redis: their place in the index, their snapshots, their end."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple
from weakref import WeakKeyDictionary

import msgspec

from hinged_service.errors import Conflict, ModelGone, SetAside, Unavailable
from hinged_service.model.spec import Alias, IndexEntry
from hinged_service.store.connection import Connection
from hinged_service.store.keys import INDEX, ModelKeys, StateKeys, StreamKeys
from hinged_service.store.scripts import load
from hinged_service.wire import codec
from hinged_service.wire.codec import (
    VECTORS,
    DamagedState,
    Mark,
    OtherVersion,
    Position,
    StoredState,
    UpgradePoint,
    decode_field,
    decode_state,
    decode_value,
    decode_weights,
    encode_field,
    encode_state,
    place,
)

__all__ = [
    "DelayedLabelRules",
    "Index",
    "Loaded",
    "Retention",
    "Saved",
    "Snapshot",
    "Stored",
    "barrier",
    "delete",
    "enter",
    "find",
    "followers",
    "gather",
    "hold",
    "index",
    "kept",
    "lag_bytes",
    "load_snapshot",
    "load_state",
    "packed_state",
    "register",
    "save_changes",
    "save_full",
    "set_aside",
    "snapshot_position",
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
_PIECE = 200
"""Index entries read in one go; others who wait for Redis or this worker come in between."""


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
        Places of the log with what it had taken until then.
    wanted
        The oldest entry id that retention wants kept.

    """

    position: Position
    scalars: Mapping[str, Any]
    vectors: Mapping[str, Mapping[Any, float | None]]
    sizes: Mapping[str, int]
    marks: list[Mark]
    wanted: str


Saved = Literal["ok", "stored", "later", "full", "incomplete", "lost", "gone", "other"]
"""What became of a snapshot: stored; not needed any more (a later one is stored); held back for a
reader or an upgrade; needed in full; a chunk got lost; not the log's own past; the model is gone;
workers of another fold tag fold it."""


class Retention(NamedTuple):
    """How much of its log a stream keeps behind the snapshots, as far as its models say so.

    Parameters
    ----------
    events, bytes
        `None` where no model says.

    """

    events: int | None
    bytes: int | None


class DelayedLabelRules(NamedTuple):
    """How a stream's predictions wait for their labels.

    Parameters
    ----------
    wait_ms, most
        How long at least, and how many at most.
    default
        The label of those that wait in vain, as JSON; empty for none.
    digest
        Its digest.
    early
        Whether labels may come first.
    said
        Whether the model's spec says so.

    """

    wait_ms: int
    most: int
    default: str
    digest: str
    early: bool
    said: bool


class Stored(NamedTuple):
    """The answer to a snapshot.

    Parameters
    ----------
    became
        What became of it.
    kept
        What the stream keeps; `None` unless the snapshot was stored.

    """

    became: Saved
    kept: Retention | None = None


def _stored(reply: list[Any]) -> Stored:
    became = reply[0].decode()
    return Stored(became, _kept(reply[2], reply[3]) if became == "ok" else None)


def _kept(events: Any, size: Any) -> Retention:
    return Retention(int(events) if events else None, int(size) if size else None)


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
    mark
        What the log had taken until there; `None` if the log does not hold the entry.
    barrier
        The model's last upgrade, if there was one.
    fold
        The fold tag of those who go on from there; empty if nobody said.

    """

    position: Position
    state: StoredState | None
    vectors: dict[str, dict[Any, float]]
    mark: Mark | None = None
    barrier: UpgradePoint | None = None
    fold: str = ""


async def enter(connection: Connection, name: str, entry: IndexEntry | Alias, most: int) -> bool:
    """Put a model or alias into the index; `False` if the name is taken.

    Parameters
    ----------
    connection, name, entry
        The worker's connection, and what to put there.
    most
        How many models and aliases there may be.

    Raises
    ------
    Conflict
        There are so many.

    """
    reply = await connection.run(_SWAP, [INDEX], name, "", "", 0, entry.dumps(), most)
    if reply == 2:
        raise Conflict(
            f"There are {most} models and aliases, as many as max_models allows. Delete one that "
            "is not needed any more, or start the service with a greater HINGED_MAX_MODELS."
        )
    return bool(reply)


async def swap(
    connection: Connection,
    name: str,
    expected: IndexEntry | Alias,
    new: IndexEntry | Alias | None,
) -> bool:
    """Set the index entry of `name` if it is still the expected one; `None` removes it."""
    stage = ("alias", "", 0)
    if isinstance(expected, IndexEntry):
        stage = (expected.uid, expected.base or "", int(expected.deleting))
    text = "" if new is None else new.dumps()
    return bool(await connection.run(_SWAP, [INDEX], name, *stage, text, 0))


async def find(connection: Connection, name: str) -> IndexEntry | Alias | None:
    """Return the index entry of a model or alias.

    Raises
    ------
    SetAside
        If it cannot be read here.

    """
    text = await connection.hget(INDEX, name)
    try:
        return None if text is None else _entry(text)
    except ValueError as error:
        raise SetAside(
            f"The index entry of {name!r} is damaged, or of a newer version of the service.",
            retry_after_s=60,
        ) from error


def _entry(text: str) -> IndexEntry | Alias:
    try:
        found = msgspec.json.decode(text)
    except RecursionError as error:
        raise ValueError("an index entry is nested too deep") from error
    kind = Alias if isinstance(found, dict) and "alias_on" in found else IndexEntry
    return kind.model_validate_json(text)


class Index(NamedTuple):
    """The whole index.

    Parameters
    ----------
    models
        Entries by model name.
    aliases
        Streams by alias.
    unreadable
        Names whose entry cannot be read here.

    """

    models: dict[str, IndexEntry]
    aliases: dict[str, str]
    unreadable: list[str]


_decoded: WeakKeyDictionary[Connection, dict[str, tuple[str, IndexEntry | Alias]]] = (
    WeakKeyDictionary()
)
"""By connection, what the index held when it was last read, and what that means: to decode an
entry takes longer than all the rest, and few change between two reads."""


async def index(connection: Connection) -> Index:
    """Return the index, read in pieces: an entry that changes meanwhile may be as before or after.

    One that is only just made or deleted may be there or not, all others are.
    """
    found = Index({}, {}, [])
    known = _decoded.get(connection, {})
    seen: dict[str, tuple[str, IndexEntry | Alias]] = {}
    unreadable = set()
    async for piece in connection.hscan(INDEX, _PIECE):
        for name, text in piece:
            before = known.get(name)
            try:
                seen[name] = before if before and before[0] == text else (text, _entry(text))
            except ValueError:
                unreadable.add(name)
    _decoded[connection] = seen
    found.unreadable.extend(unreadable)
    for name, (_, entry) in seen.items():
        if isinstance(entry, Alias):
            found.aliases[name] = entry.alias_on
        else:
            found.models[name] = entry
    return found


async def register(
    connection: Connection,
    keys: StreamKeys,
    uid: str,
    seen_ms: int,
    seen_ids: int,
    start: Position | Literal["now", "log"] = "now",
    checkpoint: str | None = None,
    kept: Retention | None = None,
    waiting: DelayedLabelRules | None = None,
) -> Position:
    """Make `uid` a follower of the stream; return its snapshot's position.

    Parameters
    ----------
    connection, keys, uid
        The worker's connection, the stream's keys, the model.
    seen_ms, seen_ids
        How long and how many event ids a new stream remembers.
    start
        The log's end, the oldest entry, or a position.
    checkpoint
        The uid of the checkpoint that it starts with.
    kept
        What the stream is to keep at least.
    waiting
        How its predictions wait for their labels; a day if left out.

    Raises
    ------
    Conflict
        The log does not hold the position, there is no such checkpoint, or predictions
        wait under other rules already.

    """
    where = (start.id, start.chain) if isinstance(start, Position) else (start, "")
    keep = kept or Retention(None, None)
    wait = waiting or DelayedLabelRules(86_400_000, 100_000, "", "", early=False, said=False)
    reply = await connection.run(
        _REGISTER,
        [
            keys.meta,
            keys.log,
            keys.followers,
            *([keys.checkpoint(checkpoint).state] if checkpoint else []),
        ],
        uid,
        secrets.token_hex(16),
        seen_ms,
        seen_ids,
        *where,
        checkpoint or "",
        *("" if n is None else n for n in keep),
        *(wait.wait_ms, wait.most, wait.default, wait.digest, int(wait.early), int(wait.said)),
        codec.fold_tag(),
    )
    if reply[0] == b"other":
        raise Conflict("Predictions wait on that stream for their labels under other rules.")
    if reply[0] == b"lost":
        raise Conflict(
            "The log does not reach back to that checkpoint any more: it can be restored into a "
            "model, but no model can go on from it."
        )
    if reply[0] == b"missing":
        raise Conflict("That checkpoint was deleted.")
    return Position(reply[1].decode(), reply[2].decode())


async def kept(connection: Connection, keys: StreamKeys) -> Retention:
    """Return how much of its log the stream keeps, as far as its models say so."""
    meta = await connection.hgetall(keys.meta)
    return _kept(meta.get("keep_events"), meta.get("keep_bytes"))


async def delete(connection: Connection, keys: ModelKeys) -> None:
    """Remove a follower and its keys; with the last one the stream goes too."""
    own = keys.all()
    while True:
        seen = await connection.hgetall(keys.on.checkpoints)
        checkpoints = [
            key
            for uid in seen
            if not uid.startswith("name:")
            for key in keys.on.checkpoint(uid).all()
        ]
        gone = await connection.run(
            _DELETE, [*keys.on.all(), *checkpoints, *own], keys.uid, len(own), len(seen)
        )
        if gone >= 0:
            return


async def followers(connection: Connection, keys: StreamKeys) -> dict[str, Position]:
    """Return the followers of a stream: model uid to the position of its snapshot."""
    found = await connection.hgetall(keys.followers)
    return {uid: _position(value) for uid, value in found.items()}


async def snapshot_position(connection: Connection, keys: ModelKeys) -> Position:
    """Return where a model's snapshot stands.

    Raises
    ------
    ModelGone
        If the model does not follow the stream.

    """
    found = await connection.hget(keys.on.followers, keys.uid)
    if found is None:
        raise ModelGone("The model was deleted.")
    return _position(found)


def _position(value: str) -> Position:
    try:
        return Position.parse(value.replace(" ", "."))
    except ValueError:  # damaged: before all entries, as the scripts read it
        return Position("0-0", "0" * 40)


def packed_state(snapshot: Snapshot) -> bytes:
    """Return the fields of a state hash as the scripts take them."""
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
) -> Stored:
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
        packed_state(snapshot),
        snapshot.wanted,
        codec.fold_tag(),
        *changes,
    )
    return _stored(reply)


async def save_full(
    connection: Connection, keys: ModelKeys, snapshot: Snapshot, chunk: int
) -> Stored:
    """Store a whole snapshot, in chunks of `chunk` names and then all at once."""
    both, counts = await gather(connection, keys, snapshot, chunk)
    reply = await connection.run(
        _FULL,
        [keys.on.meta, keys.on.log, keys.on.followers, keys.state, *both],
        keys.uid,
        snapshot.position.id,
        snapshot.position.chain,
        packed_state(snapshot),
        snapshot.wanted,
        codec.fold_tag(),
        *counts,
    )
    return _stored(reply)


async def gather(
    connection: Connection, keys: StateKeys, snapshot: Snapshot, chunk: int
) -> tuple[list[str], list[int]]:
    """Send whole vectors to temporary hashes, which expire unless they are used.

    Returns
    -------
    Lasting and temporary key of each vector in turn; how many names were sent to each.

    """
    nonce = secrets.token_hex(8)
    both: list[str] = []
    counts: list[int] = []
    places = _places(snapshot)
    for kind in VECTORS:  # also those that the state has no more: nothing of them may stay
        vectors = places.get(kind, ())
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
    return both, counts


async def hold(connection: Connection, keys: ModelKeys, hold_ms: int) -> None:
    """Ask that a model's snapshot stay as it is for a while."""
    await connection.run(_HOLD, [keys.on.meta, keys.on.followers], keys.uid, hold_ms)


async def barrier(connection: Connection, keys: ModelKeys) -> UpgradePoint | None:
    """Return a model's last upgrade, `None` if there was none."""
    found = await connection.hget(keys.on.meta, f"barrier:{keys.uid}")
    return None if found is None else UpgradePoint(*found.split(" ", 1))


async def load_snapshot(
    connection: Connection,
    keys: ModelKeys,
    base: str,
    chunk: int,
    hold_ms: int,
    fold: str | None = None,
) -> Loaded:
    """Read a model's snapshot, whole and of one moment.

    If the snapshot moves while it is read, it is held still for a while.

    Parameters
    ----------
    connection, keys
        The worker's connection, the model's keys.
    base
        Where the model starts.
    chunk
        Names to read in one command.
    hold_ms
        How long to hold it.
    fold
        The fold tag that it must have; any if left out.

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
            await hold(connection, keys, hold_ms)
        before = await connection.hget(keys.on.followers, keys.uid)
        if before is None:
            raise ModelGone("The model was deleted.")
        position = _position(before)
        vectors: dict[str, dict[Any, float]] = {}
        damage: DamagedState | OtherVersion | None = None
        state = mark = None
        try:
            state, vectors = await load_state(connection, keys, chunk, fold)
            mark = await _mark_at(connection, keys.on, position)
            tag = await _tag(connection, keys, state, fold)
            last = await barrier(connection, keys)
        except (DamagedState, OtherVersion) as error:
            damage = error
        if await connection.hget(keys.on.followers, keys.uid) != before:
            continue
        if damage is not None:
            raise damage
        _check(position, state, base)
        return Loaded(position, state, vectors, mark, last, tag)
    raise Unavailable("The model's snapshot kept moving while it was read.", retry_after_s=1)


async def _tag(
    connection: Connection, keys: ModelKeys, state: StoredState | None, wanted: str | None
) -> str:
    """Return the fold tag of those who go on from a snapshot, be it none yet."""
    if state is not None:
        return state.fold
    tag = await connection.hget(keys.on.meta, f"fold:{keys.uid}") or ""
    if wanted is not None and tag not in ("", wanted):
        raise OtherVersion(tag)
    return tag


async def load_state(
    connection: Connection, keys: StateKeys, chunk: int, fold: str | None = None
) -> tuple[StoredState | None, dict[str, dict[Any, float]]]:
    """Read a stored state and its vectors; the state is `None` if nothing is stored.

    Raises
    ------
    DamagedState
        If what is stored cannot be what was written.
    OtherVersion
        If it is of another schema, or of another fold tag than `fold`, if that is given.

    """
    fields = await connection.hgetall(keys.state)
    if not fields:
        return None, {}
    state = decode_state(fields)
    if fold is not None and state.fold != fold:
        raise OtherVersion(state.fold)
    vectors = await _vectors(connection, keys, state, chunk)
    sizes = {name: len(values) for name, values in vectors.items()}
    if state.sizes != sizes:
        raise DamagedState(f"the stored vectors have {sizes} names instead of {state.sizes}")
    return state, vectors


async def _mark_at(connection: Connection, keys: StreamKeys, position: Position) -> Mark | None:
    entry = await connection.entry(keys.log, position.id)
    if entry is None:
        return None
    return Mark(position.id, int(entry[b"bytes"]), int(entry[b"count"]))


async def _vectors(
    connection: Connection, keys: StateKeys, state: StoredState, chunk: int
) -> dict[str, dict[Any, float]]:
    """Read the vectors that the state names, and nothing else."""
    learner = state.scalars.get("learner")
    if not isinstance(learner, dict):
        raise DamagedState("the stored state has no learner")
    vectors: dict[str, dict[Any, float]] = {name: {} for name in state.sizes}
    places = {place(name, learner): name for name in vectors}
    for kind in sorted({kind for kind, _ in places}):
        only = places.get((kind, None))
        async for pairs in connection.hscan(keys.vector(kind), chunk):
            if only is not None:
                vectors[only] |= decode_weights(pairs)
            else:
                for field, value in pairs:
                    tag, name = decode_field(field)
                    vector = places.get((kind, tag))
                    if vector is None:
                        raise DamagedState(f"a stored field is of no class: {field[:40]!r}")
                    vectors[vector][name] = decode_value(value)
            await asyncio.sleep(0)
    return vectors


def _check(position: Position, state: StoredState | None, base: str) -> None:
    if state is None:
        if position != Position.parse(base):
            raise DamagedState("the stored state is missing")
    elif state.position != position:
        raise DamagedState("the stored state is of another position than the follower")


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
