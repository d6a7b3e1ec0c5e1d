"""A model's state as it goes to Redis and comes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from hinged_service.store.followers import Retention
from hinged_service.wire.codec import Mark, Position, StoredState, UpgradePoint

__all__ = ["Loaded", "Saved", "Snapshot", "Stored"]


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
"""The fate of a snapshot: stored; not needed any more (a later one is stored); held back for a
reader or an upgrade; needed in full; a chunk got lost; not the log's own past; the model is gone;
workers of another fold tag fold it."""


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
