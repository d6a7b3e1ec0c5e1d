"""Learning line by line: each line by itself, the body as a source if it has a name."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from hinged import Outcome
from hinged_service.api.ndjson.answers import (
    DuplicateLine,
    EarlyLine,
    LearnedLine,
    LineAnswer,
    RejectedLine,
    WeightlessLine,
)
from hinged_service.api.ndjson.reader import Batch
from hinged_service.api.ndjson.session import Course, in_order, rejected
from hinged_service.engine.live_model import LiveModel, SourceAppendResult
from hinged_service.errors import Conflict, SetAside, Unavailable
from hinged_service.model.predictor import Label
from hinged_service.model.results import Rejection
from hinged_service.store.log_types import Span
from hinged_service.wire.events import Event

__all__ = ["Learning"]

_DIGITS = 20


class _Source:
    """Offset of the body as a source, and a digest by which the same body is recognized.

    Its offset is the number of lines taken, and the digest of all of them.
    """

    def __init__(self, name: str, offset: str) -> None:
        self.name = f"ndjson:{name}"
        self._digest = hashlib.sha1(usedforsecurity=False)
        self.stand_at(offset)

    def digest(self) -> Any:
        """Return the digest up to here, to go back to."""
        return self._digest.copy()

    def stand_at(self, offset: str, digest: Any = None) -> None:
        """Take over the stored offset; go back to an earlier digest if there is one."""
        if digest is not None:
            self._digest = digest
        self.offset = offset
        self.lines = int(offset.partition(".")[0] or 0)

    def pass_by(self, batch: Batch[Event]) -> str:
        """Take note of lines and return the offset after them."""
        for line in batch.lines:
            self._digest.update((line or b"") + b"\n")
        return f"{batch.end}.{self._digest.hexdigest()[:_DIGITS]}"


class Learning(Course[Event]):
    """Learning, each line by itself.

    Without a source a line is recognized by its event's id only. With one, lines count up to
    where the source stands and are not learned again.
    """

    _source: _Source | None = None
    _repeated_at = ""

    async def begin(self, source: str) -> None:
        """Take the body as the source of that name.

        Raises
        ------
        Conflict
            It is a new one, and the stream has as many as it may.

        """
        offset = await self.patiently(lambda a: a.offset(f"ndjson:{source}"), again=True)
        most = self._settings.max_sources
        if not offset and await self.patiently(lambda a: a.sources(), again=True) >= most:
            raise Conflict(
                f"The stream has {most} sources, as many as max_sources allows; nothing was "
                "taken. Send the lines without ?source= and with an id each, or as a source that "
                "it has."
            )
        await self._stand_at(_Source(source, offset))

    async def _stand_at(self, source: _Source) -> None:
        self._source = source
        if source.lines:
            await self.patiently(lambda live_model: live_model.freshness.read(), again=True)
            self._repeated_at = str((await self.live_model()).position)

    def note(self, answers: Sequence[LineAnswer]) -> None:
        """Count the lines that were refused."""
        for answer in answers:
            if type(answer) is RejectedLine and not answer.logged:
                self._first.count_refused(answer.status)

    async def end(self, lines: int) -> None:
        """Check that the source did not bring more lines before."""
        if self._source is not None and self._source.lines > lines:
            raise _another_body(self._source)

    async def run(self, batch: Batch[Event]) -> list[LineAnswer]:
        """Learn the lines that the source has not brought before; answer all of them."""
        source = self._source
        if source is None:
            return await self._learned(batch, None)
        answers: list[LineAnswer] = []
        while batch.end > batch.start:
            if source.lines > batch.start:
                repeated, batch = batch.split(source.lines)
                passed = source.pass_by(repeated)
                if repeated.end == source.lines and passed != source.offset:
                    raise _another_body(source)
                answers += await self._learned(repeated, None, repeated=True)
                continue
            digest = source.digest()
            span = Span(source.name, source.offset, source.pass_by(batch))
            try:
                answers += await self._learned(batch, span)
            except _Moved as moved:
                source.stand_at(moved.offset, digest)
                await self._stand_at(source)
                if source.lines <= batch.start:
                    raise Unavailable(
                        "Redis was set back. Send the whole body again.", retry_after_s=1
                    ) from None
                continue
            source.stand_at(span.end)
            break
        return answers

    async def _learned(
        self, batch: Batch[Event], span: Span | None, repeated: bool = False
    ) -> list[LineAnswer]:
        live_model = await self.patiently(_itself, again=True)
        refused = await self._refuse(batch, live_model)
        answers: list[LineAnswer]
        if repeated:
            answers = [DuplicateLine(number, self._repeated_at) for number in batch.numbers]
        elif batch.items or span is not None:
            answers = await self._fed(batch, span)
        else:
            answers = []
        return in_order(answers + refused, batch)

    async def _refuse(self, batch: Batch[Event], live_model: LiveModel) -> list[LineAnswer]:
        """Remove the events that the model can refuse before they are logged."""
        found = await live_model.faults(batch.items, sum(map(len, batch.texts)))
        if not found:
            return []
        faults: dict[int, list[Rejection]] = {}
        for i, fault in found:
            faults.setdefault(i, []).append(fault)
        answers: list[LineAnswer] = [
            rejected(batch.numbers[i], *mine, logged=False) for i, mine in faults.items()
        ]
        good = [i for i in range(len(batch.items)) if i not in faults]
        batch.numbers = [batch.numbers[i] for i in good]
        batch.texts = [batch.texts[i] for i in good]
        batch.items = [batch.items[i] for i in good]
        return answers

    async def _fed(self, batch: Batch[Event], span: Span | None) -> list[LineAnswer]:
        payload, again = b",".join(batch.texts), True
        if span is None:
            again = all(event.id is not None for event in batch.items)
        elif any(event.id is not None for event in batch.items):
            # so that the dead letters of refused lines can be mended; others are never refused
            places, sizes = list(map(str, batch.numbers)), list(map(len, batch.texts))
            span = span._replace(places=places, sizes=sizes)

        async def learn(live_model: LiveModel) -> tuple[_ToLabel, SourceAppendResult]:
            label = (await live_model.at_rest()).answers.label  # the same for all its states
            return label, await live_model.learn_each(batch.items, payload, span)

        try:
            label, fed = await self.patiently(learn, again)
        except (SetAside, Unavailable) as error:
            if not again:
                error.detail += (
                    f" Lines {batch.numbers[0]} to {batch.numbers[-1]} may have counted: without "
                    "ids and without ?source= the service cannot know."
                )
            raise
        if fed.learned is None:
            raise _Moved(fed.offset)
        return _answered(batch, label, fed)


_ToLabel = Callable[[Any], Label | None]


class _Moved(Exception):
    """The offset of the source has changed: another call sends it, or an answer was lost."""

    def __init__(self, offset: str) -> None:
        self.offset = offset


async def _itself(live_model: LiveModel) -> LiveModel:
    return live_model


def _answered(batch: Batch[Event], label: _ToLabel, fed: SourceAppendResult) -> list[LineAnswer]:
    assert fed.learned is not None  # noqa: S101 - checked by the only caller
    at = str(fed.learned.position)
    answers: list[LineAnswer] = []
    for number, o, event in zip(batch.numbers, fed.learned.outcomes, batch.items, strict=True):
        if isinstance(o, Outcome):
            kind = LearnedLine if event.w > 0.0 else WeightlessLine
            y_pred = label(o.y_pred)
            answers.append(kind(number, y_pred, o.score, o.mistake, o.updated, o.hinge_loss, at))
        elif o is None:
            answers.append(DuplicateLine(number, at))
        else:
            answers.append(rejected(number, o, logged=True))
    for i in fed.learned.early:
        answers[i] = EarlyLine(batch.numbers[i], at)
    for i, error in fed.errors.items():
        answers[i] = RejectedLine.of(batch.numbers[i], error)
    return answers


def _another_body(source: _Source) -> Conflict:
    return Conflict(
        f"This body differs from the one of which the source brought {source.lines} lines. "
        "Send that one, or name another source."
    )
