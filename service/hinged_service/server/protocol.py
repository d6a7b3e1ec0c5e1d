"""Bounds on a connection: size of a head, time of inactivity, offers of another protocol.

uvicorn takes a head of any length, and waits without end for the rest of a head or body. Here a
head has a limit, and an inactive connection is closed, but not 5 s after an answer as in uvicorn.

An offer to change the protocol is ignored, and unreadable bytes are refused after the answers that
are due: uvicorn takes the body after an offer for the next request, and refuses at once. When the
server stops, uvicorn closes an idle connection at once, though a request may be on its way.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from hinged_service.server.coalesced_writes import Joining

__all__ = ["IDLE_S", "MAX_HEADERS", "MAX_HEAD_BYTES", "BoundedProtocol"]

MAX_HEAD_BYTES: Final = 64 * 1024
"""Most bytes of a request's line and headers, beyond those of one read."""
MAX_HEADERS: Final = 200
"""Most headers of a request, and as many after its body."""
IDLE_S: Final = 75.0
"""Seconds of inactivity after which an idle connection, or one with an incomplete request, is
closed (checked once per period, so at most twice this). Proxies keep theirs for a minute, most of
them: the proxy must close first, or it sends into a closed connection."""
STOP_S: Final = 1.0
"""Seconds of inactivity after which a connection is closed when the server stops."""

_TARGETS: Final = (b"/", b"http://", b"https://", b"HTTP://", b"HTTPS://")
_BAD = (
    b"HTTP/1.1 400 Bad Request\r\n"
    b"content-type: text/plain; charset=utf-8\r\ncontent-length: 30\r\nconnection: close\r\n\r\n"
    b"Invalid HTTP request received."
)
_HEAD_END = b"\r\n\r\n"
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol, with bounds, and one write for a short answer."""

    idle_s = IDLE_S
    stop_s = STOP_S
    _joining: Joining

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_head = False
        self._heads = self._head_bytes = 0
        self._heard = False
        self._heads_before = 0
        self._waited = False
        self._timer: asyncio.TimerHandle | None = None
        self._ends = self._stops = False
        self._refusal: bytes | None = None
        self._refused = b""
        self._owes = False
        """True while an answer is due that the parser and `cycle` know nothing of."""

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
        """Take bytes, unless they cannot be read or the head is too long."""
        if self._joining.lingers:
            self._joining.drop(data)
            return
        if self._refusal is not None:  # answers before it are due
            return
        self._heard = True
        heads = self._heads
        try:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as offer:
                self._read_on(data, offer)
        except httptools.HttpParserError:
            if self._refusal is None:
                self.logger.warning("Invalid HTTP request received.")
                self._refuse(_BAD, data)
            return
        if self._in_head and self._heads == heads:
            self._head_bytes += len(data)
        if self._head_bytes > MAX_HEAD_BYTES or (
            self.headers is not None and len(self.headers) > MAX_HEADERS
        ):
            self._refuse(_TOO_LARGE, data if self._in_head else b"")

    def _read_on(self, data: bytes, offer: httptools.HttpParserUpgrade) -> None:
        """Read a head again without its offer of another protocol, then the bytes after it.

        The parser takes all that follows an offer for another protocol.
        """
        rest: memoryview | None = memoryview(data)
        while rest is not None:
            rest = rest[offer.args[0] :]
            method = self.parser.get_method()
            if method == b"CONNECT":
                self._refuse(_BAD, _HEAD_END)
                return
            head = [method, b" ", self.url, b" HTTP/", self.parser.get_http_version().encode()]
            for name, value in self.scope["headers"]:
                if name != b"upgrade":
                    head += (b"\r\n", name, b": ", value)
            self._heads -= 1
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            self.parser.feed_data(b"".join((*head, b"\r\n\r\n")))
            try:
                self.parser.feed_data(rest)
                rest = None
            except httptools.HttpParserUpgrade as another:
                offer = another

    def _should_upgrade(self) -> bool:
        """Make uvicorn leave a request that offers another protocol to `_read_on`."""
        return True

    def on_message_begin(self) -> None:
        """Begin a head; its scope is made when it is complete."""
        self._in_head = True
        self._heads += 1
        self._head_bytes = 0
        self.url, self.headers, self.expect_100_continue = b"", [], False

    def on_headers_complete(self) -> None:
        """End a head, unless it is refused: then nothing is done for it."""
        self._in_head = False
        if len(self.headers) > MAX_HEADERS:
            self._refuse(_TOO_LARGE, _HEAD_END)
            raise ValueError("too many headers")  # the parser stops
        url = self.url
        if b"#" in url or not url.startswith(_TARGETS):
            raise ValueError("no target of a request")
        headers, expects = self.headers, self.expect_100_continue
        super().on_message_begin()
        self.headers += headers
        self.url, self.expect_100_continue = url, expects
        super().on_headers_complete()
        self.headers = []  # those after the body are none of the request's
        if self._stops and self.cycle is not None and self.cycle.scope is self.scope:
            self.cycle.keep_alive = False

    def on_response_complete(self) -> None:
        """End an answer, without uvicorn's timer for each one: `_look` ends idle connections."""
        self._joining.flush()
        if self.pipeline or self.transport.is_closing():
            super().on_response_complete()
        else:
            self.server_state.total_requests += 1
            self.flow.resume_reading()
            if self._ends:
                self._end()

    def shutdown(self) -> None:
        """Close the connection after the next answer, or when nothing comes for a moment."""
        self._ends = self._stops = True
        if self._owes:
            return
        cycle = self.cycle
        if cycle is None or cycle.response_complete:
            self._end()
        elif not cycle.response_started:
            cycle.keep_alive = False

    def _end(self) -> None:
        """Refuse unreadable bytes, or wait for a moment: no answer is due."""
        if self._refusal is not None:
            self._joining.write(self._refusal)
            self._joining.leave(self._refused)
        else:
            self.loop.call_later(self.stop_s / 2, self._end_idle, False)

    def _end_idle(self, again: bool) -> None:
        # A timer may fire before bytes that wait are read: a second look sees them.
        cycle = self.cycle
        if self.transport.is_closing() or not (cycle is None or cycle.response_complete):
            return
        if again and not self._in_head:
            self.transport.close()
        else:
            self.loop.call_later(self.stop_s / 2, self._end_idle, True)

    def _refuse(self, answer: bytes, data: bytes) -> None:
        """Refuse a request that ends in `data`, after the answers due, and read no more."""
        if self.transport.is_closing():
            return
        self._ends, self._refusal, self._refused = True, answer, data
        self.flow.pause_reading()
        cycle = self.cycle
        if cycle is None or cycle.response_complete:
            if cycle is not None and cycle.more_body:  # it was answered already
                self._refusal = b""
            self._end()
        elif cycle.more_body:
            self._break(cycle)

    def _break(self, cycle: RequestResponseCycle) -> None:
        """End a request with unreadable bytes in its body."""
        if self.pipeline and self.pipeline[0][0] is cycle:
            self.pipeline.popleft()  # answers before it are due
            return
        cycle.disconnected = True
        cycle.message_event.set()
        if cycle.response_started:
            self._refusal = b""
        self._end()

    def _look(self) -> None:
        """Close the connection if something is due and nothing came since the last look."""
        if self.transport.is_closing():
            return
        cycle = self.cycle
        waits = not self._owes and (cycle is None or cycle.response_complete)
        if self._owes:
            stuck = False
        elif waits:
            stuck = self._waited and self._heads_before == self._heads
        else:
            stuck = cycle.more_body and not self._heard and not self.flow.read_paused
        if stuck:
            self.transport.close()
            return
        self._waited, self._heads_before, self._heard = waits, self._heads, False
        self._timer = self.loop.call_later(self.idle_s, self._look)
