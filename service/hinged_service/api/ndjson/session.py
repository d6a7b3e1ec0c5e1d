"""A request with a body of lines, batch after batch: always the same model, patient with Redis."""

from __future__ import annotations

import abc
import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Generic, TypeVar

from hinged_service.api.ndjson.answers import LineAnswer, RejectedLine
from hinged_service.api.ndjson.reader import Batch, T
from hinged_service.engine.live_model import LiveModel
from hinged_service.engine.refusals import refused_line
from hinged_service.engine.registry import ModelRegistry
from hinged_service.errors import Busy, ModelGone, Unavailable
from hinged_service.model.results import Rejection
from hinged_service.retry import backoff
from hinged_service.settings import Settings

__all__ = ["Course", "in_order", "rejected"]

_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0
R = TypeVar("R")


class Course(abc.ABC, Generic[T]):
    """One request: the model that it is for, met again for each batch.

    It stays with the model that was found first.
    """

    def __init__(self, registry: ModelRegistry, settings: Settings, first: LiveModel) -> None:
        self._registry = registry
        self._settings = settings
        self._first = first
        self._timeout_s = settings.lines_patience_ms / 1000

    @abc.abstractmethod
    async def run(self, batch: Batch[T]) -> list[LineAnswer]:
        """Carry out the calls of the lines and return their answers, in order."""

    async def parts(self, batch: Batch[T]) -> AsyncIterator[Batch[T]]:
        """Yield the parts of a batch whose answers are made and written one after the other."""
        yield batch

    def note(self, answers: Sequence[LineAnswer]) -> None:
        """Count the kinds of answers for some lines."""

    async def end(self, lines: int) -> None:
        """Check that a body of that many lines may end here."""

    async def patiently(self, call: Callable[[LiveModel], Awaitable[R]], again: bool) -> R:
        """Call with the model; wait and try again for as long as a request may wait.

        A call that may not be done `again` is given up once it may have been carried out.
        """
        loop = asyncio.get_running_loop()
        deadline_s, reopened = loop.time() + self._timeout_s, False
        pauses = backoff(_PAUSE_S, _LONGEST_PAUSE_S)
        while True:
            live_model, called = None, False
            try:
                live_model = await self.live_model()
                await live_model.freshness.ensure_caught_up()
                called = True
                return await call(live_model)
            except ModelGone:
                if live_model is None or reopened:
                    raise
                reopened = True
                self._registry.forget(live_model.name, live_model)
            except (Busy, Unavailable) as error:
                unsure = called and not again and isinstance(error, Unavailable)
                pause_s = next(pauses)
                if unsure or loop.time() + pause_s > deadline_s:
                    raise
                await asyncio.sleep(pause_s)

    async def live_model(self) -> LiveModel:
        """Return the model as it lives in this worker now; `ModelGone` if it is another one."""
        name, uid = self._first.name, self._first.entry.uid
        live_model = self._registry.live(name) or await self._registry.open(name)
        if live_model.entry.uid != uid:
            raise ModelGone("The model was deleted and created again. Send the rest again.")
        return live_model


def in_order(answers: list[LineAnswer], batch: Batch[Any]) -> list[LineAnswer]:
    """Return the answers with those for bad lines, by line."""
    if batch.faults:
        answers += [RejectedLine.of(number, error) for number, error in batch.faults.items()]
    if len(answers) > len(batch.items):
        answers.sort(key=lambda answer: answer.line)
    return answers


def rejected(line: int, *faults: Rejection, logged: bool) -> RejectedLine:
    """Return the answer for a line that the model refuses."""
    return RejectedLine.of(line, refused_line(faults, logged))
