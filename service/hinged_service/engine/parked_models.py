"""Models beyond those that are open, as their replicas, to go on without a read of Redis."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING
from weakref import ref

import msgspec

from hinged_service.engine.replica import Replica
from hinged_service.engine.snapshots import SnapshotWriter
from hinged_service.model.index_entry import IndexEntry
from hinged_service.store.followers import Retention
from hinged_service.store.transport.shared_connection import Seen

if TYPE_CHECKING:
    from hinged_service.engine.live_model import LiveModel

__all__ = ["Parked", "ParkedModels"]


class Parked(msgspec.Struct, gc=False):
    """A model that can go on where it stood.

    Attributes
    ----------
    entry
        Its index entry.
    replica
        Its replica, which no other model may have.
    seen
        Up to when its position was surely the end of the log: while the server would report a
        change, it still is.
    kept
        Part of the log to keep behind its snapshots.
    bytes
        Bytes that it takes at most.
    model, writer
        The model that was parked, and what saves it: alive while a call or a task still has them.

    """

    entry: IndexEntry
    replica: Replica
    seen: Seen
    kept: Retention
    bytes: int
    model: ref[LiveModel]
    writer: ref[SnapshotWriter]


class ParkedModels:
    """Parked models by name, those parked longest ago forgotten first.

    Parameters
    ----------
    most_bytes
        Most bytes that they take.

    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._models: OrderedDict[str, Parked] = OrderedDict()

    def __contains__(self, name: str) -> bool:
        return name in self._models

    def put(self, name: str, model: Parked) -> None:
        """Keep a model, in place of the one of that name."""
        self.take(name)
        self._models[name] = model
        self._bytes += model.bytes
        while self._bytes > self._most_bytes:
            self.take(next(iter(self._models)))

    def take(self, name: str) -> Parked | None:
        """Remove and return a model, `None` if it is not here."""
        taken = self._models.pop(name, None)
        if taken is not None:
            self._bytes -= taken.bytes
        return taken
