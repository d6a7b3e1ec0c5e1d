"""The way of any source into a model: batches by offset, sent until they are answered."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from hinged_service.engine.lifecycle import ModelLifecycle
from hinged_service.engine.live_model import LiveModel, SourceAppendResult
from hinged_service.engine.registry import ModelRegistry
from hinged_service.errors import ModelGone, ServiceError, Unavailable
from hinged_service.ingest.outage import Outage
from hinged_service.ingest.predictions import Predictions
from hinged_service.ingest.records import Batch, Lot, Raw, gather, labels_alone
from hinged_service.ingest.signals import Stop
from hinged_service.model.cost import EVENT_BYTES
from hinged_service.model.results import Rejection
from hinged_service.model.spec import ModelSpec
from hinged_service.model.state import ModelState
from hinged_service.store.log_types import Door
from hinged_service.tasks import cancel

__all__ = ["Feeder", "Gathered", "Tally", "ended", "gathered_for", "meanwhile", "sent_off"]

_ROUNDS_TO_SEND = 4

T = TypeVar("T")
U = TypeVar("U")


@dataclass
class Tally:
    """The outcome of the records that this process brought.

    Attributes
    ----------
    records
        Records taken: the offset is past them.
    learned, judged, mistakes
        Events learned with an outcome; those of weight above 0 with a prediction; how many of
        these were wrong.
    duplicates
        Events whose id had counted before.
    early
        Labels that wait for their prediction.
    rejected
        Events in the log that the model could not take, as one class too many.
    dead
        Records that are no events, or contradict one of the same id: see the dead letters.
    unseen
        Events taken without an outcome: the answer got lost, or another reader was first.
    gone
        Records that the source had dropped before they were read.
    earlier, earlier_dead
        Records of the same files that other runs took; how many of them are dead letters.
    """

    records: int = 0
    learned: int = 0
    judged: int = 0
    mistakes: int = 0
    duplicates: int = 0
    early: int = 0
    rejected: int = 0
    dead: int = 0
    unseen: int = 0
    gone: int = 0
    earlier: int = 0
    earlier_dead: int = 0

    @property
    def total(self) -> int:
        """All records, also those that other runs took and those that were gone."""
        return self.records + self.earlier + self.gone

    @property
    def bad(self) -> int:
        """Records that the model has not learned, and never will as they are."""
        return self.dead + self.rejected + self.gone + self.earlier_dead

    @property
    def accuracy(self) -> float | None:
        """Share of right predictions before learning, of the judged; `None` before the first."""
        return (self.judged - self.mistakes) / self.judged if self.judged else None

    def note(self, batch: Batch, fed: SourceAppendResult, taken: bool) -> None:
        """Count a batch and its answer."""
        if not taken:
            return
        self.records += len(batch.events) + len(batch.letters)
        self.dead += len(batch.letters) + len(fed.errors)
        if fed.learned is None:
            self.unseen += len(batch.events)
            return
        for event, outcome in zip(batch.events, fed.learned.outcomes, strict=True):
            if outcome is None:
                self.duplicates += 1
            elif isinstance(outcome, Rejection):
                self.rejected += 1
            else:
                self.learned += 1
                self.judged += event.w > 0.0 and outcome.y_pred is not None
                self.mistakes += outcome.mistake
        self.early += len(fed.learned.early)
        self.duplicates -= len(fed.errors) + len(fed.learned.early)


class Gathered(NamedTuple):
    """Records that were read for a model, named by its uid: as they were, and as a batch."""

    uid: str
    records: Sequence[Raw] | Lot
    batch: Batch


async def gathered_for(
    live_model: LiveModel, records: Sequence[Raw] | Lot, others: Sequence[ModelState] = ()
) -> Batch:
    """Read records for a model; an event for one of the `others` counts as an event, too."""
    return await live_model.ask_in_parts(
        lambda state: gather([state, *others], records), _size(records)
    )


def _size(records: Sequence[Raw] | Lot) -> int:
    """Return the bytes of the JSON of records, about."""
    bodies = records.texts if isinstance(records, Lot) else [raw.body for raw in records]
    texts = [body for body in bodies if isinstance(body, bytes)]
    return sum(map(len, texts)) + EVENT_BYTES * (len(bodies) - len(texts))


async def _gathered(live_model: LiveModel, records: Sequence[Raw] | Lot) -> Gathered:
    return Gathered(live_model.entry.uid, records, await gathered_for(live_model, records))


async def sent_off() -> None:
    """Give tasks that were just made the rounds of the loop that they need to send a request."""
    for _ in range(_ROUNDS_TO_SEND):
        await asyncio.sleep(0)


async def ended(task: asyncio.Future[Any]) -> None:
    """End a task whose outcome is not needed, if it has not ended."""
    await cancel(task)
    if not task.cancelled():
        task.exception()  # or asyncio would warn that it was never retrieved


async def meanwhile(work: Awaitable[T], step: Callable[[], Awaitable[U]]) -> tuple[T, U]:
    """Return both results; the step is taken while the work waits for Redis.

    A step that computes blocks the loop: it begins when the work has sent its request.
    """
    task = asyncio.ensure_future(work)
    try:
        await sent_off()
        found = await step()
        return await task, found
    finally:
        await ended(task)


class Feeder:
    """A patient writer of sources into one model, of that name or alias.

    All that needs the model raises `NotFound` or `SetAside` if there is none or it cannot be used
    here, and `Stopped` if the user wants an end. `write_line` takes a line for people when Redis
    goes and comes.

    Attributes
    ----------
    spec
        Of the model to make if there is none, once the source was found readable.
    wait_s
        How long a server may be away before the source ends with `Failed`; `None`: no limit.
    address
        Of the Redis of the models, for messages.
    door
        The kind of source that is fed.
    labels_only
        Whether of each record only id, label and weight count.
    predictions
        Of the events that it feeds, if these are written.
    """

    spec: ModelSpec | None = None
    wait_s: float | None = None
    address: str = ""
    door: Door = ""
    labels_only = False
    predictions: Predictions | None = None

    def __init__(
        self,
        registry: ModelRegistry,
        lifecycle: ModelLifecycle,
        model: str,
        stop: Stop,
        write_line: Callable[[str], None],
        tally: Tally,
    ) -> None:
        self.tally = tally
        self.stop = stop
        self.write_line = write_line
        self._registry = registry
        self._lifecycle = lifecycle
        self._model = model

    async def prepare(self, spec: ModelSpec | None) -> None:
        """See to it that the model is there, made from `spec` if that is passed.

        A `Conflict` if there is one of that name with another spec.
        """
        if spec is not None:
            await self._patiently(lambda: self._lifecycle.create(self._model, spec))
        await self.state()

    async def ready(self) -> None:
        """See to it that the model is there: a source calls this when it is sure to be one."""
        await self.prepare(self.spec)

    async def state(self) -> ModelState:
        """Return the model's present state; once the caller waits, ask it for labels alone."""
        return await self._asked(lambda live_model: live_model.at_rest())

    async def offset(self, source: str) -> str:
        """Return the offset of a source, empty if nothing of it was ever taken."""

        async def look(live_model: LiveModel) -> str:
            if self.predictions is not None:
                await self.predictions.recover(live_model, source)
            return await live_model.offset(source)

        return await self._asked(look)

    async def letters(self, source: str) -> int:
        """Return how many dead letters of a source are kept."""
        return await self._asked(lambda live_model: live_model.letters(source))

    async def gathered(self, records: Sequence[Raw] | Lot) -> Gathered:
        """Read consecutive records of a source for the model."""
        if self.labels_only:
            records = labels_alone(records)
        return await self._asked(lambda live_model: _gathered(live_model, records))

    async def feed(
        self, records: Sequence[Raw] | Lot | Gathered, source: str, start: str, end: str
    ) -> str:
        """Feed consecutive records of a source, perhaps none, from its offset `start` to `end`.

        Returns
        -------
        Where the source stands now. If that is not `end`, nothing was taken: go on from there.
        """
        ready = records if isinstance(records, Gathered) else await self.gathered(records)

        predictions = self.predictions
        used: LiveModel

        async def send(live_model: LiveModel) -> SourceAppendResult:
            nonlocal ready, used
            used = live_model
            if predictions is not None:
                await predictions.begin(live_model, source)
            if live_model.entry.uid != ready.uid:  # created again, it may take other events
                ready = await _gathered(live_model, ready.records)
            batch = ready.batch
            note = "" if predictions is None else predictions.note(batch)
            return await live_model.learn_each(
                batch.events, batch.payload, batch.span(self.door, source, start, end, note)
            )

        fed = await self._asked(send)
        taken = fed.offset == end
        self.tally.note(ready.batch, fed, taken)
        if predictions is not None:
            if taken:
                batch, whose = ready.batch, predictions.output.name
                # by the model that learned them, even if the alias points to another by now
                await self._patiently(lambda: predictions.end(used, source, batch, fed), whose)
            elif fed.offset == start:  # another reader's predictions were not written yet
                await self.offset(source)
                return await self.feed(ready, source, start, end)
        return fed.offset

    async def aclose(self) -> None:
        """End the predictions, if there are any."""
        if self.predictions is not None:
            with contextlib.suppress(ServiceError):
                await self.predictions.aclose(await self._open())

    async def _open(self) -> LiveModel:
        live_model = self._registry.live(self._model)
        return live_model if live_model is not None else await self._registry.open(self._model)

    async def _asked(self, ask: Callable[[LiveModel], Awaitable[T]]) -> T:
        async def step() -> T:
            return await ask(await self._open())

        return await self._patiently(step)

    async def _patiently(self, step: Callable[[], Awaitable[T]], server: str = "") -> T:
        server = server or f"The Redis of the models at {self.address}"
        outage = Outage(server, self.wait_s)

        def failed(error: Exception, first: bool) -> None:
            self._failed(error, first)
            if isinstance(error, Unavailable):
                outage.failed(error.detail)

        return await self.stop.retry(
            step, (ModelGone, Unavailable), failed, lambda: self.write_line("Going on.")
        )

    def _failed(self, error: Exception, first: bool) -> None:
        if isinstance(
            error, ModelGone
        ):  # deleted; if created again it is found, else that is raised
            if (live_model := self._registry.live(self._model)) is not None:
                self._registry.forget(self._model, live_model)
        elif first and isinstance(error, Unavailable):
            self.write_line(f"Waiting: {error}")
