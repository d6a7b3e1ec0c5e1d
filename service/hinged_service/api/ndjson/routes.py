"""Learn and predict line by line (NDJSON): bodies of any length in constant memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qs

from starlette.types import Receive, Scope, Send

from hinged_service.api.access import open_model
from hinged_service.api.bodies import asked_position, asked_proba
from hinged_service.api.large_answers import prediction_bytes, predictions_at_once
from hinged_service.api.ndjson.answers import (
    Answer,
    LearnedLines,
    LineAnswer,
    PredictedLine,
    PredictedLines,
    RejectedLine,
)
from hinged_service.api.ndjson.learning import Learning
from hinged_service.api.ndjson.reader import (
    Batch,
    LineReader,
    Parser,
    T,
    event_parser,
    question_parser,
)
from hinged_service.api.ndjson.session import Course, in_order, rejected
from hinged_service.api.problems import as_service_error
from hinged_service.engine.live_model import LiveModel
from hinged_service.engine.registry import ModelRegistry
from hinged_service.errors import Conflict, Detail, Expired, ServiceError, TooLarge, Unprocessable
from hinged_service.server.admission import HELD, AdmissionControl
from hinged_service.settings import Settings
from hinged_service.telemetry.request_context import template
from hinged_service.wire.decoding import sent_features
from hinged_service.wire.events import Event, Question
from hinged_service.wire.faults import MAX_NAME
from hinged_service.wire.proba import USUAL

__all__ = ["check_query", "learn_lines", "predict_lines"]


class _Asked(NamedTuple):
    results: Literal["each", "summary"]
    source: str | None


def _asked(scope: Scope) -> _Asked:
    """Return the options in the query."""
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


def check_query(scope: Scope) -> None:
    """Check the parameters of bodies of lines, for a call with another body.

    Such a body has no source: to ignore one would let the same events count again.

    Raises
    ------
    Unprocessable
        Naming the parameter.

    """
    if _asked(scope).source is not None:
        reason = "names a body of lines only: send application/x-ndjson, or ids in the events"
        raise Unprocessable("Nothing was taken: see errors.", [Detail("source", reason)])


class _Predicting(Course[Question]):
    most = USUAL
    control: AdmissionControl

    async def parts(self, batch: Batch[Question]) -> AsyncIterator[Batch[Question]]:
        """Yield parts whose answers make one piece each."""
        while batch.end > batch.start:
            state = await self._first.at_rest()
            each_bytes = prediction_bytes(state, self.most)
            most_bytes = self._settings.max_answer_bytes
            if each_bytes > most_bytes:
                raise TooLarge(
                    f"The answer to a line may have {each_bytes} bytes, and max_answer_bytes "
                    f"allows {most_bytes}. Ask for fewer probabilities: ?proba=top:3 or "
                    "?proba=none."
                )
            at_once = predictions_at_once(state, each_bytes)
            part, batch = batch.split(batch.start + at_once)
            yield part

    async def run(self, batch: Batch[Question]) -> list[LineAnswer]:
        async def predicted(live_model: LiveModel) -> list[LineAnswer]:
            await self.control.take_turn()
            size = sum(map(len, batch.texts))
            found = await live_model.predict(batch.items, size, most=self.most)
            at, stale_s, items = found.position, found.stale_s, iter(found.items)
            faults = dict(found.faults)
            answers: list[LineAnswer] = []
            for i, number in enumerate(batch.numbers):
                if i in faults:
                    answers.append(rejected(number, faults[i], logged=False))
                else:
                    p = next(items)
                    answers.append(PredictedLine(number, p.y, p.score, p.proba, at, stale_s))
            kept = [i for i, question in enumerate(batch.items) if question.id is not None]
            if kept:
                await _keep(live_model, batch, answers, kept)
            return answers

        return in_order(await self.patiently(predicted, again=True), batch)


async def _keep(
    live_model: LiveModel, batch: Batch[Question], answers: list[Any], kept: list[int]
) -> None:
    """Keep predictions until their labels come; refuse those that cannot be."""
    kept = [i for i in kept if type(answers[i]) is PredictedLine]
    try:
        sent = [sent_features([batch.items[i]], batch.texts[i], many=False)[0] for i in kept]
        labels = [answers[i].y for i in kept]
        await live_model.delayed.keep([batch.items[i] for i in kept], sent, labels)
    except (Conflict, Expired) as refused:
        if len(kept) == 1:
            answers[kept[0]] = RejectedLine.of(batch.numbers[kept[0]], refused)
            return
        for i in kept:
            await _keep(live_model, batch, answers, [i])


async def learn_lines(
    registry: ModelRegistry, settings: Settings, scope: Scope, receive: Receive, send: Send
) -> None:
    """Answer `POST /v1/models/{model}/learn` with a body of lines."""

    async def begin(asked: _Asked, live_model: LiveModel) -> tuple[Learning, Parser[Event]]:
        course = Learning(registry, settings, live_model)
        if asked.source is not None:
            await course.begin(asked.source)
        return course, event_parser(live_model.accepts_non_numeric, live_model.takes_gathered)

    await _stream(registry, settings, (scope, receive, send), begin, LearnedLines())


async def predict_lines(
    registry: ModelRegistry, settings: Settings, scope: Scope, receive: Receive, send: Send
) -> None:
    """Answer `POST /v1/models/{model}/predict` with a body of lines."""

    async def begin(asked: _Asked, live_model: LiveModel) -> tuple[_Predicting, Parser[Question]]:
        most = asked_proba(scope)
        position = asked_position(scope)
        if position is not None:
            await live_model.freshness.wait_for_position(position)
        course = _Predicting(registry, settings, live_model)
        course.control = scope[HELD].control
        course.most = 0 if asked.results == "summary" else most
        return course, question_parser(live_model.accepts_non_numeric, live_model.takes_gathered)

    await _stream(registry, settings, (scope, receive, send), begin, PredictedLines())


async def _stream(
    registry: ModelRegistry,
    settings: Settings,
    request: tuple[Scope, Receive, Send],
    begin: Callable[[_Asked, LiveModel], Awaitable[tuple[Course[T], Parser[T]]]],
    summary: LearnedLines | PredictedLines,
) -> None:
    """Read, run and answer batch after batch."""
    scope, receive, send = request
    answer, reader, line = Answer(send, "each", summary), None, None
    failed: ServiceError | None = None
    try:
        asked = _asked(scope)
        answer = Answer(send, asked.results, summary)
        name = scope["path_params"]["model"]
        course, parser = await begin(asked, await open_model(scope, registry, name))
        reader, line = LineReader(receive, parser, settings.max_line_bytes), 1
        with registry.stopping.ending(reader.stop):
            while (batch := await reader.next()) is not None:
                async for part in course.parts(batch):
                    answers = await course.run(part)
                    course.note(answers)
                    await answer.add(answers)
                    line = part.end + 1
        await reader.end()
        if reader.hung_up:
            return
        await course.end(line - 1)
        await answer.finish()
    except Exception as error:  # noqa: BLE001 - logged there; the client gets a problem document
        failed = as_service_error(error, template(scope))
    finally:
        if reader is not None:
            reader.close()
    if failed is not None:
        await answer.give_up(failed, line)
