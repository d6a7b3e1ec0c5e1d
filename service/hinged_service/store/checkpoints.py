"""Checkpoints in Redis: kept, listed, read, dropped. One is never changed."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Literal

from pydantic import Field, ValidationError

from hinged_service.errors import Conflict, ModelGone, NotFound, Unavailable
from hinged_service.model.spec import ModelSpec
from hinged_service.model.start import Name
from hinged_service.store.connection import Connection
from hinged_service.store.keys import StreamKeys
from hinged_service.store.scripts import load
from hinged_service.store.snapshot import Loaded, Snapshot
from hinged_service.store.snapshot_reader import load_state
from hinged_service.store.snapshot_writer import packed_state, stage_vectors
from hinged_service.wire.codec import DamagedState
from hinged_service.wire.position import Position
from hinged_service.wire.strict import StrictModel

__all__ = ["Checkpoint", "drop", "find", "keep", "listed", "read"]

_CHECKPOINT = load("checkpoint")
_DROP = load("drop_checkpoint")


class Checkpoint(StrictModel):
    """A model's state at one moment, kept."""

    uid: str
    name: Name | None = Field(None, description="For people; unique on the stream.")
    model: Name = Field(description="The model that it is of, by the name it had.")
    spec: ModelSpec = Field(description="That model's spec.")
    position: str | None = Field(
        None, description="Its place in the stream's log; none if it was imported."
    )
    created_ms: int = Field(description="When, in milliseconds since 1970.")
    events: int = Field(description="Events of the model until then.")
    mistakes: int = Field(description="Mistakes of the model until then.")
    judged: int | None = Field(
        None,
        description="Events that count in accuracy, 1 - mistakes / judged; null of an old one.",
    )


async def keep(
    connection: Connection,
    keys: StreamKeys,
    checkpoint: Checkpoint,
    model_uid: str,
    snapshot: Snapshot,
    chunk: int,
) -> Literal["ok", "lost"]:
    """Store a whole state as a checkpoint; `lost` if the log does not hold its position.

    Parameters
    ----------
    checkpoint
        Its description.
    model_uid
        The model's uid; empty for an imported one.
    snapshot
        The state.
    chunk
        Names to send in one command.

    Raises
    ------
    Conflict
        The name is taken, or there are too many.
    ModelGone, Unavailable
        The model was deleted; Redis does not answer.

    """
    own = keys.checkpoint(checkpoint.uid)
    both, counts = await stage_vectors(connection, own, snapshot, chunk)
    place = (snapshot.position.id, snapshot.position.chain) if model_uid else ("", "")
    reply = await connection.run(
        _CHECKPOINT,
        [*keys.followed, keys.checkpoints, own.state, *both],
        checkpoint.uid,
        checkpoint.name or "",
        json.dumps(checkpoint.model_dump(mode="json")),
        model_uid,
        *place,
        await asyncio.to_thread(packed_state, snapshot),
        *counts,
    )
    match reply[0]:
        case b"ok":
            return "ok"
        case b"lost":
            return "lost"
        case b"gone":
            raise ModelGone("The model was deleted.")
        case b"taken":
            raise Conflict(f"The stream has a checkpoint {checkpoint.name!r} already.")
        case b"full":
            raise Conflict("The stream has 1000 checkpoints; delete some first.")
        case _:
            raise Unavailable("A part of the checkpoint got lost on its way.", retry_after_s=1)


async def listed(connection: Connection, keys: StreamKeys) -> list[Checkpoint]:
    """Return the checkpoints of a stream, oldest first."""
    found = []
    for field, text in (await connection.hgetall(keys.checkpoints)).items():
        if not field.startswith("name:"):
            found.append(_checkpoint(text))
    return sorted(found, key=lambda c: (c.created_ms, c.uid))


async def find(connection: Connection, keys: StreamKeys, name: str) -> Checkpoint:
    """Return the checkpoint of a name or uid, or raise `NotFound`."""
    uid = await connection.hget(keys.checkpoints, f"name:{name}") or name
    text = None if uid.startswith("name:") else await connection.hget(keys.checkpoints, uid)
    if text is None:
        raise NotFound(f"The stream {keys.stream!r} has no checkpoint {name!r}.")
    return _checkpoint(text)


def _checkpoint(text: str) -> Checkpoint:
    try:
        return Checkpoint.model_validate_json(text)
    except ValidationError as error:
        raise DamagedState("the description of a checkpoint is damaged") from error


async def read(connection: Connection, keys: StreamKeys, uid: str, chunk: int) -> Loaded:
    """Return the state of a checkpoint.

    Raises
    ------
    DamagedState, OtherVersion, NotFound
        It cannot be used here; there is none.

    """
    state, vectors = await load_state(connection, keys.checkpoint(uid), chunk)
    if state is None:
        raise NotFound(f"The stream {keys.stream!r} has no checkpoint {uid!r}.")
    return Loaded(state.position, state, vectors)


async def drop(connection: Connection, keys: StreamKeys, checkpoint: Checkpoint) -> str | None:
    """Remove a checkpoint, unless a model still needs it: then return the model's uid."""
    reply: Any = await connection.run(
        _DROP,
        [keys.meta, keys.followers, keys.checkpoints, *keys.checkpoint(checkpoint.uid).all()],
        checkpoint.uid,
        checkpoint.name or "",
    )
    return None if reply[0] == b"ok" else reply[1].decode()


def place(checkpoint: Checkpoint) -> Position | None:
    """Return the position of a checkpoint in its stream's log."""
    return None if checkpoint.position is None else Position.parse(checkpoint.position)
