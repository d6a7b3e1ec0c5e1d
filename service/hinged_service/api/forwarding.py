"""Forwarding of learn calls to another worker of the service, the owner of the stream.

The worker that got a call has checked its key and admitted it; the owner does the rest
(`api.peer_calls`). If the owner did nothing, or its answer got lost but all events have ids, the
call goes on in the worker that got it.
"""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.types import Scope

from hinged_service.api.problems import problem
from hinged_service.errors import ServiceError, Unavailable
from hinged_service.server.admission import HELD, RequestLease
from hinged_service.server.fast_path import Headers, PlainCall, Reply
from hinged_service.server.owners import Owners
from hinged_service.server.peers import NOT_TAKEN, Link, Lost, PeerAnswer
from hinged_service.store import index
from hinged_service.store.connection import Connection
from hinged_service.telemetry import request_context
from hinged_service.wire.decoding import parse_events

__all__ = ["REQUEST_ID", "Forwarding"]

_MOST_BYTES: Final = 2**20
"""Most bytes of a body that is handed on: a larger one takes longer to send than to learn."""
REQUEST_ID: Final = b"x-request-id"
_OPENING = (b"{", b"[")


class Forwarding:
    """The way of learn calls to the owners of their streams.

    Parameters
    ----------
    owners
        The other workers.
    connection
        The connection, whose index entries are cached.
    here
        Answers plain calls in this worker.
    max_events
        Longest array.

    Attributes
    ----------
    path
        The template of the calls' path.

    """

    def __init__(
        self, owners: Owners, connection: Connection, here: PlainCall, max_events: int
    ) -> None:
        self._owners = owners
        self._connection = connection
        self._here = here
        self._max_events = max_events
        self.path = here.path

    def at_once(self, model: str, body: bytes, reply: Reply) -> bool:
        """Hand on a plain call, to be answered by `reply`, or answer it here."""
        found = self._owner(model, body)
        if found is None or body[:1] not in _OPENING or b"\0" in body[:2]:
            return self._here.at_once(model, body, reply)
        link, uid = found
        request_id = _request_id(reply.copied_scope()["headers"])
        link.call(model, uid, request_id, body, _Relayed(reply, body, self._max_events))
        return True

    async def answer(self, model: str, body: bytes, scope: Scope) -> PeerAnswer | None:
        """Return the owner's answer; `None`: this worker answers.

        Raises
        ------
        Unavailable
            The answer got lost, and the call cannot be repeated.

        """
        found = self._owner(model, body)
        if found is None:
            return None
        link, uid = found
        answer: asyncio.Future[PeerAnswer] = asyncio.get_running_loop().create_future()
        link.call(model, uid, _request_id(scope["headers"]), body, answer)
        try:
            peer_answer = await answer
        except Lost:
            if _may_repeat(body, self._max_events):
                return None
            raise _lost() from None
        held: RequestLease = scope[HELD]
        held.hold_answer(len(peer_answer.body))
        return None if peer_answer.status == NOT_TAKEN else peer_answer

    def _owner(self, model: str, body: bytes) -> tuple[Link, str] | None:
        """Return the other worker that owns the stream of a model, and the model's uid."""
        entry = index.cached_entry(self._connection, model)  # None of an alias
        if entry is None or len(body) > _MOST_BYTES:
            return None
        link = self._owners.of(entry.stream)
        return None if link is None else (link, entry.uid)


class _Relayed:
    """The `Answer` of an owner, for a reply of the fast path."""

    __slots__ = ("_body", "_done", "_max_events", "_reply")

    def __init__(self, reply: Reply, body: bytes, max_events: int) -> None:
        self._reply = reply
        self._body = body
        self._max_events = max_events
        self._done = False

    def done(self) -> bool:
        """Return whether it was sent."""
        return self._done

    def exception(self) -> None:
        """Do nothing: the client has it."""

    def set_result(self, peer_answer: PeerAnswer, /) -> None:
        """Send the client the owner's answer."""
        self._done = True
        if peer_answer.status == 200:
            self._reply.send(peer_answer.body, peer_answer.headers)
        elif peer_answer.status == NOT_TAKEN:
            self._reply.take_ordinary_way()
        else:
            self._reply.refuse(peer_answer.status, peer_answer.headers, peer_answer.body)

    def set_exception(self, exception: BaseException, /) -> None:
        """Answer here after all, unless that might count an event twice."""
        self._done = True
        if _may_repeat(self._body, self._max_events):
            self._reply.take_ordinary_way()
        else:
            self._reply.refuse(*_problem(_lost(), self._reply.copied_scope()))


def _request_id(headers: Headers) -> bytes:
    return next((value for name, value in headers if name == REQUEST_ID), b"")


def _may_repeat(body: bytes, max_events: int) -> bool:
    """Return whether a call whose answer got lost counts once if it is made again."""
    try:
        events, _, _ = parse_events(body, max_events, mixed=True)
    except ServiceError:
        return True  # nothing was taken of it
    return all(event.id is not None for event in events)


def _lost() -> Unavailable:
    return Unavailable(
        "The worker that learns this model did not answer. The events may have been taken; the "
        "same ones with ids may be sent again.",
        retry_after_s=1,
    )


def _problem(error: ServiceError, scope: Scope) -> tuple[int, Headers, bytes]:
    token = request_context.current.set(scope)
    try:
        return problem(error)
    finally:
        request_context.current.reset(token)
