"""Write coalescing, head and body of an answer in one write; a close that keeps the last answer.

uvicorn writes the head as soon as the application begins an answer, and the body in a second
write: a fifth of the time of a bare call. It closes a connection with unread bytes, which resets
it: the client may lose the answers it has not read yet.
"""

from __future__ import annotations

import asyncio
from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from hinged_service.server.lingering_close import LINGER_BYTES, LINGER_S, SILENCE_S

__all__ = ["MAX_DROPPED_BYTES", "Joining"]

_COPIED = 2**16
_HEAD_END = b"\r\n\r\n"
MAX_DROPPED_BYTES: Final = 2**22
"""Bytes that are dropped of what is no part of a request."""


class Joining(asyncio.Transport):
    """A transport that holds an answer's head back until more of the answer comes.

    The protocol calls `flush` when an answer is complete, and `lose` when the connection is gone.

    Attributes
    ----------
    lingers
        True while it is closed for writing and drops what still arrives.

    """

    def __init__(self, transport: asyncio.Transport, protocol: HttpToolsProtocol) -> None:
        super().__init__()
        self._transport = transport
        self._protocol: HttpToolsProtocol | None = protocol
        self._head: bytes | None = None
        self._begun: RequestResponseCycle | None = None
        """The last answer whose head was held."""
        self.lingers = False
        self._left_bytes = 0
        self._refused: bytes | None = None
        """The last bytes of a refused head whose end has not come."""
        self._left_s = 0.0
        self._dropped = False
        self._timer: asyncio.TimerHandle | None = None

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Hold the head of the present request's answer; write anything else, after it."""
        if self.lingers:
            return
        head, protocol = self._head, self._protocol
        cycle = None if protocol is None else protocol.cycle
        if head is not None:
            self._head = None
            if len(data) > _COPIED:
                self._transport.write(head)
                self._transport.write(data)
            else:
                self._transport.write(head + data)
        elif cycle is not None and cycle is not self._begun and cycle.response_started:
            self._begun, self._head = cycle, bytes(data)
        else:
            self._transport.write(data)

    def flush(self) -> None:
        """Write a head that has no body."""
        if self._head is not None:
            self.write(b"")

    def lose(self) -> None:
        """Drop the protocol and the held head: the client has disconnected."""
        self._protocol = self._head = self._begun = None
        if self._timer is not None:
            self._timer.cancel()

    def close(self) -> None:
        """Close once all is written, and the client has had time to read it if it sends on."""
        protocol = self._protocol
        if self.lingers:
            return
        if protocol is not None and (protocol.pipeline or protocol.flow.read_paused):
            self.leave()
        else:
            self.flush()
            self._transport.close()

    def leave(self, refused: bytes | None = None) -> None:
        """End writing, discard some further input, then close.

        `refused` is the end of a refused request: a body behind its head is dropped whole.
        """
        protocol = self._protocol
        if protocol is None or self.is_closing():
            return
        self.flush()
        self.lingers, self._left_bytes, self._left_s = True, MAX_DROPPED_BYTES, LINGER_S
        self._refused = b"" if refused is not None else None
        self._look_for_body(refused or b"")
        if self._transport.can_write_eof():
            self._transport.write_eof()
        protocol.flow.resume_reading()
        self._timer = protocol.loop.call_later(SILENCE_S, self._look)

    def drop(self, data: bytes) -> None:
        """Drop bytes that arrived."""
        self._dropped = True
        self._left_bytes -= len(data)
        self._look_for_body(data)
        if self._left_bytes < 0:
            self._transport.close()

    def _look_for_body(self, data: bytes) -> None:
        if self._refused is not None:
            head = self._refused + data
            self._refused = head[1 - len(_HEAD_END) :]
            if _HEAD_END in head:
                self._refused = None
                self._left_bytes += LINGER_BYTES

    def _look(self) -> None:
        self._left_s -= SILENCE_S
        if self._protocol is None or not self._dropped or self._left_s <= 0:
            self._transport.close()
            return
        self._dropped = False
        self._timer = self._protocol.loop.call_later(SILENCE_S, self._look)

    def is_closing(self) -> bool:
        """Return whether it is closed or about to be."""
        return self.lingers or self._transport.is_closing()
