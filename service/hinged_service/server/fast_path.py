"""Fast path: plain calls are answered where their bytes arrive, without a task or an ASGI cycle.

The HTTP parser frames every request. If all that a head says is plain, and no answer is due before
its own, the request is held back until the parser has read the bytes that came. If these end with
its body, the call gets it at once. A request that is incomplete, that another one follows,
or that the call does not take is given to uvicorn, as if it had not been held back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, Final, Protocol

from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from hinged_service.server.admission import AdmissionControl
from hinged_service.server.protocol import BoundedProtocol

__all__ = ["NO_HEADERS", "FastPath", "FastPathProtocol", "Headers", "PlainCall", "Reply"]

MAX_BODY_BYTES: Final = 2**16
"""Most bytes of a body: a larger one gains nothing."""
_MAX_KNOWN = 4_096
_MAX_FIELDS = 64
_TARGET = re.compile(rb"/v1/models/([A-Za-z0-9._~-]+)/([a-z]+)")
"""No character of it has a meaning: neither query, nor fragment, nor escape."""
_UNLIKE = frozenset(b"content-encoding expect transfer-encoding upgrade".split())
"""Headers that ask for something."""

Headers = list[tuple[bytes, bytes]]
NO_HEADERS: Final[Headers] = []


class Reply(Protocol):
    """The answer to a request of the fast path: call one of its methods, once."""

    def copied_scope(self) -> Scope:
        """Return a scope of the request, for what reads its headers."""
        ...

    def send(self, body: bytes, more: Headers = NO_HEADERS) -> None:
        """Give the good answer with `more` headers; a newline is added to it."""
        ...

    def refuse(self, status: int, headers: Headers, body: bytes) -> None:
        """Give another answer."""
        ...

    def take_ordinary_way(self) -> None:
        """Let the application answer; nothing was done."""
        ...


class PlainCall(Protocol):
    """A call that the fast path knows: `POST /v1/models/{model}/…`.

    Attributes
    ----------
    path
        The template of its path.

    """

    path: str

    def at_once(self, model: str, body: bytes, reply: Reply) -> bool:
        """Answer by `reply`, now or later; or return `False`, having done nothing."""
        ...


class FastPath:
    """The part of the fast path that all connections share.

    Parameters
    ----------
    calls
        The plain calls by the last part of their path.
    control
        The bounds of the worker's requests.
    headers
        Headers of every good answer, after its length.
    is_allowed
        Tells whether any request with the host, key and path of this scope may be made.
    answered
        Counts an answer: method, path, status and seconds.

    """

    def __init__(
        self,
        calls: Mapping[str, PlainCall],
        control: AdmissionControl,
        headers: Headers,
        is_allowed: Callable[[Scope], bool],
        answered: Callable[[str, str, int, float], None],
    ) -> None:
        self.control = control
        self.headers = headers
        self.answered = answered
        self._calls = {name.encode(): call for name, call in calls.items()}
        self._is_allowed = is_allowed
        self._known: dict[tuple[bytes | None, bytes | None, bytes], tuple[PlainCall, str]] = {}
        self._start: tuple[Headers, bytes, bytes] = ([], b"", b"")

    def plain_call(self, url: bytes, headers: Headers) -> tuple[PlainCall, str] | None:
        """Return call and model of a POST of HTTP/1.1 if all about its head is plain."""
        fields = dict(headers)
        size = fields.get(b"content-length", b"")
        if (
            len(fields) < len(headers)
            or len(headers) > _MAX_FIELDS
            or fields.get(b"content-type") != b"application/json"
            or not _UNLIKE.isdisjoint(fields)
            or not (size.isdigit() and int(size) <= MAX_BODY_BYTES)
        ):
            return None
        asked = fields.get(b"host"), fields.get(b"authorization"), url
        return self._known.get(asked) or self._new(asked, headers)

    def _new(
        self, asked: tuple[bytes | None, bytes | None, bytes], headers: Headers
    ) -> tuple[PlainCall, str] | None:
        """Return call and model for a host, a key and a path that were not asked for before."""
        url = asked[2]
        parts = _TARGET.fullmatch(url)
        call = None if parts is None else self._calls.get(parts[2])
        if parts is None or call is None:
            return None
        path = url.decode("latin-1")
        scope = {"method": "POST", "http_version": "1.1", "path": path, "headers": headers}
        if not self._is_allowed(scope):
            return None
        if len(self._known) >= _MAX_KNOWN:
            self._known.clear()
        found = self._known[asked] = call, parts[1].decode("ascii")
        return found

    def answer(self, defaults: Headers, body: bytes, more: Headers) -> bytes:
        """Return a good answer with `more` headers and a newline at its end.

        `defaults` are uvicorn's headers, another list each second.
        """
        known, start, middle = self._start
        if known is not defaults:
            length = [*defaults, (b"content-length", b"")]
            start = STATUS_LINE[200] + _lines(length)[:-2]
            middle = b"\r\n" + _lines(self.headers)
            self._start = defaults, start, middle
        lines = _lines(more) if more else b""
        return b"%b%d%b%b\r\n%b\n" % (start, len(body) + 1, middle, lines, body)


class FastPathProtocol(BoundedProtocol):
    """The bounded protocol with a fast path, if the application has one in `fast_path`.

    It is the `Reply` to the one request that may be under way.
    """

    _fast_path: FastPath
    _call: PlainCall
    _began_s: float

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._is_fast = self._held = self._whole = False
        self._model = ""
        self._body = self._unread = b""

    def connection_made(self, transport: Any) -> None:
        """Begin a connection."""
        super().connection_made(transport)
        found: FastPath | None = getattr(self.app, "fast_path", None)
        if found is not None and not (self.access_log or self.root_path):
            self._fast_path, self._is_fast = found, True

    def data_received(self, data: bytes) -> None:
        """Take bytes; those behind a request that waits for its answer wait, too."""
        if self._owes:
            self._unread += data
            self.flow.pause_reading()
            return
        super().data_received(data)
        if self._held and not (self._whole and self._is_answered()):
            self._give_up()

    def on_message_begin(self) -> None:
        """Begin a head."""
        if self._held:
            self._give_up()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """End a head: hold its request back if it is plain and nothing is due before it."""
        parser, cycle = self.parser, self.cycle
        if (
            self._is_fast
            and (cycle is None or (cycle.response_complete and not cycle.more_body))
            and parser.get_method() == b"POST"
            and parser.get_http_version() == "1.1"
            and parser.should_keep_alive()
            and not (self._ends or self.flow.write_paused)
        ):
            found = self._fast_path.plain_call(self.url, self.headers)
            if found is not None:
                self._call, self._model = found
                self._held, self._whole, self._body, self._in_head = True, False, b"", False
                return
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of a body."""
        if self._held:
            self._body += body
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request."""
        if self._held:
            self._whole = True
        else:
            super().on_message_complete()

    def _refuse(self, answer: bytes, data: bytes) -> None:
        if self._held:
            self._give_up()
        super()._refuse(answer, data)

    def _give_up(self) -> None:
        """Give the request held back to uvicorn, with what came of its body."""
        self._held = False
        super().on_headers_complete()
        if self._body:
            super().on_body(self._body)
        if self._whole:
            super().on_message_complete()

    def _is_answered(self) -> bool:
        """Let the call answer the request held back; return `False` if it did not take it."""
        control, size = self._fast_path.control, len(self._body)
        if (
            control.requests >= control.most_requests
            or control.bytes + size > control.most_bytes
            or self.transport.is_closing()
        ):
            return False
        self._began_s = perf_counter()
        control.requests += 1
        control.bytes += size
        self._owes = True
        try:
            self._held = not self._call.at_once(self._model, self._body, self)
        except Exception:  # the ordinary way meets it again, and tells it
            if not self._owes:
                raise
        if self._held:
            self._leave()
        return not self._held

    def _leave(self, status: int | None = None) -> None:
        """End the request for the bounds of the worker; count its answer if there is one."""
        self._owes = False
        path = self._fast_path
        path.control.requests -= 1
        path.control.bytes -= len(self._body)
        if status is not None:
            self.server_state.total_requests += 1
            path.answered("POST", self._call.path, status, perf_counter() - self._began_s)

    def copied_scope(self) -> Scope:
        """Return a scope of the request under way, for what reads its headers."""
        return {"headers": self.headers}

    def send(self, body: bytes, more: Headers = NO_HEADERS) -> None:
        """Give the good answer to the request under way."""
        if self._stops:
            self.refuse(200, [*self._fast_path.headers, *more], body + b"\n")
            return
        self._leave(200)
        if not self.transport.is_closing():
            defaults = self.server_state.default_headers
            self.transport.write(self._fast_path.answer(defaults, body, more))
            if self._unread:
                self._read_unread()

    def refuse(self, status: int, headers: Headers, body: bytes) -> None:
        """Give another answer; the last one when the server stops."""
        self._leave(status)
        if self.transport.is_closing():
            return
        length = (b"content-length", b"%d" % len(body))
        close = [(b"connection", b"close")] * self._stops
        lines = _lines([*self.server_state.default_headers, length, *headers, *close])
        self.transport.write(STATUS_LINE[status] + lines + b"\r\n" + body)
        if self._stops:
            self.transport.close()
        else:
            self._read_unread()

    def take_ordinary_way(self) -> None:
        """Let the application answer the request under way."""
        self._leave()
        if not self.transport.is_closing():
            self._give_up()
            self._read_unread()

    def _read_unread(self) -> None:
        data, self._unread = self._unread, b""
        self.flow.resume_reading()
        if data:
            self.data_received(data)


def _lines(headers: Headers) -> bytes:
    return b"".join([b"%b: %b\r\n" % pair for pair in headers])
