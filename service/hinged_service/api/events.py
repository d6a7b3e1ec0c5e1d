"""Predict and learn: plain ASGI, so that little stands between the socket and the model.

FastAPI's per-request machinery would take several times the time of the work
itself. The calls still are in the OpenAPI, with the very types that validate
them.
"""

from __future__ import annotations

import abc
from time import perf_counter

import msgspec
from starlette.types import Receive, Scope, Send

from hinged import Outcome
from hinged_service.api.access import open_model
from hinged_service.api.bodies import are_lines, asked_position, read_json_body
from hinged_service.api.ndjson.routes import check_query, learn_lines, predict_lines
from hinged_service.api.problems import GUARDS, internal_error, problem
from hinged_service.engine.live_model import LiveModel
from hinged_service.engine.refusals import refused_by_model
from hinged_service.engine.registry import ModelRegistry
from hinged_service.errors import (
    Conflict,
    Detail,
    Expired,
    ModelGone,
    ServiceError,
    Unprocessable,
)
from hinged_service.server.admission import HELD
from hinged_service.server.lingering_close import Lingering
from hinged_service.settings import Settings
from hinged_service.telemetry.request_context import Beginning, Begun
from hinged_service.wire.decoding import parse_events, parse_questions, sent_features
from hinged_service.wire.responses import Duplicate, Early, Learned
from hinged_service.wire.responses import Prediction as Predicted

__all__ = ["Call", "Learning", "Predicting"]


_encode = msgspec.json.Encoder().encode
_JSON = [(b"content-type", b"application/json"), *GUARDS]


class Call(abc.ABC):
    """The common course of a hot call, errors included.

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

    @abc.abstractmethod
    async def _answer(self, live_model: LiveModel, body: bytes, scope: Scope) -> bytes:
        """Return the answer to a body of JSON."""

    @abc.abstractmethod
    async def _on_lines(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a body of lines."""

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
            live_model = self.registry.live(name) or await open_model(scope, self.registry, name)
            status, headers = 200, _JSON
            try:
                answer = await self._answer(live_model, body, scope)
            except ModelGone:
                self.registry.forget(name, live_model)
                live_model = await open_model(scope, self.registry, name)
                answer = await self._answer(live_model, body, scope)
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
        questions, body, many = parse_questions(
            body, self._max_events, live_model.accepts_non_numeric
        )
        at_least = asked_position(scope) if scope["query_string"] else None
        try:
            found, at, stale_s, faults = await live_model.predict(questions, at_least)
            if faults:
                raise refused_by_model(faults, logged=False)
            answers = []
            kept = False
            for p, question in zip(found, questions, strict=True):
                answers.append(Predicted(p.y, p.score, p.proba, at, stale_s))
                kept = kept or question.id is not None
            if kept:
                labels = [p.y for p in found]
                await live_model.delayed.keep(questions, sent_features(body, many), labels)
        except (Conflict, Expired, Unprocessable) as error:
            _unindexed(error, many)
            raise
        return _encode(answers if many else answers[0])


class Learning(Call):
    """`POST /v1/models/{model}/learn`."""

    path = "/v1/models/{model}/learn"

    async def _on_lines(self, scope: Scope, receive: Receive, send: Send) -> None:
        await learn_lines(self.registry, self._settings, scope, receive, send)

    async def _answer(self, live_model: LiveModel, body: bytes, scope: Scope) -> bytes:
        state, many = live_model.state, True
        try:
            events, payload, many = parse_events(
                body, self._max_events, state.accepts_non_numeric, state.small_vocabulary
            )
            if not events:
                return b"[]"
            learned = await live_model.learn(events, payload)
        except ServiceError as error:
            live_model.count_refused(error.status)
            _unindexed(error, many)
            raise
        at, label = str(learned.position), state.answers.label
        answers: list[Learned | Duplicate | Early] = []
        for o in learned.outcomes:
            if isinstance(o, Outcome):
                answers.append(
                    Learned(label(o.y_pred), o.score, o.mistake, o.updated, o.hinge_loss, at)
                )
            else:
                answers.append(Duplicate(at))
        for i in learned.early:
            answers[i] = Early(at)
        return _encode(answers if many else answers[0])


def _unindexed(error: ServiceError, many: bool) -> None:
    """Name the fields of a lone event without an index."""
    if not many:
        error.errors = [Detail(d.field.removeprefix("[0]."), d.reason) for d in error.errors]
