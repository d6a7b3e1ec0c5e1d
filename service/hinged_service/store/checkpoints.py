"""Checkpoints in Redis: saved, listed, read, deleted; never changed."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
from typing import Any, Literal, NamedTuple

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
from hinged_service.wire.progress import OnProgress, no_progress
from hinged_service.wire.strict_model import StrictModel

__all__ = [
    "Checkpoint",
    "Staged",
    "damaged",
    "drop",
    "enter",
    "find",
    "keep",
    "listed",
    "read",
    "stage",
]

_CHECKPOINT = load("checkpoint")
_DROP = load("drop_checkpoint")


class Checkpoint(StrictModel):
    """A stored state of a model at one moment."""

    uid: str
    name: Name | None = Field(None, description="For people; unique on the stream.")
    model: Name = Field(description="The name that its model had.")
    spec: ModelSpec = Field(description="That model's spec.")
    position: str | None = Field(
        None, description="Its place in the stream's log; none if it was imported."
    )
    created_ms: int = Field(description="When, in milliseconds since 1970.")
    events: int = Field(description="Events of the model until then.")
    mistakes: int = Field(description="Mistakes of the model until then.")
    judged: int | None = Field(
        None,
        description="Events that count in accuracy, 1 - mistakes / judged; null in an old one.",
    )


class Staged(NamedTuple):
    """A state on its way to a checkpoint: sent for the most part, but not kept.

    `own` are its lasting and temporary keys and `counts` the names sent to these; `place` is that
    in the log, empty for an imported state.
    """

    own: list[str]
    counts: list[int]
    packed: bytes
    place: tuple[str, str]


async def keep(
    connection: Connection,
    keys: StreamKeys,
    checkpoint: Checkpoint,
    model_uid: str,
    snapshot: Snapshot,
    chunk: int,
    on_progress: OnProgress = no_progress,
) -> Literal["ok", "lost"]:
    """Store a whole state as a checkpoint, in `stage` and `enter`, which have these parameters."""
    staged = await stage(connection, keys, checkpoint, snapshot, chunk, on_progress)
    return await enter(connection, keys, checkpoint, model_uid, staged)


async def stage(
    connection: Connection,
    keys: StreamKeys,
    checkpoint: Checkpoint,
    snapshot: Snapshot,
    chunk: int,
    on_progress: OnProgress = no_progress,
) -> Staged:
    """Send the large parts of a state; they expire unless they are entered soon.

    Parameters
    ----------
    checkpoint
        The description of the checkpoint.
    snapshot
        The state.
    chunk
        Names to send in one command.
    on_progress
        Called with the weights that are sent.

    """
    own = keys.checkpoint(checkpoint.uid)
    both, counts = await stage_vectors(connection, own, snapshot, chunk, on_progress=on_progress)
    place = (snapshot.position.id, snapshot.position.chain)
    packed = await asyncio.to_thread(packed_state, snapshot)
    return Staged([own.state, *both], counts, packed, place)


async def enter(
    connection: Connection,
    keys: StreamKeys,
    checkpoint: Checkpoint,
    model_uid: str,
    staged: Staged,
) -> Literal["ok", "lost"]:
    """Keep a staged state as a checkpoint; `lost` if the log does not hold its position.

    `model_uid` is empty for an imported state.

    Raises
    ------
    Conflict
        The name is taken, or there are too many.
    ModelGone, Unavailable
        The model was deleted; Redis does not answer.

    """
    reply = await connection.run(
        _CHECKPOINT,
        [*keys.followed, keys.checkpoints, *staged.own],
        checkpoint.uid,
        checkpoint.name or "",
        json.dumps(checkpoint.model_dump(mode="json")),
        model_uid,
        *(staged.place if model_uid else ("", "")),
        staged.packed,
        *staged.counts,
    )
    match reply[0]:
        case b"ok":
            return "ok"
        case b"lost":
            return "lost"
        case b"gone":
            raise ModelGone
        case b"taken":
            raise Conflict(
                f"The stream has a checkpoint {checkpoint.name!r} already. Choose another name."
            )
        case b"full":
            raise Conflict("The stream has 1000 checkpoints; delete some first.")
        case _:
            raise Unavailable("A part of the checkpoint was lost. Try again.", retry_after_s=1)


async def listed(connection: Connection, keys: StreamKeys) -> list[Checkpoint]:
    """Return the checkpoints of a stream, oldest first, without those of `damaged`."""
    found = []
    for field, text in (await connection.hgetall(keys.checkpoints)).items():
        with contextlib.suppress(DamagedState):
            if not field.startswith("name:"):
                found.append(_checkpoint(text))
    return sorted(found, key=lambda c: (c.created_ms, c.uid))


async def damaged(connection: Connection, keys: StreamKeys) -> list[str]:
    """Return the uids of the checkpoints whose description cannot be read."""
    found = []
    for field, text in (await connection.hgetall(keys.checkpoints)).items():
        try:
            if not field.startswith("name:"):
                _checkpoint(text)
        except DamagedState:
            found.append(field)
    return found


async def find(connection: Connection, keys: StreamKeys, name: str) -> Checkpoint:
    """Return the checkpoint of a name or uid, or raise `NotFound`."""
    uid = await connection.hget(keys.checkpoints, f"name:{name}") or name
    stored = None if uid.startswith("name:") else await connection.hget_bytes(keys.checkpoints, uid)
    if stored is None:
        raise NotFound(f"The stream {keys.stream!r} has no checkpoint {name!r}.")
    return _checkpoint(stored.decode(errors="backslashreplace"))


@functools.lru_cache(1_000)  # one is never changed, and to read many takes long
def _checkpoint(text: str) -> Checkpoint:
    try:
        return Checkpoint.model_validate_json(text)
    except ValidationError as error:
        raise DamagedState(
            "the description of a checkpoint is damaged: DELETE removes the checkpoint by its uid"
        ) from error


async def read(
    connection: Connection,
    keys: StreamKeys,
    uid: str,
    chunk: int,
    on_progress: OnProgress = no_progress,
) -> Loaded:
    """Return the state of a checkpoint; `on_progress` reports the weights that are read.

    Raises
    ------
    DamagedState, OtherVersion, NotFound
        It cannot be used here; there is none.

    """
    own = keys.checkpoint(uid)
    try:
        state, vectors = await load_state(connection, own, chunk, on_progress=on_progress)
    except DamagedState:
        if await connection.hlen(own.state):
            raise
        state = None  # it was deleted while it was read
    if state is None:
        raise NotFound(f"The stream {keys.stream!r} has no checkpoint {uid!r}.")
    return Loaded(state.position, state, vectors)


async def drop(
    connection: Connection, keys: StreamKeys, uid: str, name: str | None = None
) -> str | None:
    """Remove a checkpoint, unless a model still needs it: then return the model's uid.

    Without its name it is looked for, as of one whose description cannot be read.
    """
    if name is None:
        stored = await connection.hgetall(keys.checkpoints)
        fields = [field for field, of in stored.items() if of == uid and field.startswith("name:")]
        name = "".join(fields).removeprefix("name:")
    reply: Any = await connection.run(
        _DROP,
        [keys.meta, keys.followers, keys.checkpoints, *keys.checkpoint(uid).all()],
        uid,
        name,
    )
    return None if reply[0] == b"ok" else reply[1].decode()


def place(checkpoint: Checkpoint) -> Position | None:
    """Return the position of a checkpoint in its stream's log."""
    return None if checkpoint.position is None else Position.parse(checkpoint.position)
