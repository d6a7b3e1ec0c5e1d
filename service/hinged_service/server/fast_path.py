"""Fast path: plain calls are answered where their bytes arrive, without a task or an ASGI cycle.

The HTTP parser frames every request. If all that a head says is plain, and no answer is due before
its own, the request is held back until the parser has read the bytes that came. If these end with
its body, the call gets it at once. A request that is incomplete, that another one follows,
or that the call does not take is given to uvicorn, as if it had not been held back.

Clients send the same fields again and again. Those that the parser has read in a whole request, and
that were plain, need not be read again: what they say is known by their bytes.

The file is long: one request is followed from its bytes to its answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, Final, NamedTuple, Protocol

from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from hinged_service.server.admission import AdmissionControl
from hinged_service.server.protocol import BoundedProtocol

__all__ = ["NO_HEADERS", "FastPath", "FastPathProtocol", "Headers", "PlainCall", "Reply"]

MAX_BODY_BYTES: Final = 2**16
"""Most bytes of a body: a larger one gains nothing."""
_MAX_FIELDS = 64
_MAX_FIELDS_BYTES = 1_024
_MAX_READ, _MAX_KNOWN = 4_096, 16_384
"""Most fields, and first lines, that are remembered; then all of them are forgotten."""
_HEAD_END = b"\r\n\r\n"
_LINE: Final = b"POST %b HTTP/1.1"
_PLAIN_LINE = re.compile(rb"POST (/v1/models/([A-Za-z0-9._~-]+)/([a-z]+)) HTTP/1\.1")
"""No character of its target has a meaning: neither query, nor fragment, nor escape."""
_UNLIKE = frozenset(b"content-encoding expect transfer-encoding upgrade".split())
"""Headers that ask for something."""

Headers = list[tuple[bytes, bytes]]
NO_HEADERS: Final[Headers] = []


class Reply(Protocol):
    """The answer to a request of the fast path: call one of its methods, once."""

    def copied_scope(self) -> Scope:
        """Return a scope of the request, for code that reads its headers."""
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


class PlainFields(NamedTuple):
    """The fields of a plain head, as a list and those that matter here by themselves."""

    headers: Headers
    host: bytes | None
    key: bytes | None
    body_bytes: int


class PlainTarget(NamedTuple):
    """The target of a plain head: the call, and the name of the model."""

    call: PlainCall
    model: str


PlainHead = tuple[PlainTarget, PlainFields]


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
        self._known: dict[tuple[bytes | None, bytes | None, bytes], PlainTarget] = {}
        self._read: dict[bytes, PlainFields] = {}
        self._start: tuple[Headers, bytes, bytes] = ([], b"", b"")

    def plain_head(self, url: bytes, headers: Headers) -> PlainHead | None:
        """Return the head of a POST of HTTP/1.1 if all about it is plain."""
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
        host, key = fields.get(b"host"), fields.get(b"authorization")
        return self._head(_LINE % url, PlainFields(headers, host, key, int(size)))

    def known_head(self, data: bytes) -> PlainHead | None:
        """Return the head of these bytes if its fields were remembered, and they are a request."""
        line_end = data.find(b"\r\n")
        head_end = data.find(_HEAD_END, line_end) + len(_HEAD_END)
        fields = self._read.get(data[line_end:head_end])
        if fields is None or head_end + fields.body_bytes != len(data):
            return None
        return self._head(data[:line_end], fields)

    def remember(self, data: bytes, url: bytes, fields: PlainFields) -> None:
        """Take note of the fields of a head that the parser has read in `data`.

        They are not looked for if `data` is more than the request, or if its lines end in
        another way.
        """
        line = _LINE % url
        head_end = data.find(_HEAD_END, len(line)) + len(_HEAD_END)
        if (
            data.startswith(line + b"\r\n")
            and head_end + fields.body_bytes == len(data)
            and head_end - len(line) <= _MAX_FIELDS_BYTES
        ):
            if len(self._read) >= _MAX_READ:
                self._read.clear()
            self._read[data[len(line) : head_end]] = fields

    def _head(self, line: bytes, fields: PlainFields) -> PlainHead | None:
        """Return a head of plain fields if its first line is plain, too."""
        asked = fields.host, fields.key, line
        target = self._known.get(asked)
        if target is None:
            target = self._asked_first(line, fields.headers)
            if target is None:
                return None
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._known[asked] = target
        return target, fields

    def _asked_first(self, line: bytes, headers: Headers) -> PlainTarget | None:
        """Return the target of a request line that is new for this host and key."""
        parts = _PLAIN_LINE.fullmatch(line)
        call = None if parts is None else self._calls.get(parts[3])
        if parts is None or call is None:
            return None
        path = parts[1].decode("ascii")
        scope = {"method": "POST", "http_version": "1.1", "path": path, "headers": headers}
        return PlainTarget(call, parts[2].decode("ascii")) if self._is_allowed(scope) else None

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
    _target: PlainTarget
    _fields: PlainFields
    _began_s: float

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._is_fast = self._held = self._whole = False
        self._is_between = True
        """True while the parser has read whole requests only."""
        self._body = self._unread = b""
        self._unparsed = b""
        """The request under way, if the parser has not read it."""

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
        was_between = self._is_between
        if was_between and self._is_next():
            head = self._fast_path.known_head(data)
            if head is not None:
                self._heard = True
                self._heads += 1
                self._target, self._fields = head
                self._body, self._unparsed = data[len(data) - self._fields.body_bytes :], data
                if not self._is_answered():
                    self._give_up()
                return
        super().data_received(data)
        if self._held:
            if was_between and self._whole:
                self._fast_path.remember(data, self.url, self._fields)
            if not (self._whole and self._is_answered()):
                self._give_up()

    def _is_next(self) -> bool:
        """Return whether the next request may be held back: no answer is due before its own."""
        cycle = self.cycle
        return (
            self._is_fast
            and (cycle is None or (cycle.response_complete and not cycle.more_body))
            and not (self._ends or self.flow.write_paused)
        )

    def on_message_begin(self) -> None:
        """Begin a head."""
        self._is_between = False
        if self._held:
            self._give_up()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """End a head: hold its request back if it is plain and nothing is due before it."""
        parser = self.parser
        if (
            self._is_next()
            and parser.get_method() == b"POST"
            and parser.get_http_version() == "1.1"
            and parser.should_keep_alive()
        ):
            head = self._fast_path.plain_head(self.url, self.headers)
            if head is not None:
                self._target, self._fields = head
                self._held, self._whole, self._in_head = True, False, False
                self._body = self._unparsed = b""
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
        self._is_between = True
        if self._held:
            self._whole = True
        else:
            super().on_message_complete()

    def _refuse(self, answer: bytes, data: bytes) -> None:
        if self._held:
            self._give_up()
        super()._refuse(answer, data)

    def _give_up(self) -> None:
        """Give the request held back to uvicorn, with the received part of its body."""
        self._held = False
        unparsed, self._unparsed = self._unparsed, b""
        if unparsed:
            self._is_fast = False
            super().data_received(unparsed)
            self._is_fast = True
            return
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
            self._held = not self._target.call.at_once(self._target.model, self._body, self)
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
            path.answered("POST", self._target.call.path, status, perf_counter() - self._began_s)

    def copied_scope(self) -> Scope:
        """Return a scope of the request under way, for code that reads its headers."""
        return {"headers": self._fields.headers}

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
