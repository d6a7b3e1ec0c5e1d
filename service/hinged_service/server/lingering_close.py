"""Lingering close: an answer before the body's end reaches a client that is still sending.

Closing a connection with unread bytes resets it, and the reset destroys an answer that the client
has not read yet. So the rest of the body is read and dropped, within bounds.
"""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.types import Message, Receive, Scope, Send

from hinged_service.server.admission import HELD, RequestLease

__all__ = ["LINGER_BYTES", "LINGER_S", "SILENCE_S", "Lingering"]

LINGER_S: Final = 30.0
"""Longest time for which the rest of a body is dropped."""
SILENCE_S: Final = 5.0
"""Longest silence in that time."""
LINGER_BYTES: Final = 2**30
"""Most bytes of a body that are dropped."""
_UNSIZED_SILENCE_S: Final = 1.0
"""Longest silence while a client may wait for the answer's end."""
_SHORT: Final = 2**20
_BAD = 400
_TIMEOUT = 408
_WITHOUT_BODY = frozenset({204, 304})
_CLOSE = (b"connection", b"close")


class Lingering:
    """The `receive` and `send` of a request whose answer may come before its body's end.

    A refusal closes the connection then, unless the body is surely short; with `close` the
    answer is the connection's last one in any case.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send, close: bool = False) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._close = close
        self._ended = False
        self._sized = False
        """True if the client sees the answer's end before it is complete here."""

    async def receive(self) -> Message:
        """Receive a message, and note whether it is the last one."""
        message = await self._receive()
        self._ended = message["type"] != "http.request" or not message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        """Send a message; before the answer's last one, wait for the rest of the body."""
        if message["type"] == "http.response.start":
            message = self._begun(message)
        elif not (self._ended or message.get("more_body", False)):
            await self._send({**message, "more_body": True})
            await self._drop()
            message = {"type": "http.response.body", "body": b""}
        await self._send(message)

    def _begun(self, message: Message) -> Message:
        status, headers = message["status"], list(message["headers"])
        self._sized = (
            self._scope["method"] == "HEAD"
            or status in _WITHOUT_BODY
            or any(name.lower() == b"content-length" for name, _ in headers)
        )
        early = status >= _BAD and not self._ended
        if self._close or (early and (status == _TIMEOUT or not self._goes_on())):
            headers.append(_CLOSE)
        return {**message, "headers": headers}

    def _goes_on(self) -> bool:
        """Return whether the body is short, and comes after any answer."""
        length = 0
        for name, value in self._scope["headers"]:
            if name in (b"expect", b"transfer-encoding"):
                return False
            if name == b"content-length":
                length = int(value)
        return length <= _SHORT

    async def _drop(self) -> None:
        held: RequestLease | None = self._scope.get(HELD)
        if held is not None:
            held.leave()
        left, until_s = LINGER_BYTES, asyncio.get_running_loop().time() + LINGER_S
        silence_s = SILENCE_S if self._sized else _UNSIZED_SILENCE_S
        try:
            async with asyncio.timeout_at(until_s):
                while not self._ended and left > 0:
                    async with asyncio.timeout(silence_s):
                        left -= len((await self.receive()).get("body", b""))
        except TimeoutError:
            pass
