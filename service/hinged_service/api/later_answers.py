"""Answers that the fast path gives later: once the log has the event or a prediction is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from hinged import Outcome
from hinged_service.api.problems import as_service_error, problem
from hinged_service.engine.live_model import AppendResult, LiveModel, checked
from hinged_service.engine.refusals import refused_prediction
from hinged_service.errors import Detail, ModelGone, ServiceError
from hinged_service.model.predictor import Label
from hinged_service.server.fast_path import NO_HEADERS, Headers, Reply
from hinged_service.store.pending_predictions import KeepRefusal
from hinged_service.telemetry import request_context
from hinged_service.wire import responses
from hinged_service.wire.position import position_text

__all__ = ["Kept", "Learned", "learned_answers", "unindexed"]

Part = TypeVar("Part")
LabelOf = Callable[[Any], Label | None]

_encode = msgspec.json.Encoder().encode


class _Later(Generic[Part]):
    """An `Answer` that a reply waits for.

    Parameters
    ----------
    part
        What a good answer is made with.
    headers
        Its further headers.

    """

    __slots__ = ("_done", "_headers", "_live_model", "_part", "_reply")
    path: str

    def __init__(
        self, reply: Reply, live_model: LiveModel, part: Part, headers: Headers = NO_HEADERS
    ) -> None:
        self._reply = reply
        self._live_model = live_model
        self._part = part
        self._headers = headers
        self._done = False

    def done(self) -> bool:
        """Return whether it was given: a client that hung up changes nothing."""
        return self._done

    def exception(self) -> None:
        """Take no note: the client has it."""

    def set_exception(self, exception: BaseException, /) -> None:
        """Send the problem; if the model is gone nothing was taken, and the call starts again."""
        self._done = True
        if isinstance(exception, ModelGone):
            self._reply.take_ordinary_way()
            return
        token = request_context.current.set(self._reply.copied_scope())
        try:
            status, headers, body = problem(self._service_error(exception))
        finally:
            request_context.current.reset(token)
        self._reply.refuse(status, headers, body)

    def _service_error(self, error: BaseException) -> ServiceError:
        if isinstance(error, ServiceError):
            unindexed(error)
        return as_service_error(error, self.path)


class Learned(_Later[LabelOf]):
    """The answer of a learn call; its part is the function that names a label."""

    __slots__ = ()
    path = "/v1/models/{model}/learn"

    def set_result(self, result: AppendResult, /) -> None:
        """Send the outcome of the event."""
        self._done = True
        try:
            answer = _encode(learned_answers(self._part, checked(result))[0])
        except Exception as error:  # noqa: BLE001 - the client gets it
            self.set_exception(error)
        else:
            self._reply.send(answer, self._headers)

    def _service_error(self, error: BaseException) -> ServiceError:
        answered = super()._service_error(error)
        if answered is error:
            self._live_model.count_refused(answered.status)
        return answered


class Kept(_Later[bytes]):
    """The answer to a prediction with an id, made before."""

    __slots__ = ()
    path = "/v1/models/{model}/predict"

    def set_result(self, result: tuple[int, KeepRefusal] | None, /) -> None:
        """Send the prediction if it is kept."""
        self._done = True
        if result is None:
            self._reply.send(self._part, self._headers)
        else:
            self.set_exception(refused_prediction(0, result[1]))


def learned_answers(label: LabelOf, learned: AppendResult) -> list[Any]:
    """Return the answer to each event that was appended; `label` is as in `Learned`."""
    at = position_text(learned.position)
    answers: list[responses.Learned | responses.Duplicate | responses.Early] = []
    for o in learned.outcomes:
        if isinstance(o, Outcome):
            made = responses.Learned
            answers.append(made(label(o.y_pred), o.score, o.mistake, o.updated, o.hinge_loss, at))
        else:
            answers.append(responses.Duplicate(at))
    for i in learned.early:
        answers[i] = responses.Early(at)
    return answers


def unindexed(error: ServiceError) -> None:
    """Name the fields of a lone event without an index."""
    error.errors = [Detail(d.field.removeprefix("[0]."), d.reason) for d in error.errors]
