"""A model as it is open in this worker, composed of its parts."""

from __future__ import annotations

import asyncio
import itertools
import secrets
import time
from collections.abc import Awaitable, Mapping
from typing import Any, Self

import msgspec

from hinged_service.engine.catch_up import REBUILDS, LogFollower
from hinged_service.engine.delayed_labels import DelayedLabels
from hinged_service.engine.group_commit import RETRY_S, GroupCommit
from hinged_service.engine.replica import Replica
from hinged_service.engine.snapshots import SnapshotWriter, load_replica
from hinged_service.engine.status import ModelStatus, Status
from hinged_service.engine.write_queue import (
    AppendResult,
    PendingWrite,
    SourceAppendResult,
    WriteQueue,
)
from hinged_service.errors import (
    Conflict,
    Expired,
    ModelGone,
    NotFound,
    SetAside,
    Unavailable,
)
from hinged_service.model.spec import IndexEntry
from hinged_service.settings import Settings
from hinged_service.store import checkpoints, followers, log
from hinged_service.store.checkpoints import Checkpoint
from hinged_service.store.connection import Connection
from hinged_service.store.keys import StreamKeys
from hinged_service.store.log_types import Commanded, Span
from hinged_service.store.snapshot import Loaded
from hinged_service.wire.codec import DamagedState, Position
from hinged_service.wire.dedup import mark
from hinged_service.wire.events import Event, Json

__all__ = ["AppendResult", "LiveModel", "SourceAppendResult"]

_OPEN_S = 1.0


class LiveModel:
    """A model of this worker: learn, read, command, save.

    Its parts: `WriteQueue` holds what waits, `GroupCommit` appends it, `LogFollower` moves the
    replica along the log, `SnapshotWriter` saves it, `DelayedLabels` keeps predictions until
    their labels come. All of them share one `ModelStatus`.

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
        self._settings = settings
        self._producer = f"{producer}.{entry.uid}"
        self._sequence = sequence
        self._timeout_s = settings.append_timeout_ms / 1000
        self._staleness_s = settings.max_staleness_ms / 1000
        self._loop = asyncio.get_running_loop()
        self._commands = asyncio.Lock()
        self._reading: asyncio.Future[None] | None = None
        self.delayed = DelayedLabels(connection, self.keys, self._timeout_s)
        self._snapshots = SnapshotWriter(connection, settings, name, self.keys, self._read_again)
        self._follower = LogFollower(
            connection, settings, name, entry, replica, self.status, self._snapshots
        )
        self._queue = WriteQueue(settings, connection.observer)
        self._commit = GroupCommit(
            connection,
            settings,
            self._follower,
            self._queue,
            self._snapshots,
            self.delayed,
            self.status,
            self._producer,
            sequence,
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
        reader = asyncio.ensure_future(model.read())
        await asyncio.wait([reader], timeout=_OPEN_S)
        if reader.done():
            reader.result()
        else:
            reader.add_done_callback(_ignore)
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

    def age_s(self) -> float:
        """Return how old the replica's knowledge of the log is, in seconds."""
        return self._loop.time() - self._follower.fresh_at_s

    def staleness_s(self) -> float | None:
        """Return the replica's age in seconds if it is older than allowed, else `None`."""
        age_s = self._loop.time() - self._follower.fresh_at_s
        return age_s if age_s > self._staleness_s else None

    async def save(self) -> None:
        """Save a snapshot of what is not saved yet, after the one under way."""
        await self._snapshots.save(self.replica)

    def save_if_due(self) -> None:
        """Start saving a snapshot if one is due and none is being saved."""
        self._snapshots.save_if_due(self.replica)

    async def ensure_caught_up(self) -> None:
        """Return once the replica has seen the whole log, or raise.

        Raises
        ------
        Unavailable
            It is far behind; the text tells how far.

        """
        if not self.status.caught_up:
            raise Unavailable(
                "The model is catching up with its stream; "
                f"{await self.progress():.0%} of the log is done.",
                retry_after_s=1,
            )

    def resume_catch_up(self) -> None:
        """Catch up further if Redis was away in between."""
        if not (self.status.caught_up or self._commit.busy):
            self._read_again(self.replica)

    async def progress(self) -> float:
        """Return the share of the stream's log that was learned, 1 once its end was seen."""
        if self.status.caught_up:
            return 1.0
        self.resume_catch_up()
        total = int(await self._connection.hget(self.keys.on.meta, "bytes") or 0)
        return self.replica.log_bytes / total if total else 0.0

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
            await self.ensure_caught_up()
        return await self._traced("append", self._put(events, payload, each), events=len(events))

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
            await self.ensure_caught_up()
        waiting = self._put(events, payload, each=True, span=span)
        fed: SourceAppendResult = await self._traced("append", waiting, events=len(events))
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

    async def read(self) -> None:
        """Bring the replica up to the log's present end.

        Raises
        ------
        ModelGone, SetAside, Unavailable
            The replica stays where it is.

        """
        await self._traced("catch up", self._commit.read())

    async def _traced(self, name: str, done: asyncio.Future[Any], events: int | None = None) -> Any:
        """Wait for something, under a span if there are any."""
        tracing = self.observer.tracing
        if tracing is None:
            return await done
        with tracing.span(name, self.name, events) as span:
            try:
                return await done
            finally:
                span.set_attribute("hinged.position", str(self.replica.position))

    async def refresh_if_stale(self) -> None:
        """Read the log if the replica is older than allowed; if Redis is slow or away, go on.

        Raises
        ------
        ModelGone
            The model was deleted.

        """
        if self.age_s() <= self._staleness_s:
            return
        if not self.status.caught_up:
            await self.ensure_caught_up()
        reader = self._reading
        if reader is None:
            reader = self._reading = asyncio.ensure_future(self.read())
            reader.add_done_callback(self._done_reading)
        wait_s = 0.0 if self.status.now is Status.STALE else self._settings.read_wait_ms / 1000
        await asyncio.wait([reader], timeout=wait_s)
        if self.status.ended:
            raise ModelGone("The model was deleted.")

    def _done_reading(self, reader: asyncio.Future[None]) -> None:
        self._reading = None
        _ignore(reader)

    async def wait_for_position(self, position: Position) -> None:
        """Wait until the replica is at `position` or later.

        Raises
        ------
        Conflict
            The log holds another history than the one that led to `position`.
        Unavailable
            The log did not get there in time.

        """
        deadline_s = self._loop.time() + self._settings.at_least_timeout_ms / 1000
        while self.replica.position.order < position.order:
            if self._loop.time() >= deadline_s:
                raise Unavailable(
                    "The log has not reached that position. After a failover it may never: "
                    "then read without at_least.",
                    retry_after_s=1,
                )
            await self.read()
            await asyncio.sleep(RETRY_S)
        if not await self._follower.is_past(position):
            raise Conflict("The log's history contradicts that position.")

    def _read_again(self, replica: Replica) -> None:
        """Read the log again: a snapshot of `replica` was not of the log's past."""
        if replica is self.replica:
            self._follower.fresh_at_s = -1e9
            self._commit.read().add_done_callback(_ignore)

    async def aclose(self) -> None:
        """Finish what was accepted and save; Redis being away is no obstacle.

        A model that is catching up goes on from its snapshot at the next start.
        """
        await self.delayed.aclose()
        await self._commit.aclose()
        await self.save()

    async def command(self, command: Mapping[str, Any]) -> Position:
        """Append a command for this model to the log and carry it out.

        Parameters
        ----------
        command
            What to do, as `Fold.obey` takes it, or `{"do": "restore", "checkpoint": uid}`.

        Returns
        -------
        The position at which it was carried out.

        Raises
        ------
        NotFound
            There is no such checkpoint.
        ModelGone, Unavailable
            As for `learn`.

        """
        async with self._commands:  # sequences of one producer arrive in their order
            reply = await self._send_command(command)
        if reply.kind == "missing":
            raise NotFound("There is no such checkpoint.")
        if reply.kind == "gone":
            raise ModelGone("The model was deleted.")
        if reply.kind == "other":
            await self.read()  # which tells why, and that this replica is of no use any more
        if reply.position is None:
            raise Unavailable("The command came too late.", retry_after_s=1)
        deadline_s = self._loop.time() + self._timeout_s
        while True:
            try:
                await self.wait_for_position(reply.position)
            except Unavailable as error:  # it is in the log: do not let it be sent again
                if type(error) is not Unavailable or self._loop.time() >= deadline_s:
                    raise
                await asyncio.sleep(RETRY_S)
            else:
                return reply.position

    async def restore(self, checkpoint: Checkpoint) -> Position:
        """Go back to a checkpoint's state by a command in the log.

        Returns
        -------
        The position at which it was carried out.

        Raises
        ------
        Conflict
            The checkpoint cannot be read; nothing was commanded.
        NotFound, ModelGone, Unavailable
            As for `command`.

        """
        try:
            state = await self.read_checkpoint(checkpoint)
        except SetAside as error:  # in the log it would set the model aside for good
            raise Conflict(f"Nothing was changed. {error.detail}") from error
        with self._follower.restoring(checkpoint.uid, state):
            return await self.command({"do": "restore", "checkpoint": checkpoint.uid})

    async def checkpoint(self, name: str | None) -> Checkpoint:
        """Keep the model's present state.

        Parameters
        ----------
        name
            The checkpoint's name for people, if any.

        Raises
        ------
        Conflict
            The stream has a checkpoint of that name, or too many of them.
        ModelGone, Unavailable
            Nothing was kept, or it is not known.

        """
        uid = secrets.token_hex(8)  # one for all attempts: it is made once
        deadline_s = self._loop.time() + self._timeout_s
        for _ in range(REBUILDS):
            replica = self.replica
            made = Checkpoint(
                uid=uid,
                name=name,
                model=self.name,
                spec=self.entry.spec,
                position=str(replica.position),
                created_ms=int(time.time() * 1000),
                events=replica.fold.events,
                mistakes=replica.fold.mistakes,
                judged=replica.fold.judged,
            )
            state, chunk = replica.whole_state(), self._settings.snapshot_chunk
            while True:
                try:
                    kept = await checkpoints.keep(
                        self._connection, self.keys.on, made, self.entry.uid, state, chunk
                    )
                    break
                except Unavailable:
                    if self._loop.time() + RETRY_S >= deadline_s:
                        raise
                    await asyncio.sleep(RETRY_S)
            if kept == "ok":
                return made
            await self.read()  # the log has another past: rebuild, and keep that
        raise Unavailable("The log keeps changing its past.", retry_after_s=1)

    async def checkpoints(self) -> list[Checkpoint]:
        """Return the checkpoints of the stream, oldest first."""
        return await checkpoints.listed(self._connection, self.keys.on)

    async def find_checkpoint(self, name: str) -> Checkpoint:
        """Return a checkpoint of the stream by its name or uid.

        Raises
        ------
        NotFound
            There is none.

        """
        return await checkpoints.find(self._connection, self.keys.on, name)

    async def read_checkpoint(self, checkpoint: Checkpoint) -> Loaded:
        """Return the state of a checkpoint.

        Raises
        ------
        SetAside
            It cannot be used here.

        """
        loaded = await self._follower.read_checkpoint(checkpoint.uid)
        if loaded is None:
            raise NotFound("There is no such checkpoint any more.")
        return loaded

    async def drop_checkpoint(self, name: str) -> str | None:
        """Delete a checkpoint of the stream, or return the uid of a model that still needs it."""
        found = await self.find_checkpoint(name)
        return await checkpoints.drop(self._connection, self.keys.on, found)

    async def _send_command(self, command: Mapping[str, Any]) -> Commanded:
        payload = msgspec.json.encode({"model": self.entry.uid, **command})
        sequence = next(self._sequence)
        deadline_s = self._loop.time() + self._timeout_s
        while True:
            try:
                return await log.command(
                    self._connection,
                    self.keys.on,
                    self.entry.uid,
                    f"{self._producer}.commands",
                    sequence,
                    payload,
                    command.get("checkpoint"),
                )
            except Unavailable:
                if self._loop.time() + RETRY_S >= deadline_s:
                    raise
                await asyncio.sleep(RETRY_S)


def _ignore(future: asyncio.Future[None]) -> None:
    if not future.cancelled():
        future.exception()
