"""A model as it is open in this worker, composed of its parts.

The file is long: all that may be asked of an open model, with its errors.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
from collections.abc import Callable, Generator, Sequence
from typing import Any, ClassVar, Self, TypeVar
from weakref import ref

import hinged
from hinged_service.engine.catch_up import LogFollower
from hinged_service.engine.commands import CommandLog
from hinged_service.engine.damage import damage_of, set_aside_for
from hinged_service.engine.delayed_labels import DelayedLabels
from hinged_service.engine.freshness import Freshness
from hinged_service.engine.group_commit import GroupCommit
from hinged_service.engine.long_work import at_once, in_parts, result_in_parts
from hinged_service.engine.model_checkpoints import ModelCheckpoints
from hinged_service.engine.parked_models import Parked
from hinged_service.engine.predictions import Answering, Predictions, checking
from hinged_service.engine.prior_answers import PriorAnswers
from hinged_service.engine.refusals import COUNTED, refused_by_model
from hinged_service.engine.replica import Replica, Watcher
from hinged_service.engine.snapshots import SnapshotWriter, load_replica, small_replica
from hinged_service.engine.state_access import CALL_WAIT_S, TAKEN_STATE
from hinged_service.engine.status import ModelStatus, Status
from hinged_service.engine.write_queue import (
    AppendResult,
    SourceAppendResult,
    WriteQueue,
)
from hinged_service.errors import Conflict, Expired, NotFound, Unavailable
from hinged_service.model.index_entry import IndexEntry
from hinged_service.model.results import Rejection
from hinged_service.model.spec import ModelSpec
from hinged_service.model.state import ModelState
from hinged_service.settings import Settings
from hinged_service.store import followers, log, offsets
from hinged_service.store.connection import Connection
from hinged_service.store.door_counts import DoorCounts, door_counts
from hinged_service.store.keys import StreamKeys
from hinged_service.store.log_types import Span
from hinged_service.store.snapshot_reader import Opened
from hinged_service.tasks import Answer
from hinged_service.wire.codec import DamagedState
from hinged_service.wire.events import Event, Json, Question
from hinged_service.wire.position import Position, position_text
from hinged_service.wire.proba import USUAL
from hinged_service.wire.progress import OnProgress, no_progress

__all__ = ["AppendResult", "LiveModel", "Predictions", "SourceAppendResult", "checked"]

T = TypeVar("T")

_OPEN_S = 1.0


class LiveModel:
    """A model of this worker: learn, predict, save.

    Its parts: `WriteQueue` holds what waits, `GroupCommit` appends it, `LogFollower` moves the
    replica along the log, `SnapshotWriter` saves it, `DelayedLabels` keeps predictions until
    their labels come, `Freshness` waits for what the log has, `CommandLog` appends commands,
    `ModelCheckpoints` keeps states. All of them share one `ModelStatus`.

    Attributes
    ----------
    accepts_non_numeric
        As in the spec.
    takes_gathered
        As of any of its states.
    status
        Loading, catching up, live, stale, or of no further use.
    delayed
        Its delayed labels.
    freshness
        How far it is behind its log; reads the log.
    follower_kind
        The class of what moves its replica.

    """

    follower_kind: ClassVar[type[LogFollower]] = LogFollower

    __slots__ = (
        *("__dict__", "__weakref__", "_commit", "_connection", "_follower", "_loop", "_producer"),
        *("_queue", "_sequence", "_snapshots", "accepts_non_numeric", "delayed", "entry"),
        *("freshness", "keys", "name", "observer", "status", "takes_gathered"),
    )

    def __init__(
        self,
        connection: Connection,
        settings: Settings,
        name: str,
        entry: IndexEntry,
        replica: Replica,
        producer: str,
        sequence: itertools.count[int],
        status: Status = Status.CATCHING_UP,
    ) -> None:
        self.name = name
        self.entry = entry
        self.keys = StreamKeys(entry.stream).model(entry.uid)
        self.observer = connection.observer
        self.accepts_non_numeric = entry.fold.accepts_non_numeric
        self.takes_gathered = replica.takes_gathered
        self.status = ModelStatus(status)
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self.delayed = DelayedLabels(connection, self.keys, settings.append_timeout_ms / 1000)
        owner = ref(self)  # without a cycle a dropped model is freed at once
        self._snapshots = SnapshotWriter(connection, settings, name, self.keys, owner)
        self._follower = follower = self.follower_kind(
            connection, settings, name, entry, self.keys, replica, self.status, self._snapshots
        )
        self._producer, self._sequence = producer, sequence
        self._queue = WriteQueue(settings, connection.observer, self.delayed)
        self._commit = GroupCommit(
            follower, self._queue, self._snapshots, self.delayed, producer, sequence
        )
        self.freshness = Freshness(follower, self._commit)

    @classmethod
    async def open(
        cls,
        connection: Connection,
        settings: Settings,
        name: str,
        entry: IndexEntry,
        producer: str,
        sequence: itertools.count[int],
        opened: Opened | None = None,
        on_progress: OnProgress = no_progress,
    ) -> Self:
        """Load a model's snapshot and catch up with its log, in the background if that takes long.

        `opened` is what was read of it already; `on_progress` reports the weights that are read.

        Raises
        ------
        ModelGone, SetAside, Unavailable
            If there is nothing to load, it cannot be used here, or Redis does
            not answer.

        """
        kind = cls.follower_kind.replica_kind
        replica = None if opened is None else small_replica(entry, opened.loaded, kind)
        if opened is not None and replica is not None:
            model = cls(connection, settings, name, entry, replica, producer, sequence)
            model._snapshots.keep(opened.kept)
            model._follower.log.ahead = opened.loaded.position, opened.tail
            if not opened.tail.more and opened.tail.size <= model._follower.pace.few:
                await model._follower.traced("catch up", model._commit.read_alone())
                return model
        else:
            replica = await load_replica(connection, settings, entry, kind, on_progress)
            model = cls(connection, settings, name, entry, replica, producer, sequence)
            try:
                model._snapshots.keep(await followers.retention(connection, model.keys.on))
            except DamagedState as error:
                raise set_aside_for(error) from error
        await model.freshness.read_for(_OPEN_S)
        return model

    @classmethod
    def unparked(
        cls,
        connection: Connection,
        settings: Settings,
        name: str,
        parked: Parked,
        producer: str,
        sequence: itertools.count[int],
    ) -> Self:
        """Return a parked model as it was; what changed since is read at its next use.

        The one that was parked is gone: the replica has one owner.
        """
        model = cls(
            *(connection, settings, name, parked.entry, parked.replica),
            *(producer, sequence, Status.LIVE),
        )
        model._snapshots.kept = parked.kept
        follower = model._follower
        follower.seen, follower.in_trouble = parked.seen, False
        return model

    def parked(self) -> Parked | None:
        """Return what it takes to go on from here; `None` if the model is large or watched."""
        follower, snapshots = self._follower, self._snapshots
        replica = follower.replica
        sound = self.status.caught_up and not follower.in_trouble
        size = replica.parked_bytes() if sound else None
        if size is None:
            return None
        return Parked(
            *(self.entry, replica, follower.seen, snapshots.kept, size),
            *(ref(self), ref(snapshots)),
        )

    def read_again(self, lost: Replica) -> None:
        """Read the log again: a snapshot of the replica `lost` was not of the log's past."""
        self.freshness.read_again(lost)

    @functools.cached_property
    def checkpoints(self) -> ModelCheckpoints:
        """The checkpoints of its stream."""
        return ModelCheckpoints(self._follower, self.freshness)

    @functools.cached_property
    def prior_answers(self) -> PriorAnswers:
        """Its answers to the events that it learns."""
        return PriorAnswers(self._follower, self.checkpoints)

    @functools.cached_property
    def commands(self) -> CommandLog:
        """Its commands."""
        return CommandLog(
            *(self._follower, self.freshness, self.checkpoints),
            *(f"{self._producer}.{self.entry.uid}.commands", self._sequence),
        )

    @property
    def replica(self) -> Replica:
        """The current replica, another one after a rebuild; for the engine only."""
        return self._follower.replica

    @property
    def state(self) -> ModelState:
        """The model's present state, to be read only and until the next `await`.

        `TAKEN_STATE` while long work has it: `at_rest` waits for that.
        """
        return self._follower.replica.state

    @property
    def position(self) -> Position:
        """The last entry that is in the state."""
        return self._follower.replica.position

    @property
    def stored(self) -> str:
        """Entry id of the snapshot in Redis, as last read."""
        return self._follower.replica.stored

    @property
    def log_events(self) -> int:
        """Number of events that the log took up to the position."""
        return self._follower.replica.log_events

    @property
    def away(self) -> bool:
        """True while the state cannot be read: long work has it."""
        return self._follower.replica.state is TAKEN_STATE

    @property
    def idle(self) -> bool:
        """True if nothing is waiting or under way."""
        return not (self._commit.busy or self._snapshots.busy or self.freshness.busy)

    @property
    def queued(self) -> int:
        """Number of events that wait to be appended."""
        return self._queue.events

    def unsaved_s(self) -> float:
        """Return the age in seconds of the oldest change that no snapshot holds, 0 if none."""
        return self.replica.unsaved_s(self._loop.time())

    def watch(self, watcher: Watcher) -> None:
        """Call `watcher` with every entry that is applied from now on."""
        self.replica.watchers += (watcher,)

    def unwatch(self, watcher: Watcher) -> None:
        """Call `watcher` no more."""
        self.replica.watchers = tuple([one for one in self.replica.watchers if one != watcher])

    async def save(self) -> None:
        """Save a snapshot of what is not saved yet, after the one under way."""
        await self._snapshots.save(self.replica)

    def save_if_due(self) -> None:
        """Start saving a snapshot if one is due and none is being saved."""
        self._snapshots.save_if_due(self.replica)

    def save_before_leaving(self) -> bool:
        """Start saving if the log to be folded again is long; return whether that was begun."""
        return self._snapshots.save_before_leaving(self.replica)

    async def at_rest(self, wait_s: float = CALL_WAIT_S) -> ModelState:
        """Return the state once no long work has it: it may be read until the next `await`.

        Raises
        ------
        Unavailable
            The work takes longer than the caller's patience.

        """
        follower = self._follower
        while follower.replica.taken:
            await follower.replica.at_rest(wait_s)
        follower.replica.check_whole()
        return follower.replica.state

    async def ask(self, look: Callable[[ModelState], T], size: int) -> tuple[T, str]:
        """Return the result of `look` at the state for `size` bytes of JSON, and the position.

        Raises
        ------
        Unavailable
            As `at_rest`.

        """
        await self.at_rest()
        replica, few = self._follower.replica, self._follower.pace.few

        def placed(state: ModelState) -> tuple[T, str]:
            return look(state), str(replica.position)

        return await replica.look(placed, lambda: size <= few)

    async def ask_in_parts(
        self, work: Callable[[ModelState], Generator[None, None, T]], size: int
    ) -> T:
        """Return what work on the state for `size` bytes of JSON comes to, which pauses at times.

        Raises
        ------
        Unavailable
            As `at_rest`.

        """
        state = await self.at_rest()
        if size <= self._follower.pace.few:
            return at_once(work(state))
        async with self._follower.replica.take(changes=False) as state:
            return await result_in_parts(work(state))

    async def faults(self, events: list[Event], size: int) -> list[tuple[int, Rejection]]:
        """Return by index why the model cannot take events, `size` bytes of JSON, now."""
        return await self.ask_in_parts(lambda state: checking(state, events), size)

    async def predict(
        self,
        questions: Sequence[Question],
        size: int,
        at_least: Position | None = None,
        most: int = USUAL,
    ) -> Predictions:
        """Predict validated events, at the position `at_least` or later if one is passed.

        Each answer has the `most` largest probabilities. `size` is that of their JSON: what takes
        long is done in the thread for long work.

        The replica is no older than allowed unless Redis is slow or away.

        Raises
        ------
        Conflict, ModelGone, Unavailable
            As `Freshness.refresh_if_stale` and `Freshness.wait_for_position`.

        """
        freshness, follower = self.freshness, self._follower
        stale_s = None
        if self._loop.time() - follower.seen.pulse.at_s > freshness.limit_s:
            await freshness.refresh_if_stale()
            stale_s = freshness.staleness_s()
        if at_least is not None:
            await freshness.wait_for_position(at_least)
            stale_s = freshness.staleness_s()
        replica = follower.replica
        if replica.taken:
            await self.at_rest()
            replica = follower.replica
        if size > follower.pace.few or len(questions) > follower.pace.most_events:
            async with replica.take(changes=False) as taken:
                answering = Answering(taken, questions, most)
                took_s = await in_parts(answering.step)
                at = str(replica.position)
            follower.pace.note(size, took_s)
            return Predictions(answering.items, at, stale_s, answering.faults)
        return self.predict_now(questions, stale_s, most)

    def can_predict_now(self, size: int) -> bool:
        """Return whether `size` bytes of questions need no wait; look at the log soon if needed."""
        follower, freshness = self._follower, self.freshness
        age_s = self._loop.time() - follower.seen.pulse.at_s
        if age_s > freshness.early_s:
            if age_s > freshness.limit_s:
                return False
            freshness.refresh_early()
        return size <= follower.pace.few and not follower.replica.taken

    def predict_now(
        self, questions: Sequence[Question], stale_s: float | None = None, most: int = USUAL
    ) -> Predictions:
        """Predict validated events by the present state, whose age is returned as `stale_s`."""
        replica = self._follower.replica
        state = replica.state
        predict = state.predict if state.can_reject_features else state.answers.predict
        items, faults = [], []
        for i, question in enumerate(questions):
            try:
                items.append(predict(question.x, most))
            except hinged.InvalidEvent as error:
                faults.append((i, Rejection(error.field, error.reason)))
        return Predictions(items, position_text(replica.position), stale_s, faults)

    async def learn(self, events: list[Event], payload: Json) -> AppendResult:
        """Append the events to the log, all of them or none, and return what they did.

        Parameters
        ----------
        events
            At least one validated event.
        payload
            Their JSON as accepted, joined by commas.

        Raises
        ------
        Unprocessable
            The model cannot take an event; nothing was taken, unless the error says that
            it is logged.
        Busy
            The queue is full; nothing was taken.
        Conflict, NotFound, Expired
            An event id came before with other content, or is of no prediction that waits;
            nothing was taken.
        ModelGone
            The model was deleted; nothing was taken.
        Unavailable
            Redis did not answer in time. The events may have been taken; the
            same ones with ids may be sent again.

        """
        follower, size = self._follower, len(payload)
        if size > follower.pace.few or follower.replica.taken:
            faults = await self.faults(events, size)
        else:
            faults = follower.replica.state.faults(events)
        if faults:
            raise refused_by_model(faults, logged=False)
        return checked(await self._append(events, payload))

    def can_learn_now(self, size: int) -> bool:
        """Return whether `size` bytes of events need no wait before the append, and no trace."""
        follower = self._follower
        return (
            self.status.caught_up
            and self.observer.tracing is None
            and size <= follower.pace.few
            and not follower.replica.taken
        )

    def learn_now(self, events: list[Event], payload: Json, answer: Answer[AppendResult]) -> None:
        """Let events wait for the next append, as `learn`; `answer` gets what `checked` takes.

        Raises
        ------
        Unprocessable, Busy
            Nothing was taken.

        """
        if faults := self._follower.replica.state.faults(events):
            raise refused_by_model(faults, logged=False)
        self._commit.append(events, payload, answer)

    async def learn_each(
        self, events: list[Event], payload: Json, span: Span | None = None
    ) -> SourceAppendResult:
        """Append the events, each by itself: one that is refused does not keep out the others.

        Parameters
        ----------
        events
            Validated events that the state finds no faults in; may be empty with a span.
        payload
            Their JSON, joined by commas.
        span
            Part of an outside source that they are: its offset moves in the same step.

        Raises
        ------
        Busy, ModelGone, Unavailable
            As for `learn`. The same span may be sent again: it is taken once.

        """
        if span is None:
            with contextlib.suppress(Conflict, NotFound, Expired):
                # as one caller, for the script's sake: refusals are rare
                return SourceAppendResult("", await self._append(events, payload))
        result: SourceAppendResult = await self._append(events, payload, True, span)
        return result

    async def _append(
        self, events: list[Event], payload: Json, each: bool = False, span: Span | None = None
    ) -> Any:
        """Append once the model has caught up, under a span of its trace if there is one."""
        await self.freshness.ensure_caught_up()
        answer: asyncio.Future[Any] = self._loop.create_future()
        self._commit.append(events, payload, answer, each, span)
        return await self._follower.traced("append", answer, len(events))

    def count_refused(self, status: int, count: int = 1) -> None:
        """Count calls, lines or records that were refused, by the status that says why."""
        if count and (reason := COUNTED.get(status)) is not None:
            self.observer.of_model(self.name, reason, count)

    def stop_saving(self) -> None:
        """Take no further snapshot, and do not finish one under way: the model is gone."""
        self._snapshots.stop()

    def can_restore(self, spec: ModelSpec) -> bool:
        """Return whether the state of a model of that spec may be this model's."""
        return self.replica.fits(spec)

    async def offset(self, source: str) -> str:
        """Return where a source stands, empty if nothing of it was ever taken.

        Raises
        ------
        SetAside, Unavailable
            That is damaged, until a repair; Redis does not answer.

        """
        try:
            return await offsets.offset(self._connection, self.keys.on, source)
        except DamagedState as error:
            raise set_aside_for(error) from error

    async def letters(self, source: str) -> int:
        """Return how many dead letters of a source are kept."""
        return await log.letters(self._connection, self.keys.on, source)

    async def damage(self) -> dict[str, str]:
        """Return what is damaged of the model and its stream, as `damage_of`."""
        return await damage_of(self._connection, self.keys)

    async def doors(self) -> DoorCounts:
        """Return counts of records not learned, by door and reason; empty while Redis is away."""
        try:
            return await door_counts(self._connection, self.keys)
        except Unavailable:
            return {}

    async def sources(self) -> int:
        """Return how many sources the stream keeps the offset of."""
        return await offsets.sources(self._connection, self.keys.on)

    async def aclose(self) -> None:
        """Finish what was accepted and save; Redis being away is no obstacle.

        A model that is catching up goes on from its snapshot at the next start.
        """
        await self.delayed.aclose()
        await self._commit.aclose()
        await self.save()


def checked(result: AppendResult) -> AppendResult:
    """Return the result of an append if the model could take all that the log took.

    Raises
    ------
    Unprocessable
        It could not: something that was appended before changed the model.

    """
    if Rejection in map(type, result.outcomes):
        found = [(i, one) for i, one in enumerate(result.outcomes) if type(one) is Rejection]
        raise refused_by_model(found, logged=True)
    return result
