"""Learn and predict line by line (NDJSON): bodies of any length in constant memory."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, Generic, Literal, NamedTuple, TypeVar
from urllib.parse import parse_qs

from starlette.types import Receive, Scope, Send

import hinged
from hinged_service.appender import Appender, Fed
from hinged_service.errors import (
    Busy,
    Conflict,
    Detail,
    ModelGone,
    ServiceError,
    SetAside,
    Unavailable,
    Unprocessable,
)
from hinged_service.events import MAX_NAME, Event, Question
from hinged_service.fold import Refused
from hinged_service.host import Host
from hinged_service.routes.bodies import at_least
from hinged_service.routes.faults import faults_of
from hinged_service.routes.line_answers import (
    Answer,
    DuplicateLine,
    EarlyLine,
    LearnedLine,
    LearnedLines,
    LineAnswer,
    PredictedLine,
    PredictedLines,
    RejectedLine,
)
from hinged_service.routes.line_reading import (
    Batch,
    LineReader,
    Parser,
    T,
    event_parser,
    question_parser,
)
from hinged_service.routes.problems import internal_error
from hinged_service.settings import Settings
from hinged_service.store.logs import Span

__all__ = ["learn_lines", "predict_lines"]

_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0
_DIGITS = 20
R = TypeVar("R")


class _Asked(NamedTuple):
    results: Literal["each", "summary"]
    source: str | None


def _asked(scope: Scope) -> _Asked:
    """Return what the query asks for."""
    found = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    results, source = found.get("results", ["each"])[-1], found.get("source", [None])[-1]
    faults = []
    if results not in ("each", "summary"):
        faults.append(Detail("results", "must be each or summary"))
    if source is not None and not 1 <= len(source) <= MAX_NAME:
        faults.append(Detail("source", f"must be text of 1 to {MAX_NAME} characters"))
    if faults:
        raise Unprocessable("Nothing was taken: see errors.", faults)
    return _Asked("summary" if results == "summary" else "each", source)


class _Course(Generic[T]):
    """One request: the model that it is for, met again for each batch.

    Parameters
    ----------
    host, settings
        The worker's.
    first
        The model as found at the beginning; the request stays with it.

    """

    def __init__(self, host: Host, settings: Settings, first: Appender) -> None:
        self._host = host
        self._first = first
        self._patience_s = settings.lines_patience_ms / 1000

    async def run(self, batch: Batch[T]) -> list[LineAnswer]:
        """Do what the lines ask for and return their answers, in order."""
        raise NotImplementedError

    async def end(self, lines: int) -> None:
        """Check that a body of so many lines may end here."""

    async def _patiently(self, call: Callable[[Appender], Awaitable[R]], again: bool) -> R:
        """Call with the model; wait and try again for as long as a request may wait.

        Parameters
        ----------
        call
            What to do.
        again
            Whether it may be done twice.

        """
        loop = asyncio.get_running_loop()
        deadline_s, pause_s, reopened = loop.time() + self._patience_s, _PAUSE_S, False
        while True:
            appender, called = None, False
            try:
                appender = await self._appender()
                await appender.ensure_caught_up()
                called = True
                return await call(appender)
            except ModelGone:
                if appender is None or reopened:
                    raise
                reopened = True
                self._host.forget(appender.name, appender)
                continue
            except SetAside:
                raise
            except (Busy, Unavailable) as error:
                unsure = called and not again and isinstance(error, Unavailable)
                if unsure or loop.time() + pause_s > deadline_s:
                    raise
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _appender(self) -> Appender:
        name, uid = self._first.name, self._first.entry.uid
        appender = self._host.live(name) or await self._host.open(name)
        if appender.entry.uid != uid:
            raise ModelGone("The model was deleted and made anew.")
        return appender


class _Predicting(_Course[Question]):
    async def run(self, batch: Batch[Question]) -> list[LineAnswer]:
        async def predicted(appender: Appender) -> list[LineAnswer]:
            await appender.freshen()
            replica = appender.replica
            predict = replica.fold.predict
            at, stale_s = str(replica.position), appender.staleness_s()
            answers: list[LineAnswer] = []
            for number, question in zip(batch.numbers, batch.items, strict=True):
                try:
                    answers.append(PredictedLine(number, *predict(question.x), at, stale_s))
                except hinged.InvalidEvent as error:
                    fault = Refused(error.field, error.reason)
                    answers.append(_rejected(number, fault, logged=False))
            kept = [i for i, question in enumerate(batch.items) if question.id is not None]
            if kept:
                await _keep(appender, batch, answers, kept)
            return answers

        return _in_order(await self._patiently(predicted, again=True), batch)


async def _keep(
    appender: Appender, batch: Batch[Question], answers: list[Any], kept: list[int]
) -> None:
    """Keep predictions until their labels come; refuse those that cannot be."""
    kept = [i for i in kept if type(answers[i]) is PredictedLine]
    try:
        await appender.keep([batch.items[i] for i in kept], [answers[i].y for i in kept])
    except Conflict as conflict:
        if len(kept) == 1:
            answers[kept[0]] = RejectedLine.of(batch.numbers[kept[0]], conflict)
            return
        for i in kept:
            await _keep(appender, batch, answers, [i])


class _Source:
    """Where the body as a source stands, and a digest that tells whether it is the same body.

    Its offset is the number of lines taken, and the digest of all of them.
    """

    def __init__(self, name: str, offset: str) -> None:
        self.name = f"ndjson:{name}"
        self._digest = hashlib.sha1(usedforsecurity=False)
        self.stand_at(offset)

    def stand_at(self, offset: str) -> None:
        """Take over what the store says."""
        self.offset = offset
        self.lines = int(offset.partition(".")[0] or 0)

    def pass_by(self, batch: Batch[Event]) -> str:
        """Take note of lines and return the offset after them."""
        for line in batch.lines:
            self._digest.update((line or b"") + b"\n")
        return f"{batch.end}.{self._digest.hexdigest()[:_DIGITS]}"


class _Learning(_Course[Event]):
    """Learning, each line by itself.

    Without a source a line is known by its event's id only. With one, lines count up to
    where the source stands and are not learned again.
    """

    _source: _Source | None = None
    _known_at = ""

    async def begin(self, source: str) -> None:
        """Take the body as the source of that name."""
        offset = await self._patiently(lambda a: a.offset(f"ndjson:{source}"), again=True)
        await self._stand_at(_Source(source, offset))

    async def _stand_at(self, source: _Source) -> None:
        self._source = source
        if source.lines:
            await self._patiently(lambda appender: appender.read(), again=True)
            self._known_at = str((await self._appender()).replica.position)

    async def end(self, lines: int) -> None:
        """Check that the source did not bring more lines before."""
        if self._source is not None and self._source.lines > lines:
            raise _another_body(self._source)

    async def run(self, batch: Batch[Event]) -> list[LineAnswer]:
        source = self._source
        if source is None:
            return await self._learned(batch, None)
        answers: list[LineAnswer] = []
        while batch.end > batch.start:
            if source.lines > batch.start:
                known, batch = batch.split(source.lines)
                passed = source.pass_by(known)
                if known.end == source.lines and passed != source.offset:
                    raise _another_body(source)
                answers += await self._learned(known, None, known=True)
                continue
            digest = source._digest.copy()
            span = Span(source.name, source.offset, source.pass_by(batch))
            try:
                answers += await self._learned(batch, span)
            except _Moved as moved:
                source._digest = digest
                source.stand_at(moved.offset)
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
        self, batch: Batch[Event], span: Span | None, known: bool = False
    ) -> list[LineAnswer]:
        appender = await self._patiently(_itself, again=True)
        refused = self._refuse(batch, appender)
        answers: list[LineAnswer]
        if known:
            answers = [DuplicateLine(number, self._known_at) for number in batch.numbers]
        elif batch.items or span is not None:
            answers = await self._fed(batch, span)
        else:
            answers = []
        return _in_order(answers + refused, batch)

    def _refuse(self, batch: Batch[Event], appender: Appender) -> list[LineAnswer]:
        """Take out of the batch what the model can refuse before it is logged."""
        fold, closely = appender.replica.fold, appender.entry.spec.may_refuse
        found = faults_of(batch.items, fold, closely)
        if not found:
            return []
        faults: dict[int, list[Refused]] = {}
        for i, fault in found:
            faults.setdefault(i, []).append(fault)
        answers: list[LineAnswer] = [
            _rejected(batch.numbers[i], *mine, logged=False) for i, mine in faults.items()
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

        async def feed(appender: Appender) -> tuple[Appender, Fed]:
            if span is None:
                return appender, await appender.learn_each(batch.items, payload)
            return appender, await appender.feed(batch.items, payload, span)

        try:
            appender, fed = await self._patiently(feed, again)
        except Unavailable as error:
            if not again:
                error.detail += (
                    f" Lines {batch.numbers[0]} to {batch.numbers[-1]} may have counted: without "
                    "ids and without ?source= nobody can tell."
                )
            raise
        if fed.learned is None:
            raise _Moved(fed.offset)
        return _answered(batch, appender, fed)


class _Moved(Exception):
    """The source stands elsewhere: another call brings it, or an answer got lost."""

    def __init__(self, offset: str) -> None:
        self.offset = offset


async def _itself(appender: Appender) -> Appender:
    return appender


def _answered(batch: Batch[Event], appender: Appender, fed: Fed) -> list[LineAnswer]:
    assert fed.learned is not None  # noqa: S101 - checked by the only caller
    at, label = str(fed.learned.position), appender.replica.fold.answers.label
    outcomes: Any = fed.learned.outcomes
    answers: list[LineAnswer] = [
        DuplicateLine(number, at)
        if o is None
        else _rejected(number, o, logged=True)
        if type(o) is Refused
        else LearnedLine(number, label(o[0]), o[1], o[2], o[3], o[4], at)
        for number, o in zip(batch.numbers, outcomes, strict=True)
    ]
    for i in fed.learned.early:
        answers[i] = EarlyLine(batch.numbers[i], at)
    for i, error in fed.errors.items():
        answers[i] = RejectedLine.of(batch.numbers[i], error)
    return answers


def _in_order(answers: list[LineAnswer], batch: Batch[Any]) -> list[LineAnswer]:
    """Return the answers with those for bad lines, by line."""
    if batch.faults:
        answers += [RejectedLine.of(number, error) for number, error in batch.faults.items()]
    if len(answers) > len(batch.items):
        answers.sort(key=lambda answer: answer.line)
    return answers


def _rejected(line: int, *faults: Refused, logged: bool) -> RejectedLine:
    what = "The log has it, the model could not take it" if logged else "Nothing was taken"
    details = [Detail(fault.field, fault.reason) for fault in faults]
    return RejectedLine.of(line, Unprocessable(f"{what}: see errors.", details, logged=logged))


def _another_body(source: _Source) -> Conflict:
    return Conflict(
        f"This is not the body that the source brought {source.lines} lines of. "
        "Send that one, or name another source."
    )


async def learn_lines(
    host: Host, settings: Settings, scope: Scope, receive: Receive, send: Send
) -> None:
    """Answer `POST /v1/models/{model}/learn` with a body of lines."""

    async def begin(asked: _Asked, appender: Appender) -> tuple[_Learning, Parser[Event]]:
        course = _Learning(host, settings, appender)
        if asked.source is not None:
            await course.begin(asked.source)
        return course, event_parser(appender.entry.spec.takes_mixed)

    await _stream(host, settings, (scope, receive, send), begin, LearnedLines())


async def predict_lines(
    host: Host, settings: Settings, scope: Scope, receive: Receive, send: Send
) -> None:
    """Answer `POST /v1/models/{model}/predict` with a body of lines."""

    async def begin(_: _Asked, appender: Appender) -> tuple[_Predicting, Parser[Question]]:
        position = at_least(scope)
        if position is not None:
            await appender.reach(position)
        course = _Predicting(host, settings, appender)
        return course, question_parser(appender.entry.spec.takes_mixed)

    await _stream(host, settings, (scope, receive, send), begin, PredictedLines())


async def _stream(
    host: Host,
    settings: Settings,
    request: tuple[Scope, Receive, Send],
    begin: Callable[[_Asked, Appender], Awaitable[tuple[_Course[T], Parser[T]]]],
    summary: LearnedLines | PredictedLines,
) -> None:
    """Read, run and answer batch after batch."""
    scope, receive, send = request
    answer, reader, line = Answer(send, "each", summary), None, None
    try:
        asked = _asked(scope)
        answer = Answer(send, asked.results, summary)
        name = scope["path_params"]["model"]
        course, parser = await begin(asked, host.live(name) or await host.open(name))
        reader, line = LineReader(receive, parser, settings.max_line_bytes), 1
        while (batch := await reader.next()) is not None:
            await answer.add(await course.run(batch))
            line = batch.end + 1
        if reader.hung_up:
            return
        await course.end(line - 1)
        await answer.finish()
    except ServiceError as error:
        await answer.give_up(error, line)
    except Exception:  # noqa: BLE001 - logged there; the client gets a problem document
        await answer.give_up(internal_error(scope["path"]), line)
    finally:
        if reader is not None:
            reader.close()
