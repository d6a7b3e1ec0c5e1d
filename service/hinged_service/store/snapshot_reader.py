"""The reading of a model's snapshot, whole and of one moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, NamedTuple, Protocol, Self

from hinged_service.errors import ModelGone, Unavailable
from hinged_service.store import replies
from hinged_service.store.connection import Connection
from hinged_service.store.followers import (
    Retention,
    hold_snapshot,
    parse_position,
    parse_retention,
    upgrade_point,
)
from hinged_service.store.keys import INDEX, ModelKeys, StateKeys, StreamKeys
from hinged_service.store.log import caught_up
from hinged_service.store.log_types import CaughtUp
from hinged_service.store.scripts import load
from hinged_service.store.snapshot import Loaded
from hinged_service.store.transport.shared_connection import Seen
from hinged_service.wire import codec
from hinged_service.wire.codec import (
    VECTORS,
    DamagedState,
    OtherVersion,
    StoredState,
    decode_field,
    decode_state,
    decode_value,
    decode_weights,
    place,
)
from hinged_service.wire.position import Mark, Position, UpgradePoint
from hinged_service.wire.progress import OnProgress, Progress, no_progress

__all__ = ["Opened", "load_snapshot", "load_state", "open_small"]

_LOAD_ATTEMPTS = 20
_SCANS = 3
"""Attempts to scan a snapshot that moves before it is read in one go."""
_MOST_AT_ONCE = 50_000
"""Most weights that are; each blocks Redis for about 1 µs."""
_READ_MOMENT = load("read_snapshot", reading=True)


class Hashes(Protocol):
    """The hashes of a stored state, wherever they are."""

    async def hgetall(self, key: str) -> dict[str, str]:
        """Return a small hash whole."""

    def hscan(self, key: str, count: int) -> AsyncIterator[list[tuple[str, str]]]:
        """Yield a big hash in pieces of about `count` fields."""


class _Moment:
    """A snapshot as one script read it, and its field in the hash of followers then."""

    def __init__(self, follower: str | None, hashes: dict[str, list[bytes]]) -> None:
        self.follower = follower
        self._hashes = hashes

    @classmethod
    async def read(cls, connection: Connection, keys: ModelKeys) -> Self | None:
        """Read it, unless that would hold up other clients of Redis."""
        own = keys.all()
        found = await connection.run(
            _READ_MOMENT, [keys.on.followers, *own], keys.uid, _MOST_AT_ONCE
        )
        if found is None:
            return None
        follower = None if found[0] is None else replies.text(found[0])
        return cls(follower, dict(zip(own, found[1:], strict=True)))

    async def hgetall(self, key: str) -> dict[str, str]:
        """Return a small hash whole."""
        words = iter([word.decode(errors="backslashreplace") for word in self._hashes[key]])
        return dict(zip(words, words, strict=True))

    async def hscan(self, key: str, count: int) -> AsyncIterator[list[tuple[str, str]]]:
        """Yield a big hash in pieces of `count` fields."""
        found = self._hashes[key]
        for first in range(0, len(found), 2 * count):
            yield list(replies.pairs(found[first : first + 2 * count]))


_OPEN = load("open_model")
_SMALL_NAMES, _SMALL_BYTES = 1_000, 2**16
"""Bounds of a snapshot that is read at once, which blocks Redis for other clients."""


class Opened(NamedTuple):
    """A small model: its snapshot, the retention of its stream, the log behind the snapshot."""

    loaded: Loaded
    kept: Retention
    tail: CaughtUp


async def open_small(
    connection: Connection, name: str, keys: ModelKeys, base: str, reply_bytes: int
) -> tuple[bytes | None, Opened | None]:
    """Read all that a model needs to be opened in one round trip, and its index entry with it.

    Returns
    -------
    The entry as it is stored; the model, `None` if it is not small, sound and of this process's
    fold tag: then `load_snapshot` reads it, or raises what is wrong.

    """
    script_keys = [*keys.on.followed, keys.state, *(keys.vector(kind) for kind in VECTORS)]
    entry, reply, seen = await connection.hget_and_share(
        (INDEX, name),
        _OPEN,
        script_keys,
        *(keys.uid, reply_bytes, codec.fold_tag(), _SMALL_NAMES, _SMALL_BYTES),
    )
    if reply is None or len(reply) == 1:
        return entry, None
    try:
        opened = _opened(reply, base, seen)
    except (DamagedState, OtherVersion, ValueError):
        return entry, None
    return entry, opened if opened.tail.kind == "ok" else None


def _opened(reply: list[Any], base: str, seen: Seen) -> Opened:
    position = replies.position(reply[0], reply[1])
    tail = caught_up(reply[8], seen)
    state = None
    vectors: dict[str, dict[Any, float]] = {}
    if reply[2]:
        state = decode_state(dict(replies.pairs(reply[2])))
        if state.fold != codec.fold_tag():
            raise OtherVersion(state.fold)
        places, vectors = _places(state)
        kinds = {kind for kind, _ in places}
        for kind, found in zip(VECTORS, reply[3], strict=True):
            if kind in kinds:
                _put(list(replies.pairs(found)), kind, places, vectors)
        _check_sizes(state, vectors)
    _check(position, state, base)
    mark = Mark(position.id, int(reply[4][0]), int(reply[4][1])) if reply[4] else None
    barrier = UpgradePoint(*replies.text(reply[7]).split(" ", 1)) if reply[7] else None
    tag = "" if state is None else state.fold
    loaded = Loaded(position, state, vectors, mark, barrier, tag)
    return Opened(loaded, parse_retention(reply[5], reply[6]), tail)


async def load_snapshot(
    connection: Connection,
    keys: ModelKeys,
    base: str,
    chunk: int,
    hold_ms: int,
    fold: str | None = None,
    on_progress: OnProgress = no_progress,
) -> Loaded:
    """Read a model's snapshot, whole and of one moment.

    If the snapshot moves while it is read, it is held still for a while; if the connection leaves
    no notes, a small one is read in one go.

    Parameters
    ----------
    base
        The position at which the model starts.
    chunk
        Names to read in one command.
    hold_ms
        Time to hold it.
    fold
        The fold tag that it must have; any if left out.
    on_progress
        Called with the weights that are read.

    Raises
    ------
    ModelGone
        The model does not follow the stream.
    DamagedState, OtherVersion
        As for `load_state`.
    Unavailable
        Redis does not answer, or the snapshot moved at every attempt.

    """
    for attempt in range(_LOAD_ATTEMPTS):
        if attempt:
            await hold_snapshot(connection, keys, hold_ms)
        source: Hashes = connection
        moment = None
        if attempt >= _SCANS and not connection.notes:
            moment = await _Moment.read(connection, keys)
        if moment is not None:
            source, before = moment, moment.follower
        else:
            before = await connection.hget(keys.on.followers, keys.uid)
        if before is None:
            raise ModelGone
        position = parse_position(before)
        vectors: dict[str, dict[Any, float]] = {}
        damage: DamagedState | OtherVersion | None = None
        state = mark = None
        try:
            state, vectors = await load_state(source, keys, chunk, fold, on_progress)
            mark = await _mark_at(connection, keys.on, position)
            tag = await _tag(connection, keys, state, fold)
            last = await upgrade_point(connection, keys)
        except (DamagedState, OtherVersion) as error:
            damage = error
        moved = source is connection and (
            await connection.hget(keys.on.followers, keys.uid) != before
        )
        if moved:
            continue
        if damage is not None:
            raise damage
        _check(position, state, base)
        return Loaded(position, state, vectors, mark, last, tag)
    raise Unavailable(
        "The model's snapshot kept moving while it was read. Try again.", retry_after_s=1
    )


async def _tag(
    connection: Connection, keys: ModelKeys, state: StoredState | None, wanted: str | None
) -> str:
    """Return the fold tag of the workers that go on from a snapshot."""
    if state is not None:
        return state.fold
    tag = await connection.hget(keys.on.meta, f"fold:{keys.uid}") or ""
    if wanted is not None and tag not in ("", wanted):
        raise OtherVersion(tag)
    return tag


async def load_state(
    connection: Hashes,
    keys: StateKeys,
    chunk: int,
    fold: str | None = None,
    on_progress: OnProgress = no_progress,
) -> tuple[StoredState | None, dict[str, dict[Any, float]]]:
    """Read a stored state and its vectors; the state is `None` if nothing is stored.

    Raises
    ------
    DamagedState
        The stored state cannot be as it was written.
    OtherVersion
        It is of another schema, or of another fold tag than `fold`, if that is passed.

    """
    fields = await connection.hgetall(keys.state)
    if not fields:
        return None, {}
    state = decode_state(fields)
    if fold is not None and state.fold != fold:
        raise OtherVersion(state.fold)
    places, vectors = _places(state)
    done, total = 0, sum(state.sizes.values())
    for kind in sorted({kind for kind, _ in places}):
        async for pairs in connection.hscan(keys.vector(kind), chunk):
            on_progress(Progress("read", min(done, total), total))  # a scan may repeat some
            _put(pairs, kind, places, vectors)
            done += len(pairs)
            await asyncio.sleep(0)
    _check_sizes(state, vectors)
    return state, vectors


async def _mark_at(connection: Connection, keys: StreamKeys, position: Position) -> Mark | None:
    entry = await connection.entry(keys.log, position.id)
    if entry is None:
        return None
    return Mark(position.id, int(entry[b"bytes"]), int(entry[b"count"]))


Places = dict[tuple[str, Any], str]


def _places(state: StoredState) -> tuple[Places, dict[str, dict[Any, float]]]:
    """Return where the vectors that the state names are stored, and the vectors, still empty."""
    learner = state.scalars.get("learner")
    if not isinstance(learner, dict):
        raise DamagedState("the stored state has no learner")
    return {place(name, learner): name for name in state.sizes}, {name: {} for name in state.sizes}


def _put(
    pairs: list[tuple[str, str]], kind: str, places: Places, vectors: dict[str, dict[Any, float]]
) -> None:
    """Put fields of the hash of a kind into their vectors."""
    only = places.get((kind, None))
    if only is not None:
        vectors[only] |= decode_weights(pairs)
        return
    for field, value in pairs:
        tag, name = decode_field(field)
        vector = places.get((kind, tag))
        if vector is None:
            raise DamagedState(f"a stored field is of no class: {field[:40]!r}")
        vectors[vector][name] = decode_value(value)


def _check_sizes(state: StoredState, vectors: dict[str, dict[Any, float]]) -> None:
    sizes = {name: len(values) for name, values in vectors.items()}
    if state.sizes != sizes:
        raise DamagedState(f"the stored vectors have {sizes} names instead of {state.sizes}")


def _check(position: Position, state: StoredState | None, base: str) -> None:
    if state is None:
        if position != Position.parse(base):
            raise DamagedState("the stored state is missing")
    elif state.position != position:
        raise DamagedState("the stored state is of another position than the follower")
