"""A model as it is open in this worker, composed of its parts."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable
from typing import Any, Self

from hinged_service.engine.catch_up import LogFollower
from hinged_service.engine.commands import CommandLog
from hinged_service.engine.delayed_labels import DelayedLabels
from hinged_service.engine.freshness import Freshness
from hinged_service.engine.group_commit import GroupCommit
from hinged_service.engine.model_checkpoints import ModelCheckpoints
from hinged_service.engine.replica import Replica
from hinged_service.engine.snapshots import SnapshotWriter, load_replica
from hinged_service.engine.status import ModelStatus, Status
from hinged_service.engine.write_queue import (
    AppendResult,
    PendingWrite,
    SourceAppendResult,
    WriteQueue,
)
from hinged_service.errors import Conflict, Expired, NotFound, SetAside
from hinged_service.model.spec import IndexEntry
from hinged_service.settings import Settings
from hinged_service.store import followers, log
from hinged_service.store.connection import Connection
from hinged_service.store.keys import StreamKeys
from hinged_service.store.log_types import Span
from hinged_service.wire.codec import DamagedState
from hinged_service.wire.dedup import mark
from hinged_service.wire.events import Event, Json

__all__ = ["AppendResult", "LiveModel", "SourceAppendResult"]

_OPEN_S = 1.0


class LiveModel:
    """A model of this worker: learn, predict, save.

    Its parts: `WriteQueue` holds what waits, `GroupCommit` appends it, `LogFollower` moves the
    replica along the log, `SnapshotWriter` saves it, `DelayedLabels` keeps predictions until
    their labels come, `Freshness` waits for what the log has, `CommandLog` appends commands,
    `ModelCheckpoints` keeps states. All of them share one `ModelStatus`.

    Parameters
    ----------
    connection, settings
        The worker's.
    name, entry
        The model's name and index entry; registered, not deleting.
    replica
        The model's state as loaded.
    producer
        A name for this worker that no other has.
    sequence
        The worker's counter of batches.

    Attributes
    ----------
    status
        Whether it is catching up, live, stale, or of no further use.
    delayed
        Its delayed labels.
    freshness
        How far it is behind its log; reads the log.
    checkpoints
        The checkpoints of its stream.
    commands
        Its commands.

    """

    def __init__(
        self,
        connection: Connection,
        settings: Settings,
        name: str,
        entry: IndexEntry,
        replica: Replica,
        producer: str,
        sequence: itertools.count[int],
    ) -> None:
        self.name = name
        self.entry = entry
        self.keys = StreamKeys(entry.stream).model(entry.uid)
        self.observer = connection.observer
        self.status = ModelStatus()
        self.status.change(Status.CATCHING_UP)
        self._connection = connection
        self._timeout_s = settings.append_timeout_ms / 1000
        self._loop = asyncio.get_running_loop()
        self.delayed = DelayedLabels(connection, self.keys, self._timeout_s)
        self._snapshots = SnapshotWriter(
            connection, settings, name, self.keys, lambda lost: self.freshness.read_again(lost)
        )
        self._follower = LogFollower(
            connection, settings, name, entry, replica, self.status, self._snapshots
        )
        producer = f"{producer}.{entry.uid}"
        self._queue = WriteQueue(settings, connection.observer)
        self._commit = GroupCommit(
            settings,
            self._follower,
            self._queue,
            self._snapshots,
            self.delayed,
            self.status,
            producer,
            sequence,
        )
        self.freshness = Freshness(connection, settings, self._follower, self._commit, self.status)
        self.checkpoints = ModelCheckpoints(connection, settings, self._follower, self.freshness)
        self.commands = CommandLog(
            settings, self._follower, self.freshness, self.checkpoints, producer, sequence
        )

    @classmethod
    async def open(
        cls,
        connection: Connection,
        settings: Settings,
        name: str,
        entry: IndexEntry,
        producer: str,
        sequence: itertools.count[int],
    ) -> Self:
        """Load a model's snapshot and catch up with its log, or begin to if that takes long.

        Raises
        ------
        ModelGone, SetAside, Unavailable
            If there is nothing to load, it cannot be used here, or Redis does
            not answer.

        """
        replica = await load_replica(connection, settings, entry)
        model = cls(connection, settings, name, entry, replica, producer, sequence)
        try:
            model._snapshots.keep(await followers.retention(connection, model.keys.on))
        except DamagedState as error:
            raise SetAside(f"The stream is damaged: {error}.", retry_after_s=60) from error
        await model.freshness.read_for(_OPEN_S)
        return model

    @property
    def replica(self) -> Replica:
        """The current replica; another one after a rebuild."""
        return self._follower.replica

    @property
    def idle(self) -> bool:
        """Whether nothing is waiting or under way."""
        return not (self._commit.busy or self._snapshots.busy)

    @property
    def queued(self) -> int:
        """How many events wait to be appended."""
        return self._queue.events

    async def save(self) -> None:
        """Save a snapshot of what is not saved yet, after the one under way."""
        await self._snapshots.save(self.replica)

    def save_if_due(self) -> None:
        """Start saving a snapshot if one is due and none is being saved."""
        self._snapshots.save_if_due(self.replica)

    def learn(self, events: list[Event], payload: Json) -> Awaitable[AppendResult]:
        """Append the events to the log; to be awaited for what they did, `Busy` is told at once.

        Parameters
        ----------
        events
            At least one validated event.
        payload
            Their JSON as accepted, joined by commas.

        Raises
        ------
        Busy
            The queue is full; nothing was taken.
        Conflict
            An event id came before with other content; nothing was taken.
        ModelGone
            The model was deleted; nothing was taken.
        Unavailable
            Redis did not answer in time. The events may have been taken; the
            same ones with ids may be sent again.

        """
        if self.status.caught_up and self.observer.tracing is None:
            return self._put(events, payload, each=False)
        return self._queued(events, payload, each=False)

    async def learn_each(self, events: list[Event], payload: Json) -> SourceAppendResult:
        """Append the events, each by itself: one that is refused does not keep out the others.

        Parameters, and errors but for `Conflict`, as for `learn`.

        Returns
        -------
        What became of them; the offset is empty.

        """
        try:  # as one caller, for the script's sake: refusals are rare
            return SourceAppendResult("", await self._queued(events, payload, each=False))
        except (Conflict, NotFound, Expired):
            fed: SourceAppendResult = await self._queued(events, payload, each=True)
            return fed

    async def _queued(self, events: list[Event], payload: Json, each: bool) -> Any:
        if not self.status.caught_up:
            await self.freshness.ensure_caught_up()
        return await self._follower.traced("append", self._put(events, payload, each), len(events))

    def _put(
        self, events: list[Event], payload: Json, each: bool, span: Span | None = None
    ) -> asyncio.Future[Any]:
        """Let events wait for the next batch; return what becomes their answer."""
        loop = self._loop
        answer: asyncio.Future[Any] = loop.create_future()
        marks = []
        for i, event in enumerate(events):
            if event.id is not None:
                marks.append(mark(i, event))
        self._queue.put(
            PendingWrite(events, payload, marks, loop.time() + self._timeout_s, answer, span, each)
        )
        if marks and not self.delayed.in_use:
            self.delayed.in_use = any(kind for _, kind, _, _ in marks)
        self._commit.wake()
        return answer

    async def feed(self, events: list[Event], payload: Json, span: Span) -> SourceAppendResult:
        """Append what a source outside brings, each event by itself, and move its offset.

        Parameters
        ----------
        events
            Validated events; may be empty, then only the offset moves.
        payload
            Their JSON, joined by commas.
        span
            What of the source they are.

        Raises
        ------
        ModelGone, SetAside, Unavailable
            As for `learn`. The same span may be fed again: it is taken once.

        """
        if not self.status.caught_up:
            await self.freshness.ensure_caught_up()
        waiting = self._put(events, payload, each=True, span=span)
        fed: SourceAppendResult = await self._follower.traced("append", waiting, events=len(events))
        return fed

    async def offset(self, source: str) -> str:
        """Return where a source stands, empty if nothing of it was ever taken."""
        return await log.offset(self._connection, self.keys.on, source)

    async def letters(self, source: str) -> int:
        """Return how many dead letters of a source are kept."""
        return await log.letters(self._connection, self.keys.on, source)

    async def sources(self) -> int:
        """Return how many sources the stream keeps the offset of."""
        return await log.sources(self._connection, self.keys.on)

    async def aclose(self) -> None:
        """Finish what was accepted and save; Redis being away is no obstacle.

        A model that is catching up goes on from its snapshot at the next start.
        """
        await self.delayed.aclose()
        await self._commit.aclose()
        await self.save()
