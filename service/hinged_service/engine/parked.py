"""Models beyond those in memory, as bytes, so that they are open again without a read of Redis."""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from hinged_service.engine.replica import Replica
from hinged_service.model.index_entry import IndexEntry
from hinged_service.store.followers import Retention
from hinged_service.store.transport.lane import Seen
from hinged_service.wire.position import Position

__all__ = ["Parked", "ParkedModels"]

_EACH_BYTES = 800
"""Bytes that a parked model takes beside its state."""


class Parked(msgspec.Struct, gc=False):
    """A model that can go on where it stood.

    Attributes
    ----------
    entry
        Its index entry.
    position, stored
        As of its replica.
    seen
        Up to when its position was known to be the end of the log: while the server would tell of
        a change, it still is.
    kept
        Part of the log to keep behind its snapshots.
    unsaved_since_s
        Age of its oldest change that no snapshot holds, as a time of the loop's clock.
    state
        What `Replica.packed` gave.

    """

    entry: IndexEntry
    position: Position
    stored: str
    seen: Seen
    kept: Retention
    unsaved_since_s: float | None
    state: bytes

    def is_state_of(self, replica: Replica) -> bool:
        """Tell whether the replica, made of this state, has not changed since."""
        return self.position is replica.position and self.stored == replica.stored


class ParkedModels:
    """Parked models by name, those parked longest ago forgotten first.

    A model that is open again stays here: if it has not changed, it need not be packed anew.

    Parameters
    ----------
    most_bytes
        Most bytes that they take.

    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._models: OrderedDict[str, Parked] = OrderedDict()

    def get(self, name: str) -> Parked | None:
        """Return a model; as it was when it was parked, if it is open now."""
        return self._models.get(name)

    def put(self, name: str, model: Parked) -> None:
        """Keep a model, in place of the one of that name."""
        self.drop(name)
        self._models[name] = model
        self._bytes += _EACH_BYTES + len(model.state)
        while self._bytes > self._most_bytes:
            self.drop(next(iter(self._models)))

    def drop(self, name: str) -> None:
        """Forget a model, if it is here."""
        dropped = self._models.pop(name, None)
        if dropped is not None:
            self._bytes -= _EACH_BYTES + len(dropped.state)
