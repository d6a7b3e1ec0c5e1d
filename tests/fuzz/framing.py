"""Streams of bytes that are requests or nearly so, and what a server's protocol makes of them."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import uvicorn
from fastapi import FastAPI
from starlette.routing import Route
from uvicorn.server import ServerState

from hinged_service.app import create_app
from hinged_service.settings import Settings

__all__ = ["Outcome", "Recorder", "Socket", "cut", "outcome", "stream"]

_ROUNDS = 12
MARK = b"x-mark"


class Outcome(NamedTuple):
    """Outcome of a connection: the requests that were carried out, and all answers."""

    done: list[tuple[str, str, bytes, bytes, list[bytes]]]
    answers: bytes
    closed: bool


class Socket(asyncio.Transport):
    """A transport whose other end a test holds."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self.protocol: Any = None
        self.answers = b""
        self.closed = self.paused = False
        self._waiting: list[bytes] = []

    def write(self, data: Any) -> None:
        """Take note of it."""
        self.answers += bytes(data)

    def can_write_eof(self) -> bool:
        """Tell that half of it can be closed."""
        return True

    def write_eof(self) -> None:
        """Do nothing: a side that half closes drops what comes."""

    def close(self) -> None:
        """Take note of it."""
        self.closed = True

    def is_closing(self) -> bool:
        """Return whether it was closed."""
        return self.closed

    def set_protocol(self, protocol: Any) -> None:
        """Hand it over."""
        self.protocol = protocol

    def pause_reading(self) -> None:
        """Hold what comes."""
        self.paused = True

    def resume_reading(self) -> None:
        """Read again, soon."""
        self.paused = False
        asyncio.get_running_loop().call_soon(self.read)

    def read(self) -> None:
        """Read what waits."""
        while self._waiting and not (self.paused or self.closed):
            try:
                self.protocol.data_received(self._waiting.pop(0))
            except Exception:  # asyncio ends the connection then
                self.closed = True

    def come(self, data: bytes) -> None:
        """Let bytes come."""
        self._waiting.append(data)
        self.read()


class Recorder:
    """The service's app, but that its models are a list of what was asked of them."""

    def __init__(self) -> None:
        self.done: list[tuple[str, str, bytes, bytes, list[bytes]]] = []
        self.app: FastAPI = create_app(Settings(redis_url="redis://127.0.0.1:1"))
        self.config = uvicorn.Config(self.app, access_log=False, server_header=False, ws="none")
        self.config.load()
        self.config.loaded_app = self.app
        methods = ["DELETE", "GET", "POST", "PUT"]
        for path in ("/v1/models/{model}", "/v1/models/{model}/learn"):
            self.app.router.routes.insert(0, Route(path, self, methods=methods))

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Carry out a request; refuse a large one before its body has come."""
        query = scope["query_string"]
        body, more, status = b"", query != b"early", 200 if query != b"early" else 413
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
        marks = [value for name, value in scope["headers"] if name == MARK]
        self.done.append((scope["method"], scope["path"], query, body, marks))
        headers = [(b"content-length", b"2")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"{}"})


async def outcome(protocol: Callable[..., Any], recorder: Recorder, pieces: list[bytes]) -> Outcome:
    """Return what comes of these pieces on a connection of that protocol."""
    recorder.done = []
    socket, loop = Socket(), asyncio.get_running_loop()
    made = socket.protocol = protocol(recorder.config, ServerState(), {}, loop)
    made.connection_made(socket)
    for piece in pieces:
        socket.come(piece)
        for _ in range(_ROUNDS):
            await asyncio.sleep(0)
    for _ in range(4 * _ROUNDS):
        await asyncio.sleep(0)
    closing = made.transport.is_closing()
    socket.closed = True
    made.connection_lost(ConnectionResetError())
    for _ in range(_ROUNDS):
        await asyncio.sleep(0)
    return Outcome(recorder.done, socket.answers, closing)


def cut(chance: random.Random, data: bytes) -> list[bytes]:
    """Return a stream in pieces."""
    most = chance.choice((0, 1, 3, 8, 40))
    places = sorted({0, len(data), *(chance.randrange(len(data) + 1) for _ in range(most))})
    return [data[a:b] for a, b in itertools.pairwise(places)]


_OTHER = b"DELETE /v1/models/victim HTTP/1.1\r\nHost: t\r\n\r\n"
_BODIES = (
    b"",
    b'{"x":{"a":1},"y":true}',
    b'{"x":{},"y":true}\n{"x":{},"y":false}\n',
    _OTHER,
    b"POST /v1/models/victim/learn HTTP/1.1\r\nHost: t\r\nContent-Length: 2\r\n\r\n{}",
    b"0\r\n\r\n" + _OTHER,
    b" " * 5_000,
)
_METHODS = ("GET", "DELETE", "PUT", "HEAD", "OPTIONS", "CONNECT", "FOO", "PRI", "PROPFIND")
_LEARN = "/v1/models/m/learn"
_TARGETS = (
    *("/v1/models/m", f"{_LEARN}?early", "/healthz", "/v1/models/m%20n/learn?a=b", "*", "t:443"),
    *(f"http://t{_LEARN}", "HTTPS://t:1/v1/models/m?x", f"ftp://t{_LEARN}", f"//{_LEARN}"),
    *(f"{_LEARN}#x", f"{_LEARN}?a?b#c", "http://t", "/v1/models/\x7f/learn", _LEARN[1:]),
)
_VERSIONS = ("HTTP/1.0", "HTTP/2.0", "HTTP/0.9", "HTTP/1.2", "http/1.1", "HTTP/1.1 ")
_HOSTS = ((), ("Host: t", "host: t"), ("Host: a b",), ("Host: [::1]:80",), ("Host:",))
_OFFERS = (
    ("Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAMAAABkAAQA"),
    ("upgrade: websocket", "connection: keep-alive, Upgrade", "Sec-WebSocket-Version: 13"),
    ("Upgrade: TLS/1.2, h2c", "Connection: upgrade"),
    ("Connection: upgrade", "Connection: close", "Upgrade: h2c"),
    ("Upgrade: h2c", "Proxy-Connection: upgrade"),
    ("Upgrade: h2c", "Upgrade: websocket", "Connection: Upgrade"),
    ("Upgrade: h2c", "Connection: Upgrade", "Expect: 100-continue"),
    ("Upgrade: h2c",),
    ("Connection: Upgrade",),
    ("Upgrade:", "Connection: Upgrade"),
)
_MORE = (
    ("Expect: 100-continue",),
    ("Connection: close",),
    ("Connection: keep-alive",),
    ("X-Fold: a", "\tb: c"),
    ("Upgrade: h2c", "Connection: a,", " Upgrade"),
    ("X-Mark: first",),
    ("Content-Type: application/x-ndjson",),
    ("X-Bad : 1",),
    ("X-\x01: 1",),
    ("X-Text: \xe9\x0b",),
    ("X-Text: \xe9\t\xa0 ",),
)
_CODINGS = (
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: chunked, identity",
    "Transfer-Encoding: identity",
    "Transfer-Encoding: identity, chunked",
    "Transfer-Encoding: xchunked",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding:\x0bchunked",
    "Transfer-Encoding: chunked;q=1",
    "Transfer-Encoding : chunked",
    "Transfer-Encoding: ",
)


_EXTENSIONS = (";a=b", ";a", ';a="b;c"', " ", ";\x01", " ;a", ";")
_TRAILERS = ("X-Mark: late\r\n", "Upgrade: h2c\r\nConnection: upgrade\r\n", "Host: u\r\n", "a\r\n")


def _chunked(chance: random.Random, body: bytes) -> bytes:
    data, at = b"", 0
    while at < len(body):
        size = chance.randrange(1, len(body) + 1)
        chunk = body[at : at + size]
        extension = chance.choice(_EXTENSIONS) if chance.random() < 0.1 else ""
        data += f"{chance.choice(('', '', '0'))}{len(chunk):x}{extension}\r\n".encode()
        data += chunk + b"\r\n"
        at += size
    trailers = chance.choice(_TRAILERS) if chance.random() < 0.2 else ""
    return data + b"0\r\n" + trailers.encode() + b"\r\n"


def _framed(chance: random.Random, body: bytes) -> tuple[list[str], bytes]:
    """Return the headers that tell where a body ends, rightly or not, and the body as sent."""
    length = len(body)
    kind = chance.randrange(7)
    if kind == 0:
        return [], b""
    if kind == 1:
        return [f"Content-Length: {max(0, length + chance.randint(-3, 3))}"], body
    if kind == 2:
        wrong = ("+1", "", "1,2", "0x2", "1 1", "-1", "2" * 30, "1_0", f"{length}, {length}")
        return [f"Content-Length: {chance.choice(wrong)}"], body
    if kind == 3:
        other = chance.choice((length, length + 1))
        return [f"Content-Length: {length}", f"Content-Length: {other}"], body
    if kind == 4:
        both = ["Transfer-Encoding: chunked", f"Content-Length: {chance.choice((length, 5))}"]
        return chance.sample(both, 2), _chunked(chance, body)
    return [chance.choice(_CODINGS)], _chunked(chance, body)


def _request(chance: random.Random) -> bytes:
    """Return a request that is in order but for one thing or two, and offers an upgrade or not."""
    body = chance.choice(_BODIES)
    odd = {chance.randrange(9) for _ in range(chance.choice((0, 0, 1, 1, 2)))}
    method = chance.choice(_METHODS) if 0 in odd else "POST"
    target = chance.choice(_TARGETS) if 1 in odd else _LEARN
    version = chance.choice(_VERSIONS) if 2 in odd else "HTTP/1.1"
    if 4 in odd:
        framing, sent = _framed(chance, body)
    elif chance.random() < 0.5:
        framing, sent = ["Transfer-Encoding: chunked"], _chunked(chance, body)
    else:
        framing, sent = [f"Content-Length: {len(body)}"], body
    headers = [*(chance.choice(_HOSTS) if 3 in odd else ("Host: t",)), *framing]
    for some, here in ((_OFFERS, chance.random() < 0.5), (_MORE, 5 in odd or 6 in odd)):
        if here:
            at = chance.randrange(len(headers) + 1)
            headers[at:at] = chance.choice(some)
    return "\r\n".join((f"{method} {target} {version}", *headers, "", "")).encode("latin-1") + sent


def stream(chance: random.Random) -> bytes:
    """Return some requests in a row, some of them damaged."""
    data = bytearray(b"".join(_request(chance) for _ in range(chance.randint(1, 4))))
    if chance.random() < 0.25:
        for _ in range(chance.randint(1, 3)):
            at, short = chance.randrange(len(data)), chance.random() < 0.7
            at = min(at, 400) if short else at
            what = chance.randrange(4)
            if what == 0:
                data[at : at + chance.randint(1, 4)] = b""
            elif what == 1:
                data[at:at] = chance.choice(
                    (b"\r\n", b"\n", b"\r", b" ", b"\x00", b"0", b",", b"\t")
                )
            elif what == 2:
                data[at] = chance.randrange(256)
            else:
                data[at:at] = data[max(0, at - 20) : at]
    return bytes(data)
