"""Predict and learn: plain ASGI, so that little stands between the socket and the model.

FastAPI's per-request machinery would take several times the time of the work
itself. The calls still are in the OpenAPI, with the very types that validate
them.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import msgspec
from starlette.types import Receive, Scope, Send

from hinged_service.api import later_answers
from hinged_service.api.access import open_model
from hinged_service.api.bodies import are_lines, asked_position, asked_proba, read_json_body
from hinged_service.api.forwarding import Forwarding
from hinged_service.api.large_answers import (
    PIECE_BYTES,
    outcome_bytes,
    pieces_of_array,
    prediction_bytes,
    predictions_at_once,
    reserve,
    send_pieces,
)
from hinged_service.api.later_answers import learned_answers, unindexed
from hinged_service.api.ndjson.routes import check_query, learn_lines, predict_lines
from hinged_service.api.problems import GUARDS, as_service_error, problem
from hinged_service.engine.live_model import LiveModel
from hinged_service.engine.long_work import LARGE_BYTES, in_thread
from hinged_service.engine.refusals import refused_by_model
from hinged_service.engine.registry import ModelRegistry
from hinged_service.engine.state_access import TAKEN_STATE
from hinged_service.errors import (
    Conflict,
    Expired,
    ModelGone,
    ServiceError,
    Unprocessable,
)
from hinged_service.model.predictor import Label
from hinged_service.model.results import Rejection
from hinged_service.server.admission import HELD, AdmissionControl
from hinged_service.server.fast_path import Headers, Reply
from hinged_service.server.owners import worker_name
from hinged_service.server.peers import PeerAnswer
from hinged_service.settings import Settings
from hinged_service.wire.decoding import parse_events, parse_questions, sent_features
from hinged_service.wire.events import Question
from hinged_service.wire.proba import USUAL
from hinged_service.wire.responses import Prediction as Predicted

__all__ = ["HEADERS", "Call", "Learning", "Predicting"]


_encode = msgspec.json.Encoder().encode
T = TypeVar("T")

_FEWER_EVENTS = "Send fewer events at once."
_FEWER = (
    "Send fewer events at once or as lines, or ask for fewer probabilities: ?proba=top:3 or "
    "?proba=none."
)
_OK = 200
HEADERS = [(b"content-type", b"application/json"), *GUARDS]


class Call(abc.ABC):
    """The common course of a hot call, errors included.

    Attributes
    ----------
    registry
        The worker's models; set when the app starts.
    path
        The template of its path.
    own_headers
        Further headers of a good answer that this worker makes.

    """

    registry: ModelRegistry
    path: str
    own_headers: Headers = []  # noqa: RUF012 - replaced, never changed

    def __init__(self, settings: Settings) -> None:
        self._max_body_bytes = settings.max_body_bytes
        self._max_events = settings.max_events_per_call
        self._max_answer_bytes = settings.max_answer_bytes
        self._settings = settings

    @abc.abstractmethod
    def at_once(self, model: str, body: bytes, reply: Reply) -> bool:
        """Answer a lone event by `reply`, now or later; `False`: nothing was done."""

    @abc.abstractmethod
    async def answer(self, live_model: LiveModel, body: bytes, scope: Scope) -> bytes | list[bytes]:
        """Return the answer to a body of JSON, a large one in pieces."""

    @abc.abstractmethod
    async def _on_lines(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a body of lines."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            if are_lines(scope):
                await self._on_lines(scope, receive, send)
                return
            if scope["query_string"]:
                check_query(scope)
            name: str = scope["path_params"]["model"]
            body = await read_json_body(scope, receive, self._max_body_bytes)
            answer: bytes | list[bytes]
            peer_answer = await self._peer_answer(name, body, scope)
            if peer_answer is None:
                peer_answer = PeerAnswer(0, _OK, self.own_headers)
                answer = await self._answer_here(name, body, scope)
            else:
                answer = peer_answer.body
            status, headers = peer_answer.status, peer_answer.headers
            if status == _OK:
                headers = [*HEADERS, *headers]
                if isinstance(answer, bytes):
                    answer += b"\n"
        except Exception as error:  # noqa: BLE001 - logged there; the client gets a problem document
            status, headers, answer = problem(as_service_error(error, self.path))
        size = len(answer) if isinstance(answer, bytes) else sum(map(len, answer)) + 1
        length = (b"content-length", b"%d" % size)
        await send({"type": "http.response.start", "status": status, "headers": [length, *headers]})
        if isinstance(answer, bytes):
            await send({"type": "http.response.body", "body": answer})
        else:
            body = b""
            await send_pieces(scope, send, answer)

    async def _peer_answer(self, model: str, body: bytes, scope: Scope) -> PeerAnswer | None:
        """Return the answer of another worker, `None` if this one answers."""
        return None

    async def _read(
        self, parse: Callable[[bytes, int, bool, bool], T], live_model: LiveModel, body: bytes
    ) -> T:
        """Return what a body of JSON has; a large one is read while the loop goes on."""
        mixed, gathered = live_model.accepts_non_numeric, live_model.takes_gathered
        read = partial(parse, body, self._max_events, mixed, gathered)
        return read() if len(body) <= LARGE_BYTES else await in_thread(read)

    async def _answer_here(self, name: str, body: bytes, scope: Scope) -> bytes | list[bytes]:
        """Answer a body of JSON by the model of a name."""
        live_model = self.registry.live(name) or await open_model(scope, self.registry, name)
        try:
            return await self.answer(live_model, body, scope)
        except ModelGone:
            self.registry.forget(name, live_model)
            live_model = await open_model(scope, self.registry, name)
            return await self.answer(live_model, body, scope)


class _Pieces(NamedTuple):
    """The sizes of an answer's pieces: predictions of a piece, probabilities of a prediction."""

    at_once: int
    question_bytes: int
    most: int
    control: AdmissionControl


class Predicting(Call):
    """`POST /v1/models/{model}/predict`."""

    path = "/v1/models/{model}/predict"

    def at_once(self, model: str, body: bytes, reply: Reply) -> bool:
        """Answer a lone event by `reply`, without waiting unless it has an id."""
        live_model = self.registry.live(model)
        if live_model is None or body[:1] != b"{" or not live_model.can_predict_now(len(body)):
            return False
        try:
            questions, body, _ = parse_questions(
                body, 1, live_model.accepts_non_numeric, live_model.takes_gathered
            )
        except ServiceError:
            return False
        predicted = live_model.predict_now(questions)
        if predicted.faults:
            return False
        (p,) = predicted.items
        answer = _encode(Predicted(p.y, p.score, p.proba, predicted.position))
        if questions[0].id is None:
            reply.send(answer)
        else:
            later = later_answers.Kept(reply, live_model, answer)
            live_model.delayed.keep_now(
                questions, sent_features(questions, body, False), [p.y], later
            )
        return True

    async def _on_lines(self, scope: Scope, receive: Receive, send: Send) -> None:
        await predict_lines(self.registry, self._settings, scope, receive, send)

    async def answer(self, live_model: LiveModel, body: bytes, scope: Scope) -> bytes | list[bytes]:
        """Return the predictions."""
        questions, body, many = await self._read(parse_questions, live_model, body)
        at_least, most = None, USUAL
        if scope["query_string"]:
            at_least, most = asked_position(scope), asked_proba(scope)
        if many or most > USUAL:
            state = await live_model.at_rest()
            each_bytes = prediction_bytes(state, most)
            reserve(scope, len(questions) * each_bytes, self._max_answer_bytes, _FEWER)
            at_once = predictions_at_once(state, each_bytes)
            if len(questions) > at_once:
                kept_in = sent_features(questions, body, many) if _any_id(questions) else None
                if at_least is not None:
                    await live_model.freshness.wait_for_position(at_least)
                each = _Pieces(at_once, len(body) // len(questions), most, scope[HELD].control)
                return await self._in_pieces(live_model, questions, kept_in, each)
        try:
            size = len(body)
            found, at, stale_s, faults = await live_model.predict(questions, size, at_least, most)
            if faults:
                raise refused_by_model(faults, logged=False)
            answers = []
            kept = False
            for p, question in zip(found, questions, strict=True):
                answers.append(Predicted(p.y, p.score, p.proba, at, stale_s))
                kept = kept or question.id is not None
            if kept:
                labels = [p.y for p in found]
                await live_model.delayed.keep(
                    questions, sent_features(questions, body, many), labels
                )
        except (Conflict, Expired, Unprocessable) as error:
            if not many:
                unindexed(error)
            raise
        return _encode(answers if many else answers[0])

    async def _in_pieces(
        self,
        live_model: LiveModel,
        questions: Sequence[Question],
        sent: Sequence[str] | None,
        each: _Pieces,
    ) -> list[bytes]:
        """Return the answer to many questions; each piece has a position of its own.

        `sent` is the JSON of their features if predictions wait for labels.
        """
        pieces: list[bytes] = []
        faults: list[tuple[int, Rejection]] = []
        labels: list[Label | None] = []
        for start in range(0, len(questions), each.at_once):
            some = questions[start : start + each.at_once]
            await each.control.take_turn()
            size = len(some) * each.question_bytes
            found, at, stale_s, wrong = await live_model.predict(some, size, most=each.most)
            faults += [(start + i, fault) for i, fault in wrong]
            if not faults:
                labels += [p.y for p in found]
                answers = [Predicted(p.y, p.score, p.proba, at, stale_s) for p in found]
                pieces.append((b"," if start else b"[") + _encode(answers)[1:-1])
        if faults:
            raise refused_by_model(faults, logged=False)
        if sent is not None:
            await live_model.delayed.keep(questions, sent, labels)
        pieces.append(b"]")
        return pieces


class Learning(Call):
    """`POST /v1/models/{model}/learn`.

    Attributes
    ----------
    forwarding
        The way to the owners of streams, if the worker is not alone.

    """

    path = "/v1/models/{model}/learn"
    forwarding: Forwarding | None = None

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.own_headers = [(b"x-hinged-owner", worker_name().encode())]

    def at_once(self, model: str, body: bytes, reply: Reply) -> bool:
        """Append a lone event, and answer by `reply` when the log has it."""
        live_model = self.registry.live(model)
        if live_model is None or body[:1] != b"{" or not live_model.can_learn_now(len(body)):
            return False
        try:
            events, payload, _ = parse_events(
                body, 1, live_model.accepts_non_numeric, live_model.takes_gathered
            )
            label = live_model.state.answers.label
            answer = later_answers.Learned(reply, live_model, label, self.own_headers)
            live_model.learn_now(events, payload, answer)
        except ServiceError:
            return False
        return True

    async def _peer_answer(self, model: str, body: bytes, scope: Scope) -> PeerAnswer | None:
        if self.forwarding is None:
            return None
        return await self.forwarding.answer(model, body, scope)

    async def _on_lines(self, scope: Scope, receive: Receive, send: Send) -> None:
        await learn_lines(self.registry, self._settings, scope, receive, send)

    async def answer(self, live_model: LiveModel, body: bytes, scope: Scope) -> bytes | list[bytes]:
        """Return the outcomes of the events, once the log has them."""
        many, each_bytes = True, 0
        try:
            events, payload, many = await self._read(parse_events, live_model, body)
            state = live_model.state  # it may have been taken while the body was read
            if state is TAKEN_STATE:
                state = await live_model.at_rest()
            label = state.answers.label  # the same for all states of the model
            if not events:
                return b"[]"
            if many:
                each_bytes = outcome_bytes(state, events)
                reserve(scope, len(events) * each_bytes, self._max_answer_bytes, _FEWER_EVENTS)
            learned = await live_model.learn(events, payload)
        except ServiceError as error:
            live_model.count_refused(error.status)
            if not many:
                unindexed(error)
            raise
        answers = learned_answers(label, learned)
        if len(answers) * each_bytes > PIECE_BYTES:
            return pieces_of_array(answers, each_bytes)
        return _encode(answers if many else answers[0])


def _any_id(questions: Sequence[Question]) -> bool:
    """Return whether any of the predictions waits for its label."""
    return any(question.id is not None for question in questions)
