"""Predict and learn: plain ASGI, so that little stands between the socket and the model.

FastAPI's per-request machinery would take several times the time of the work
itself. The calls still are in the OpenAPI, with the very types that validate
them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any

import msgspec
from starlette.types import Receive, Scope, Send

import hinged
from hinged_service.api.bodies import are_lines, at_least, read_json_body
from hinged_service.api.ndjson.routes import check_query, learn_lines, predict_lines
from hinged_service.api.prechecks import note_refused, precheck
from hinged_service.api.problems import GUARDS, internal_error, problem
from hinged_service.engine.live_model import LiveModel
from hinged_service.engine.registry import ModelRegistry
from hinged_service.errors import (
    Conflict,
    Detail,
    Expired,
    ModelGone,
    NotFound,
    ServiceError,
    Unprocessable,
)
from hinged_service.model.predictor import Prediction
from hinged_service.model.state import ModelState, Rejection
from hinged_service.server.admission import HELD
from hinged_service.server.lingering_close import Lingering
from hinged_service.settings import Settings
from hinged_service.telemetry.request_context import Beginning, Begun
from hinged_service.wire.decoding import parse_events, parse_questions, sent_features
from hinged_service.wire.events import Question
from hinged_service.wire.faults import MAX_DETAILS
from hinged_service.wire.responses import Duplicate, Early, Learned
from hinged_service.wire.responses import Prediction as Predicted

__all__ = ["Call", "Learning", "Predicting"]


_encode = msgspec.json.Encoder().encode
_JSON = [(b"content-type", b"application/json"), *GUARDS]


class Call:
    """The common course of a hot call, errors included.

    Parameters
    ----------
    settings
        The worker's.

    Attributes
    ----------
    registry
        The worker's models; set when the app starts.
    path
        The template of its path.

    """

    registry: ModelRegistry
    path: str

    def __init__(self, settings: Settings) -> None:
        self._max_body_bytes = settings.max_body_bytes
        self._max_events = settings.max_events_per_call
        self._settings = settings

    async def _answer(self, live_model: LiveModel, body: bytes, scope: Scope) -> bytes:
        raise NotImplementedError

    async def _on_lines(self, scope: Scope, receive: Receive, send: Send) -> None:
        raise NotImplementedError

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> Begun:
        """Answer one request; return how and when the answer began."""
        try:
            if are_lines(scope):
                lingering = Lingering(scope, receive, send)
                begun = Beginning(lingering.send)
                await self._on_lines(scope, lingering.receive, begun)
                return begun.status, begun.at_s
            if scope["query_string"]:
                check_query(scope)
            name: str = scope["path_params"]["model"]
            body = await read_json_body(scope, receive, self._max_body_bytes)
            live_model = self.registry.live(name) or await self.registry.open(name)
            status, headers = 200, _JSON
            try:
                answer = await self._answer(live_model, body, scope)
            except ModelGone:
                self.registry.forget(name, live_model)
                answer = await self._answer(await self.registry.open(name), body, scope)
        except ServiceError as error:
            status, headers, answer = problem(error)
        except Exception:  # noqa: BLE001 - logged there; the client gets a problem document
            status, headers, answer = problem(internal_error(self.path))
        if status != 200 and not scope[HELD].whole:
            send = Lingering(scope, receive, send).send
        length = (b"content-length", b"%d" % len(answer))
        at_s = perf_counter()
        await send({"type": "http.response.start", "status": status, "headers": [length, *headers]})
        await send({"type": "http.response.body", "body": answer})
        return status, at_s


class Predicting(Call):
    """`POST /v1/models/{model}/predict`."""

    path = "/v1/models/{model}/predict"

    async def _on_lines(self, scope: Scope, receive: Receive, send: Send) -> None:
        await predict_lines(self.registry, self._settings, scope, receive, send)

    async def _answer(self, live_model: LiveModel, body: bytes, scope: Scope) -> bytes:
        takes_mixed = live_model.replica.fold.accepts_non_numeric
        questions, body, many = parse_questions(body, self._max_events, takes_mixed)
        stale_s = live_model.freshness.staleness_s()
        if stale_s is not None:
            await live_model.freshness.refresh_if_stale()
            stale_s = live_model.freshness.staleness_s()
        if scope["query_string"] and (position := at_least(scope)) is not None:
            await live_model.freshness.wait_for_position(position)
            stale_s = live_model.freshness.staleness_s()
        replica = live_model.replica
        fold, at = replica.fold, str(replica.position)
        if fold.can_reject_features:
            found = _predictions(fold, questions, many)
        else:
            predict = fold.answers.predict
            found = [predict(question.x) for question in questions]
        answers = [Predicted(p.y, p.score, p.proba, at, stale_s) for p in found]
        for question in questions:
            if question.id is not None:
                try:
                    labels = [answer.y for answer in answers]
                    await live_model.delayed.keep(questions, sent_features(body, many), labels)
                except (Conflict, Expired) as refused:
                    _unindexed(refused, many)
                    raise
                break
        return _encode(answers if many else answers[0])


class Learning(Call):
    """`POST /v1/models/{model}/learn`."""

    path = "/v1/models/{model}/learn"

    async def _on_lines(self, scope: Scope, receive: Receive, send: Send) -> None:
        await learn_lines(self.registry, self._settings, scope, receive, send)

    async def _answer(self, live_model: LiveModel, body: bytes, scope: Scope) -> bytes:
        fold, many = live_model.replica.fold, True
        try:
            events, payload, many = parse_events(
                body, self._max_events, fold.accepts_non_numeric, fold.small_vocabulary
            )
            if faults := precheck(events, fold, fold.can_reject_features):
                raise _refusal(faults, many, logged=False)
            if not events:
                return b"[]"
            learned = await live_model.learn(events, payload)
        except ServiceError as error:
            note_refused(live_model, error.status)
            if isinstance(error, (Conflict, NotFound, Expired)):
                _unindexed(error, many)
            raise
        outcomes: Any = learned.outcomes
        at, label = str(learned.position), fold.answers.label
        answers: list[Any] = []
        for o in outcomes:
            if o is None:
                answers.append(Duplicate(at))
            elif type(o) is Rejection:
                late = [(i, r) for i, r in enumerate(outcomes) if type(r) is Rejection]
                raise _refusal(late, many, logged=True)
            else:
                answers.append(Learned(label(o[0]), o[1], o[2], o[3], o[4], at))
        for i in learned.early:
            answers[i] = Early(at)
        return _encode(answers if many else answers[0])


def _unindexed(refused: ServiceError, many: bool) -> None:
    """Name the field of a lone event without an index."""
    if not many:
        refused.errors = [Detail("id", fault.reason) for fault in refused.errors]


def _predictions(fold: ModelState, questions: list[Question], many: bool) -> list[Prediction]:
    """Return the answers of a model whose pipeline may refuse a feature."""
    found: list[Prediction] = []
    faults: list[tuple[int, Rejection]] = []
    for i, question in enumerate(questions):
        try:
            found.append(fold.predict(question.x))
        except hinged.InvalidEvent as error:
            faults.append((i, Rejection(error.field, error.reason)))
    if faults:
        raise _refusal(faults, many, logged=False)
    return found


def _refusal(faults: list[tuple[int, Rejection]], many: bool, logged: bool) -> Unprocessable:
    what = "The log has all of it, the model could not take some" if logged else "Nothing was taken"
    some = "" if len(faults) <= MAX_DETAILS else f" ({MAX_DETAILS} of {len(faults)} shown)"
    details = [
        Detail(f"[{i}].{fault.field}" if many else fault.field, fault.reason)
        for i, fault in faults[:MAX_DETAILS]
    ]
    return Unprocessable(f"{what}: see errors{some}.", details, logged=logged)


Handler = Callable[[Scope, Receive, Send], Awaitable[Any]]
