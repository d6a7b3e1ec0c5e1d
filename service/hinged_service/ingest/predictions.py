"""Predictions of the events that a source brings, written where others read them.

Each is the model's answer just before it learned the event. A batch is appended with a note of its
events, its predictions are written, the note goes. After a kill in between, the note has
the next reader of the source what to write again: from a checkpoint of before the batch, as the
answers are no part of the state. An output that has a prediction already does not take it twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

from hinged_service.engine.live_model import LiveModel, SourceAppendResult
from hinged_service.engine.prior_answers import Answers
from hinged_service.errors import ModelGone
from hinged_service.ingest.records import Batch
from hinged_service.model.predictor import Label, label_text
from hinged_service.model.results import Rejection
from hinged_service.wire.position import EntryId, Position

__all__ = ["Output", "Predicted", "Predictions"]

_BASE_EVENTS = 20_000
_BASE_BYTES = 2**22
MOST_BASES = 100
"""Sources of one run for which a checkpoint is kept, as a stream has 1,000 of them at most."""
_BITS = 20
"""Bits of the number of an event in its log entry, within the id of a prediction."""


class Predicted(NamedTuple):
    """One prediction.

    Parameters
    ----------
    order
        The log entry of its event, and the number of the event in it.
    position
        The position at which the event is learned.
    id
        The id of the event, if it has one.
    offset
        The place of the event in its source.
    label, score, probability
        The answer: label, its score and probability; no label while no class was seen.

    """

    order: tuple[int, int, int]
    position: str
    id: str | None
    offset: str
    label: Label | None
    score: float
    probability: float | None

    @property
    def entry_id(self) -> str:
        """An id of an entry of a Redis stream that grows from one prediction to the next."""
        ms, number, event = self.order
        return f"{ms}-{number << _BITS | event}"

    def json(self) -> str:
        """Return it as a JSON object."""
        document = self._asdict() | {"event": self.order[2]}
        del document["order"]
        return json.dumps(document, ensure_ascii=False)


class Output(ABC):
    """The place where predictions are written; `Unavailable` if it does not answer."""

    name = "The output of the predictions"
    """The subject of the message that it does not."""

    @abstractmethod
    async def put(self, rows: Sequence[Predicted]) -> None:
        """Write predictions in order: none twice, if it can find those that are there."""

    async def aclose(self) -> None:  # noqa: B027 - nothing to close, usually
        """End."""


class Predictions:
    """The predictions of one run, written after each batch.

    Attributes
    ----------
    written
        How many were written.
    output
        The place where they are written.
    lost
        Events of a killed run whose prediction is lost.

    """

    def __init__(self, output: Output) -> None:
        self.written = self.lost = 0
        self.output = output
        self._since: dict[str, tuple[str, int, int]] = {}
        self._ready: dict[str, tuple[str, Sequence[Predicted]]] = {}

    async def begin(self, model: LiveModel, source: str) -> None:
        """Prepare for a batch: write the predictions of a killed reader, record the new ones."""
        since = self._since.get(source)
        if since is None or since[0] != model.entry.uid:
            await self.recover(model, source)
            await self._keep_base(model, source)
            while len(self._since) > MOST_BASES:  # those of files that are done
                await model.prior_answers.drop_bases(_stem(oldest := next(iter(self._since))))
                del self._since[oldest]
        model.prior_answers.record(await model.at_rest())

    def note(self, batch: Batch) -> str:
        """Return the note of a batch."""
        ids = [event.id for event in batch.events]
        return json.dumps(list(zip(batch.offsets(), ids, strict=True)), separators=(",", ":"))

    async def end(
        self, model: LiveModel, source: str, batch: Batch, fed: SourceAppendResult
    ) -> None:
        """Write the predictions of a batch that was taken; may be called again if that fails."""
        if not batch.events:
            return
        if fed.learned is None:
            await self.recover(model, source)
            return
        at = fed.learned.position
        if self._ready.get(source, ("", ()))[0] != at.id:
            answers = model.prior_answers.take(at.id)
            kinds = set(map(type, fed.learned.outcomes))
            if not answers and (Rejection not in kinds or kinds - {Rejection, type(None)}):
                # all had counted before, or this entry was not folded here
                await self.recover(model, source)
                return
            pairs = list(zip(batch.offsets(), [event.id for event in batch.events], strict=True))
            self._ready[source] = at.id, _rows(at, pairs, answers)
        await self._write(model, source, at)
        uid, events, size = self._since[source]
        events, size = events + len(batch.events), size + len(batch.payload)
        self._since[source] = uid, events, size
        if events >= _BASE_EVENTS or size >= _BASE_BYTES:
            with contextlib.suppress(ModelGone):  # the next batch reports it
                await self._keep_base(model, source)

    async def recover(self, model: LiveModel, source: str) -> None:
        """Write the predictions of the batch of a source that is noted, if any is."""
        note = await model.prior_answers.noted(source)
        if note is None:
            return
        at = note.position
        if self._ready.get(source, ("", ()))[0] != at.id:
            pairs = json.loads(note.text)
            answers: Answers | None = model.prior_answers.take(at.id)
            if not answers:
                answers = await model.prior_answers.again(note, _stem(source))
            if answers is None:
                self.lost += len(pairs)
            self._ready[source] = at.id, _rows(at, pairs, answers or {})
        await self._write(model, source, at)

    async def aclose(self, model: LiveModel) -> None:
        """Delete checkpoints whose predictions are all written; close the output."""
        await self.output.aclose()
        for source in self._since:
            if await model.prior_answers.noted(source) is None:
                await model.prior_answers.drop_bases(_stem(source))

    async def _write(self, model: LiveModel, source: str, at: Position) -> None:
        _, rows = self._ready[source]
        if rows:
            await self.output.put(rows)
        await model.prior_answers.written(source, at.id)
        if self._ready.pop(source, None) is not None:
            self.written += len(rows)

    async def _keep_base(self, model: LiveModel, source: str) -> None:
        await model.prior_answers.keep_base(_stem(source))
        self._since[source] = model.entry.uid, 0, 0


def _rows(at: Position, pairs: Sequence[Any], answers: Answers) -> list[Predicted]:
    ms, number = EntryId.of(at.id)
    rows = []
    for i, (place, event_id) in enumerate(pairs):
        if (answer := answers.get(i)) is not None:
            share = None if answer.y is None else answer.proba.get(label_text(answer.y))
            order = ms, number, i
            rows.append(Predicted(order, str(at), event_id, place, answer.y, answer.score, share))
    return rows


def _stem(source: str) -> str:
    """Return the beginning of the names of checkpoints that are kept for a source."""
    return f"predictions-{hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()[:16]}"
