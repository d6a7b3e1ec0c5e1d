"""A connection: what a client may do to it before there is a request to answer, how long it stays.

uvicorn takes a head of any length and waits for ever for one that never ends, or for a body
that never comes. Here a head has a limit, and a connection that only waits is closed, but not
after 5 s as uvicorn would after an answer.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from hinged_service.joining import Joining

__all__ = ["IDLE_S", "MAX_HEADERS", "MAX_HEAD_BYTES", "BoundedProtocol"]

MAX_HEAD_BYTES: Final = 64 * 1024
"""A request's line and headers are refused beyond so many bytes, and what one read brings."""
MAX_HEADERS: Final = 200
"""A request has at most so many headers, those after its body included."""
IDLE_S: Final = 75.0
"""A connection from which nothing comes for so long, where a request or more of one is due, is
closed, at the latest after twice as long; and so is one on which a head does not get complete.
Proxies keep theirs for a minute, most of them: who closes first must be the proxy, or it sends
into a closed one."""

_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol, with bounds, and one write for a short answer."""

    idle_s = IDLE_S
    _joining: Joining

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_head = False
        self._heads = self._head_bytes = 0
        self._heard = False
        self._heads_before = 0
        self._waited = False
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to look after a connection."""
        super().connection_made(transport)
        self.transport = self._joining = Joining(transport, self)
        self._timer = self.loop.call_later(self.idle_s, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop looking after it."""
        self._joining.lose()
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came, unless the head is too long."""
        self._heard = True
        heads = self._heads
        super().data_received(data)
        if self._in_head and self._heads == heads:
            self._head_bytes += len(data)
        too_long = self._head_bytes > MAX_HEAD_BYTES
        if too_long or (self.headers is not None and len(self.headers) > MAX_HEADERS):
            self._refuse()

    def on_message_begin(self) -> None:
        """Begin a head."""
        self._in_head = True
        self._heads += 1
        self._head_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """End a head, unless it has too many headers: then nothing is done for it."""
        self._in_head = False
        if len(self.headers) > MAX_HEADERS:
            self._refuse()
            raise ValueError("too many headers")  # the parser stops
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """End an answer, without uvicorn's timer for each one: `_look` ends what only waits."""
        self._joining.flush()
        if self.pipeline or self.transport.is_closing():
            super().on_response_complete()
        else:
            self.server_state.total_requests += 1
            self.flow.resume_reading()

    def _refuse(self) -> None:
        if self.transport.is_closing():
            return
        if self.cycle is None or self.cycle.response_complete:
            self.transport.write(_TOO_LARGE)
        self.transport.close()

    def _look(self) -> None:
        """Close the connection if something is due and nothing came since the last look."""
        if self.transport.is_closing():
            return
        cycle = self.cycle
        waits = cycle is None or cycle.response_complete
        if waits:
            stuck = self._waited and self._heads_before == self._heads
        else:
            stuck = cycle.more_body and not self._heard and not self.flow.read_paused
        if stuck:
            self.transport.close()
            return
        self._waited, self._heads_before, self._heard = waits, self._heads, False
        self._timer = self.loop.call_later(self.idle_s, self._look)
