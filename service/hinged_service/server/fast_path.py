"""Fast path: plain calls are answered where their bytes arrive, without a task or an ASGI cycle.

The HTTP parser reads the first request of a head and the ordinary way answers it. If all about it
is plain, the head is noted, byte for byte, with what it asks for. When the same head comes again
with its whole body and nothing else, on a connection that owes no answer, the call gets the body
at once. What a call does not take, and every request that differs in anything, goes the ordinary
way, where it is answered as if there were no other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, Final, NamedTuple, Protocol

from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from hinged_service.server.admission import AdmissionControl
from hinged_service.server.protocol import BoundedProtocol

__all__ = ["FastPath", "FastPathProtocol", "Headers", "PlainCall", "Reply"]

MAX_BODY_BYTES: Final = 2**16
"""Most bytes of a body: a larger one gains nothing."""
_MAX_HEAD_BYTES = 2**11
_MAX_HEADS = 4_096
_HEAD_END = b"\r\n\r\n"
_JSON = b"application/json"
_UNLIKE = frozenset(
    b"content-encoding expect traceparent transfer-encoding upgrade x-request-id".split()
)
"""Headers that ask for something, or that differ from request to request."""

Headers = list[tuple[bytes, bytes]]


class Reply(Protocol):
    """The answer to a request of the fast path: one of its methods is to be called once."""

    def copied_scope(self) -> Scope:
        """Return a scope of the request, for what reads its headers."""
        ...

    def send(self, body: bytes) -> None:
        """Give the good answer."""
        ...

    def refuse(self, status: int, headers: Headers, body: bytes) -> None:
        """Give another answer."""
        ...

    def take_ordinary_way(self) -> None:
        """Let the ordinary way answer; nothing was done."""
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


class _Head(NamedTuple):
    """What a head asks for: a call of a model, with a body of `size` bytes."""

    call: PlainCall
    model: str
    size: int
    scope: Scope


class FastPath:
    """The heads that were noted, and what answers them.

    Parameters
    ----------
    calls
        The plain calls by the last part of their path.
    control
        The bounds of the worker's requests.
    headers
        Headers of every good answer, after its length.
    is_allowed
        Tells whether a request with this scope may always be made.
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
        self.answered = answered
        self.headers = headers
        self._calls = calls
        self._is_allowed = is_allowed
        self._heads: dict[bytes, _Head] = {}
        self._start: tuple[Headers, bytes, bytes] = ([], b"", b"")

    def find(self, data: bytes) -> tuple[_Head | None, int]:
        """Return the head of a request if it is known and its body whole, and where it ends."""
        end = data.find(_HEAD_END) + 4
        head = self._heads.get(data[:end])
        return (head if head is not None and len(data) == end + head.size else None), end

    def note(self, head: bytes, size: int, scope: Mapping[str, Any]) -> None:
        """Note a head that the parser read before a body of `size` bytes, if it is plain."""
        parts = scope["path"].split("/")
        names = [name for name, _ in scope["headers"]]
        plain = (
            scope["method"] == "POST"
            and len(parts) == 5
            and parts[:3] == ["", "v1", "models"]
            and parts[4] in self._calls
            and not scope["query_string"]
            and size <= MAX_BODY_BYTES
            and len(head) <= _MAX_HEAD_BYTES
            and _UNLIKE.isdisjoint(names)
            and [v for n, v in scope["headers"] if n == b"content-type"] == [_JSON]
            and [v for n, v in scope["headers"] if n == b"content-length"] == [b"%d" % size]
            and self._is_allowed(dict(scope))
        )
        if plain:
            if len(self._heads) >= _MAX_HEADS:
                self._heads.clear()
            self._heads[head] = _Head(self._calls[parts[4]], parts[3], size, dict(scope))

    def answer(self, defaults: Headers, body: bytes) -> bytes:
        """Return a good answer; `defaults` are uvicorn's headers, another list each second."""
        known, start, middle = self._start
        if known is not defaults:
            length = [*defaults, (b"content-length", b"")]
            start = STATUS_LINE[200] + _lines(length)[:-2]
            middle = b"\r\n" + _lines(self.headers) + b"\r\n"
            self._start = defaults, start, middle
        return b"%b%d%b%b" % (start, len(body), middle, body)


class FastPathProtocol(BoundedProtocol):
    """The bounded protocol with a fast path, if the application has one in `fast_path`.

    It is the `Reply` to the one request that may be under way.
    """

    _fast_path: FastPath
    _head: _Head
    _data: bytes
    _began_s: float

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._is_fast = False
        self._unread = b""

    def connection_made(self, transport: Any) -> None:
        """Begin a connection."""
        super().connection_made(transport)
        found: FastPath | None = getattr(self.app, "fast_path", None)
        if found is not None and not self.access_log:
            self._fast_path, self._is_fast = found, True

    def data_received(self, data: bytes) -> None:
        """Take bytes: the fast path if they are one plain request, else the ordinary way."""
        if self._owes:
            self._unread += data
            self.flow.pause_reading()
            return
        if not (self._is_fast and self._is_idle()):
            super().data_received(data)
            return
        head, end = self._fast_path.find(data)
        if head is not None:
            if not self._take(head, data, end):
                super().data_received(data)
            return
        heads = self._heads
        super().data_received(data)
        if self._heads == heads + 1 and not (self._in_head or self._ends):
            cycle = self.cycle
            if cycle.keep_alive and not cycle.more_body:
                self._fast_path.note(data[:end], len(data) - end, cycle.scope)

    def _is_idle(self) -> bool:
        """Tell whether the parser stands between two requests and no answer is due."""
        cycle = self.cycle
        return not (self._in_head or self._ends or self.flow.write_paused) and (
            cycle is None or (cycle.response_complete and not cycle.more_body)
        )

    def _take(self, head: _Head, data: bytes, end: int) -> bool:
        """Let the call answer; return `False` if the ordinary way has to."""
        control, size = self._fast_path.control, head.size
        if (
            control.requests >= control.most_requests
            or control.bytes + size > control.most_bytes
            or self.transport.is_closing()
        ):
            return False
        self._head, self._data, self._began_s = head, data, perf_counter()
        self._owes = self._heard = True
        control.requests += 1
        control.bytes += size
        try:
            if head.call.at_once(head.model, data[end:], self):
                self._heads += 1
                return True
        except Exception:  # the ordinary way meets it again, and tells it
            if not self._owes:
                raise
        self._leave()
        return False

    def _leave(self) -> None:
        """End the request for the bounds of the worker."""
        self._owes = False
        control = self._fast_path.control
        control.requests -= 1
        control.bytes -= self._head.size

    def copied_scope(self) -> Scope:
        """Return a scope of the request under way, for what reads its headers."""
        return dict(self._head.scope)

    def send(self, body: bytes) -> None:
        """Give the good answer to the request under way."""
        if self._stops:
            self.refuse(200, self._fast_path.headers, body)
            return
        self._count(200)
        if not self.transport.is_closing():
            defaults = self.server_state.default_headers
            self.transport.write(self._fast_path.answer(defaults, body))
            if self._unread:
                self._read_unread()

    def refuse(self, status: int, headers: Headers, body: bytes) -> None:
        """Give another answer; the last one when the server stops."""
        self._count(status)
        if not self.transport.is_closing():
            answer = [*self.server_state.default_headers]
            answer += [(b"content-length", b"%d" % len(body)), *headers]
            if self._stops:
                answer.append((b"connection", b"close"))
            self.transport.write(STATUS_LINE[status] + _lines(answer) + b"\r\n" + body)
            if self._stops:
                self.transport.close()
            else:
                self._read_unread()

    def _count(self, status: int) -> None:
        self._leave()
        self.server_state.total_requests += 1
        seconds = perf_counter() - self._began_s
        self._fast_path.answered("POST", self._head.call.path, status, seconds)

    def take_ordinary_way(self) -> None:
        """Read the request under way again, with the parser."""
        self._leave()
        if not self.transport.is_closing():
            self._heads -= 1
            super().data_received(self._data)
            self._read_unread()

    def _read_unread(self) -> None:
        data, self._unread = self._unread, b""
        self.flow.resume_reading()
        if data:
            self.data_received(data)


def _lines(headers: Headers) -> bytes:
    return b"".join([b"%b: %b\r\n" % pair for pair in headers])
