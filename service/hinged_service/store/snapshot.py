"""Snapshots of a model: as sent to Redis, and as read from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from hinged_service.store.followers import Retention
from hinged_service.wire.codec import StoredState
from hinged_service.wire.position import Mark, Position, UpgradePoint

__all__ = ["Loaded", "Saved", "Snapshot", "Stored"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A model's state at a position, to be stored.

    Attributes
    ----------
    position
        Its position in the log.
    scalars
        All of the state but the vectors.
    vectors
        Per vector the names to write and their values, `None` for a name to remove.
    sizes
        Per vector the number of all its names.
    marks
        Positions in the log with the bytes and events taken until then.
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
"""The fate of a snapshot: stored; not needed any more (a later one is stored); held back for a
reader or an upgrade; needed in full; a chunk got lost; not the log's own past; the model is gone;
workers of another fold tag fold it."""


class Stored(NamedTuple):
    """The answer to a snapshot: its fate, and the stream's retention if it was stored."""

    became: Saved
    kept: Retention | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """A stored snapshot.

    Attributes
    ----------
    position
        Its position in the log.
    state
        The decoded state hash; `None` for a model that was never saved.
    vectors
        The values of each vector.
    mark
        Bytes and events of the log up to there; `None` if the log does not hold the entry.
    barrier
        The model's last upgrade, if there was one.
    fold
        The fold tag of the workers that go on from there; empty if unknown.

    """

    position: Position
    state: StoredState | None
    vectors: dict[str, dict[Any, float]]
    mark: Mark | None = None
    barrier: UpgradePoint | None = None
    fold: str = ""
