"""The current request, and the id by which its client and the log know it."""

from __future__ import annotations

import re
import secrets
from contextvars import ContextVar
from time import perf_counter
from typing import Final

from starlette.types import Message, Scope, Send

__all__ = ["BEGINNING", "Beginning", "Begun", "current", "request_id", "template"]

current: ContextVar[Scope | None] = ContextVar("hinged_request", default=None)
"""The scope of the request, `None` outside of any."""

Begun = tuple[int, float]
"""The status of an answer, and when it began by `time.perf_counter`."""

BEGINNING: Final = "hinged.beginning"
"""Key of the `Beginning` in the scope of a request that a router answers."""

_ID = re.compile(rb"[\x21-\x7e]{1,128}")
_KEPT = "hinged.request_id"


class Beginning:
    """A `send` that notes status and time of the answer's beginning, as in `Begun`.

    The status is 499 while there is no answer: the client hung up.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 499
        self.at_s = perf_counter()

    @property
    def begun(self) -> bool:
        """True once there is an answer."""
        return self.status != 499

    async def __call__(self, message: Message) -> None:
        """Send a message."""
        if message["type"] == "http.response.start":
            self.note(message["status"])
        await self._send(message)

    def note(self, status: int) -> None:
        """Note that the answer begins now; lines of progress were sent before."""
        self.status, self.at_s = status, perf_counter()


def template(scope: Scope) -> str:
    """Return the template of a request's route, `(other)` if none: no text of the client's."""
    for name in ("route", "endpoint"):
        path = getattr(scope.get(name), "path", None)
        if isinstance(path, str):
            return path
    return "(other)"


def request_id(scope: Scope) -> str:
    """Return the client's `x-request-id` if it is 1 to 128 printable characters, else a new id."""
    kept: str | None = scope.get(_KEPT)
    if kept is None:
        sent = next((v for name, v in scope["headers"] if name == b"x-request-id"), b"")
        kept = sent.decode("ascii") if _ID.fullmatch(sent) else secrets.token_hex(8)
        scope[_KEPT] = kept
    return kept
