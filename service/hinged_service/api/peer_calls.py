"""Learn calls that other workers of the service hand to this one, the owner of their streams.

It does nothing about a call, and answers so, if it knows another model by the name, has no room or
stops: the worker that got the call then answers it.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from starlette.types import Scope

from hinged_service.api.events import Learning
from hinged_service.api.forwarding import REQUEST_ID
from hinged_service.api.problems import as_service_error, problem
from hinged_service.engine.live_model import LiveModel
from hinged_service.errors import Busy, ModelGone, ServiceError
from hinged_service.server.admission import HELD, AdmissionControl, RequestLease
from hinged_service.server.fast_path import NO_HEADERS, Headers
from hinged_service.server.peers import NOT_TAKEN, PeerAnswer, PeerCall, Serving
from hinged_service.telemetry import request_context

__all__ = ["PeerCalls"]


class PeerCalls:
    """Takes the calls of other workers.

    Parameters
    ----------
    learning
        Answers them.
    control
        The bounds of the worker's requests.

    """

    def __init__(self, learning: Learning, control: AdmissionControl) -> None:
        self._learning = learning
        self._control = control
        self._tasks: set[asyncio.Task[None]] = set()

    def __call__(self, call: PeerCall, peer: Serving, /) -> None:
        """Answer a call."""
        reply = _PeerReply(call, peer)
        if self._learning.registry.stopping.begun or not reply.enter(self._control):
            reply.take_ordinary_way()
        elif not self._at_once(call, reply):
            task = asyncio.create_task(self._answer(call, reply))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _at_once(self, call: PeerCall, reply: _PeerReply) -> bool:
        live_model = self._learning.registry.live(call.model)
        if live_model is not None and live_model.entry.uid == call.uid:
            with contextlib.suppress(Exception):  # the ordinary way meets it again, and reports it
                return self._learning.at_once(call.model, call.body, reply)
        return False

    async def _answer(self, call: PeerCall, reply: _PeerReply) -> None:
        scope = reply.copied_scope()
        request_context.current.set(scope)
        learning = self._learning
        try:
            live_model = await self._model_of(call)
            if live_model is None:
                reply.take_ordinary_way()
                return
            answer = await learning.answer(live_model, call.body, scope)
        except ModelGone:
            reply.take_ordinary_way()
        except Exception as error:  # noqa: BLE001 - logged there
            reply.refuse(*problem(as_service_error(error, learning.path)))
        else:
            whole = answer if isinstance(answer, bytes) else b"".join(answer)
            reply.send(whole, learning.own_headers)

    async def _model_of(self, call: PeerCall) -> LiveModel | None:
        """Return the model of a call; `None` if the name has another meaning or none here."""
        try:
            found = await self._learning.registry.open(call.model)
        except ServiceError:  # the caller meets it, too, and reports it
            return None
        return found if (found.name, found.entry.uid) == (call.model, call.uid) else None


class _PeerReply:
    """The `Reply` to a call of another worker."""

    __slots__ = ("_call", "_peer", "_scope")

    def __init__(self, call: PeerCall, peer: Serving) -> None:
        self._call = call
        self._peer = peer
        headers = [(REQUEST_ID, call.request_id)] if call.request_id else []
        self._scope: dict[str, Any] = {"headers": headers, "query_string": b"", "path": ""}

    def enter(self, control: AdmissionControl) -> bool:
        """Count the call among the worker's requests; `False` if there are too many."""
        try:
            control.enter(self._scope).add(len(self._call.body))
        except Busy:
            return False
        return True

    def copied_scope(self) -> Scope:
        """Return a scope with the client's id of the request."""
        return self._scope

    def send(self, body: bytes, more: Headers = NO_HEADERS) -> None:
        """Give the good answer."""
        self._send_answer(200, more, body)

    def refuse(self, status: int, headers: Headers, body: bytes) -> None:
        """Give another answer."""
        self._send_answer(status, headers, body)

    def take_ordinary_way(self) -> None:
        """Leave the answer to the worker that called."""
        self._send_answer(NOT_TAKEN, [], b"")

    def _send_answer(self, status: int, headers: Headers, body: bytes) -> None:
        held: RequestLease | None = self._scope.get(HELD)
        if held is not None:
            held.leave()
        self._peer.answer(PeerAnswer(self._call.number, status, headers, body))
