"""Answers that begin with lines of progress, for callers that accept them.

Work that is over soon, or reports nothing, is answered as for any other caller. Else the answer is
a stream: lines of `Progress`, then one `AnswerHead`, then the body of the ordinary answer. So the
worker that does the work also reports on it, and no other worker takes part.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from starlette.types import Message, Receive, Scope, Send

from hinged_service.api.problems import as_service_error, problem
from hinged_service.tasks import cancel
from hinged_service.telemetry.request_context import BEGINNING, Beginning, template
from hinged_service.wire.progress import (
    PROGRESS_TYPE,
    AnswerHead,
    OnProgress,
    Progress,
    no_progress,
)

__all__ = ["answer_with_progress", "on_progress_of", "progress_answer", "takes_progress"]

_ON_PROGRESS: Final = "hinged.on_progress"
_EVERY_S: Final = 0.2
_HEADERS: Final = [
    (b"content-type", PROGRESS_TYPE.encode()),
    (b"x-accel-buffering", b"no"),
]

_encode = msgspec.json.Encoder().encode

_ABOUT: Final = "For callers that accept it, if the work takes longer than 0.2 s."


def progress_answer(status: int) -> dict[str, Any]:
    """Return the OpenAPI of such an answer, beside the ordinary one of a status."""
    shapes = [{"$ref": f"#/components/schemas/{name}"} for name in ("Progress", "AnswerHead")]
    schema = {"description": _ABOUT, "anyOf": shapes}
    return {"responses": {str(status): {"content": {PROGRESS_TYPE: {"schema": schema}}}}}


def takes_progress(scope: Scope) -> bool:
    """Return whether the caller accepts lines."""
    return any(
        name == b"accept" and PROGRESS_TYPE.encode() in value.lower()
        for name, value in scope["headers"]
    )


def on_progress_of(scope: Scope) -> OnProgress:
    """Return the function that reports progress to a request's caller, from any thread.

    It raises when the caller has hung up.
    """
    on_progress: OnProgress = scope.get(_ON_PROGRESS, no_progress)
    return on_progress


class _HungUp(Exception):
    """The caller of the work is gone."""


class _ProgressAnswer:
    """The answer to one caller.

    Attributes
    ----------
    begun, headed
        Whether lines were sent; whether the head was, after them.

    """

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._news: Progress | None = None
        self._gone = False
        self._tasks = [asyncio.create_task(self._lines())]
        self.begun = self.headed = False

    def note(self, progress: Progress) -> None:
        """Note progress for the next line."""
        if self._gone:
            raise _HungUp
        self._news = progress

    async def _lines(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            if (news := self._news) is None:
                continue
            self._news = None
            if not self.begun:
                start = {"type": "http.response.start", "status": 200, "headers": _HEADERS}
                await self._send(start)
                self.begun = True  # not before: it may be cancelled while it waits to be sent
                self._tasks.append(asyncio.create_task(self._look()))  # the body was read
            await self._line(news)

    async def _look(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._gone = True

    async def _line(self, what: Progress | AnswerHead) -> None:
        body = _encode(what) + b"\n"
        await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def send(self, message: Message) -> None:
        """Send the ordinary answer, behind the lines if there are any."""
        if message["type"] != "http.response.start":
            await self._send(message)
            return
        await self.end()
        if self.begun:
            self.headed = True
            beginning: Beginning = self._scope[BEGINNING]
            beginning.note(message["status"])
            headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in message["headers"]}
            await self._line(AnswerHead(message["status"], headers))
        else:
            await self._send(message)

    async def end(self) -> None:
        """Stop the reports."""
        await cancel(*self._tasks)


async def answer_with_progress(
    handle: Callable[[Scope, Receive, Send], Awaitable[None]],
    scope: Scope,
    receive: Receive,
    send: Send,
) -> None:
    """Let a route answer a caller that accepts lines."""
    answer = _ProgressAnswer(scope, receive, send)
    scope[_ON_PROGRESS] = answer.note
    try:
        await handle(scope, receive, answer.send)
    except _HungUp:
        pass
    except Exception as error:
        if answer.headed or not answer.begun:
            raise
        status, headers, body = problem(as_service_error(error, template(scope)))
        await answer.send({"type": "http.response.start", "status": status, "headers": headers})
        await answer.send({"type": "http.response.body", "body": body})
    finally:
        await answer.end()
