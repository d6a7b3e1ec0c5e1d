"""The writing of a model's snapshot: the changes since the last one, or all of it in chunks."""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from hinged_service.errors import ModelGone
from hinged_service.store.connection import Connection
from hinged_service.store.followers import parse_retention
from hinged_service.store.keys import ModelKeys, StateKeys
from hinged_service.store.scripts import load
from hinged_service.store.snapshot import Snapshot, Stored
from hinged_service.wire import codec
from hinged_service.wire.codec import VECTORS, StoredState, encode_field, encode_state, place
from hinged_service.wire.progress import OnProgress, Progress, no_progress

__all__ = ["packed_state", "save_changes", "save_full", "stage_vectors"]

_CHANGES = load("snapshot_changes")
_FULL = load("snapshot_full")
_STAGE = load("stage_chunk")
_PACK = msgspec.msgpack.Encoder()

_STAGED_MS = 60_000


async def save_changes(
    connection: Connection, keys: ModelKeys, snapshot: Snapshot, base: str, small: bool = False
) -> Stored:
    """Store a snapshot whose vectors hold only the names changed since `base`.

    A `small` one is packed at once, and shares its round trip with those of other models.
    """
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
    state = packed_state(snapshot) if small else await asyncio.to_thread(packed_state, snapshot)
    run = connection.run_in_round if small else connection.run
    reply = await run(
        _CHANGES,
        [*keys.on.followed, keys.state, *(keys.vector(kind) for kind in places)],
        keys.uid,
        base,
        snapshot.position.id,
        snapshot.position.chain,
        state,
        snapshot.wanted,
        codec.fold_tag(),
        *changes,
    )
    return _stored(reply)


async def save_full(
    connection: Connection,
    keys: ModelKeys,
    snapshot: Snapshot,
    chunk: int,
    is_wanted: Callable[[], bool] = lambda: True,
    on_progress: OnProgress = no_progress,
) -> Stored:
    """Store a whole snapshot, in chunks of `chunk` names and then all at once.

    `on_progress` reports the weights that are written.

    Raises
    ------
    ModelGone
        The snapshot was no longer wanted between two chunks; what was sent expires.

    """
    both, counts = await stage_vectors(connection, keys, snapshot, chunk, is_wanted, on_progress)
    reply = await connection.run(
        _FULL,
        [*keys.on.followed, keys.state, *both],
        keys.uid,
        snapshot.position.id,
        snapshot.position.chain,
        await asyncio.to_thread(packed_state, snapshot),
        snapshot.wanted,
        codec.fold_tag(),
        *counts,
    )
    return _stored(reply)


async def stage_vectors(
    connection: Connection,
    keys: StateKeys,
    snapshot: Snapshot,
    chunk: int,
    is_wanted: Callable[[], bool] = lambda: True,
    on_progress: OnProgress = no_progress,
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
    done, total = 0, sum(snapshot.sizes.values())
    for kind in VECTORS:  # also those that the state has no more: nothing of them may stay
        vectors = places.get(kind, ())
        temporary = keys.temporary(kind, nonce)
        both += [keys.vector(kind), temporary]
        count = 0
        for tag, values in vectors:
            kept = ((name, value) for name, value in values.items() if value is not None)
            while some := list(itertools.islice(kept, chunk)):
                on_progress(Progress("write", done, total))
                count += len(some)
                done += len(some)
                if not is_wanted():
                    raise ModelGone("The model was deleted while it was saved.")
                flat = [
                    word for name, value in some for word in (encode_field(tag, name), repr(value))
                ]
                await connection.run(_STAGE, [temporary], _PACK.encode(flat), _STAGED_MS)
                await asyncio.sleep(0)
        counts.append(count)
    return both, counts


def packed_state(snapshot: Snapshot | StoredState) -> bytes:
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


def _stored(reply: list[Any]) -> Stored:
    became = reply[0].decode()
    return Stored(became, parse_retention(reply[2], reply[3]) if became == "ok" else None)
