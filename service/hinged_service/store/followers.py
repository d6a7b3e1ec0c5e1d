"""The followers of a stream: its models, the positions of their snapshots, its retention."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from hinged_service.errors import Conflict, ModelGone
from hinged_service.store import replies
from hinged_service.store.connection import Connection
from hinged_service.store.keys import ModelKeys, StreamKeys
from hinged_service.store.scripts import load
from hinged_service.wire import codec
from hinged_service.wire.codec import DamagedState
from hinged_service.wire.position import Position, UpgradePoint

__all__ = [
    "DelayedLabelRules",
    "Overview",
    "Retention",
    "StreamRules",
    "delete",
    "end_hold",
    "hold_snapshot",
    "lag_bytes",
    "note_entry",
    "noted_entries",
    "overviews",
    "parse_position",
    "parse_retention",
    "register",
    "release",
    "retention",
    "snapshot_position",
    "snapshot_positions",
    "upgrade_point",
]

_REGISTER = load("register")
_DELETE = load("delete_model")
_HOLD = load("hold_snapshot")
_RELEASE = load("release_follower")
_NOTE = load("note_entry")
_NOTED = "entry:"


class Retention(NamedTuple):
    """The events and bytes of log that a stream keeps behind the snapshots; `None`: no rule."""

    events: int | None
    bytes: int | None


class DelayedLabelRules(NamedTuple):
    """Rules by which a stream's predictions wait for their labels: the least time, the most.

    The default label, as JSON, and its digest are empty for none. Labels may come `early`, before
    their prediction. The rules of a model without any are not `declared`.
    """

    wait_ms: int
    most: int
    default: str
    digest: str
    early: bool
    declared: bool


_UNDECLARED = DelayedLabelRules(86_400_000, 100_000, "", "", early=False, declared=False)


class StreamRules(NamedTuple):
    """Rules that a stream takes over from a model.

    They are the dedup window of a new stream, the least retention, and the rules of delayed
    labels, if the model has any.
    """

    seen_ms: int
    seen_ids: int
    kept: Retention = Retention(None, None)
    waiting: DelayedLabelRules | None = None


class Overview(NamedTuple):
    """A stream as the sweeps see it.

    They are the position of each follower's snapshot by its uid, its name and index entry as the
    stream notes them, and whether predictions were ever kept for their labels.
    """

    positions: dict[str, Position]
    notes: dict[str, tuple[str, str]]
    predicts: bool


async def register(
    connection: Connection,
    keys: ModelKeys,
    rules: StreamRules,
    start: Position | Literal["now", "log"] = "now",
    checkpoint: str | None = None,
) -> Position:
    """Make a model a follower of its stream; return its snapshot's position.

    Parameters
    ----------
    rules
        Rules for the stream.
    start
        The log's end, the oldest entry, or a position.
    checkpoint
        The uid of the checkpoint that it starts with.

    Raises
    ------
    Conflict
        The log does not hold the position, there is no such checkpoint, or predictions
        wait under other rules already.

    """
    on = keys.on
    where = (start.id, start.chain) if isinstance(start, Position) else (start, "")
    wait = rules.waiting or _UNDECLARED
    reply = await connection.run(
        _REGISTER,
        [*on.followed, *([on.checkpoint(checkpoint).state] if checkpoint else [])],
        keys.uid,
        secrets.token_hex(16),
        *(rules.seen_ms, rules.seen_ids),
        *where,
        checkpoint or "",
        *("" if n is None else n for n in rules.kept),
        *(wait.wait_ms, wait.most, wait.default, wait.digest, int(wait.early), int(wait.declared)),
        codec.fold_tag(),
    )
    if reply[0] == b"other":
        raise Conflict(
            "Predictions wait on that stream for their labels under other rules. Leave out "
            "late_labels, or use those rules."
        )
    if reply[0] == b"lost":
        raise Conflict(
            "The log does not reach back to that checkpoint any more: it can be restored into a "
            "model, but no model can continue from it."
        )
    if reply[0] == b"missing":
        raise Conflict("That checkpoint was deleted. Choose another one.")
    return replies.position(reply[1], reply[2])


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


async def note_entry(connection: Connection, keys: ModelKeys, name: str, text: str) -> None:
    """Note a model's name and index entry on its stream, if it follows that."""
    await connection.run(_NOTE, [keys.on.meta, keys.on.followers], keys.uid, f"{name} {text}")


async def noted_entries(connection: Connection, keys: StreamKeys) -> dict[str, tuple[str, str]]:
    """Return the notes of a stream about its models: uid to name and index entry."""
    return _notes_in(await connection.hgetall(keys.meta))


async def snapshot_positions(connection: Connection, keys: StreamKeys) -> dict[str, Position]:
    """Return the followers of a stream: model uid to the position of its snapshot."""
    return _positions_in(await connection.hgetall(keys.followers))


async def overviews(
    connection: Connection, streams: Sequence[StreamKeys]
) -> list[Overview | DamagedState]:
    """Return an overview of each stream, all in one round trip; the error of a damaged one."""
    keys = [key for stream in streams for key in (stream.followers, stream.meta)]
    found = iter(await connection.hgetall_each(keys))
    overviews: list[Overview | DamagedState] = []
    for following, meta in zip(found, found, strict=True):
        if isinstance(following, DamagedState):
            overviews.append(following)
        elif isinstance(meta, DamagedState):
            overviews.append(meta)
        else:
            predicts = "predicted" in meta
            overviews.append(Overview(_positions_in(following), _notes_in(meta), predicts))
    return overviews


async def snapshot_position(connection: Connection, keys: ModelKeys) -> Position:
    """Return the position of a model's snapshot; `ModelGone` if it does not follow the stream."""
    found = await connection.hget(keys.on.followers, keys.uid)
    if found is None:
        raise ModelGone
    return parse_position(found)


async def retention(connection: Connection, keys: StreamKeys) -> Retention:
    """Return the retention of a stream."""
    meta = await connection.hgetall(keys.meta)
    return parse_retention(meta.get("keep_events"), meta.get("keep_bytes"))


async def lag_bytes(connection: Connection, keys: StreamKeys) -> dict[str, int]:
    """Return per follower how many payload bytes of log its snapshot is behind."""
    total = int(await connection.hget(keys.meta, "bytes") or 0)
    lags: dict[str, int] = {}
    for uid, position in (await snapshot_positions(connection, keys)).items():
        entry = await connection.entry(keys.log, position.id)
        lags[uid] = total - int(entry[b"bytes"]) if entry is not None else total
    return lags


async def release(connection: Connection, keys: StreamKeys, uid: str) -> None:
    """Let the log be trimmed past a follower that cannot advance, until it does."""
    await connection.run(_RELEASE, [keys.meta, keys.followers], uid)


async def hold_snapshot(connection: Connection, keys: ModelKeys, hold_ms: int) -> None:
    """Keep a model's snapshot as it is for a while, if the connection leaves notes."""
    if connection.notes:
        await connection.run(_HOLD, [keys.on.meta, keys.on.followers], keys.uid, hold_ms)


async def end_hold(connection: Connection, keys: ModelKeys) -> None:
    """Let a model's snapshot move again; its readers see that and hold it again."""
    if connection.notes:
        await connection.hdel(keys.on.meta, f"hold:{keys.uid}")


async def upgrade_point(connection: Connection, keys: ModelKeys) -> UpgradePoint | None:
    """Return a model's last upgrade, `None` if there was none."""
    found = await connection.hget(keys.on.meta, f"barrier:{keys.uid}")
    return None if found is None else UpgradePoint(*found.split(" ", 1))


def parse_position(value: str) -> Position:
    """Return the position of a snapshot from its field in the hash of followers."""
    try:
        return Position.parse(value.replace(" ", "."))
    except ValueError:  # damaged: before all entries, as the scripts read it
        return Position("0-0", "0" * 40)


def parse_retention(events: str | bytes | None, size: str | bytes | None) -> Retention:
    """Return the retention from its text in Redis; an empty one means none."""
    return Retention(int(events) if events else None, int(size) if size else None)


def _positions_in(found: Mapping[str, str]) -> dict[str, Position]:
    return {uid: parse_position(value) for uid, value in found.items()}


def _notes_in(meta: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    notes: dict[str, tuple[str, str]] = {}
    for field, value in meta.items():
        if field.startswith(_NOTED):
            name, _, text = value.partition(" ")
            notes[field.removeprefix(_NOTED)] = name, text
    return notes
