"""An answer's head goes out with the first part of its body.

uvicorn writes the head as soon as the application begins an answer, which lets it wait for the
body: a second write for every answer, a fifth of the time of a bare call.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

__all__ = ["Joining"]

_COPIED = 2**16


class Joining(asyncio.Transport):
    """A transport that holds an answer's head back until more of the answer comes.

    Parameters
    ----------
    transport
        Where to write.
    protocol
        Whose transport it is; it calls `flush` when an answer is complete, and `lose` when the
        connection is gone.

    """

    def __init__(self, transport: asyncio.Transport, protocol: HttpToolsProtocol) -> None:
        super().__init__()
        self._transport = transport
        self._protocol: HttpToolsProtocol | None = protocol
        self._head: bytes | None = None
        self._begun: RequestResponseCycle | None = None
        """The last answer whose head was held."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Hold the head of the present request's answer; write anything else, after it."""
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
        """Forget whose it is, what it holds and what was answered: nobody gets it any more."""
        self._protocol = self._head = self._begun = None

    def close(self) -> None:
        """Close once all is written."""
        self.flush()
        self._transport.close()

    def is_closing(self) -> bool:
        """Tell whether it is closed or about to be."""
        return self._transport.is_closing()
