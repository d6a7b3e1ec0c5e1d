"""An answer goes out in one write, and nothing of it is held back longer than it may be."""

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from hinged_service.server.fast_path import FastPathProtocol

App = Callable[[Any, Any, Any], Awaitable[None]]
GET = b"GET / HTTP/1.1\r\nhost: t\r\n\r\n"
HEAD = GET.replace(b"GET", b"HEAD", 1)
LENGTH = b"content-length"
BIG = b"x" * 100_000


class Written(asyncio.Transport):
    """A transport that notes what is written to it."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self.writes: list[bytes] = []
        self.closed = False

    def write(self, data: Any) -> None:
        if data:
            self.writes.append(bytes(data))

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


def connected(app: App, transport: Written) -> FastPathProtocol:
    config = uvicorn.Config(app, access_log=False, server_header=False, date_header=False)
    config.load()
    config.loaded_app = app
    protocol = FastPathProtocol(config, ServerState(), {}, asyncio.get_running_loop())
    protocol.connection_made(transport)
    return protocol


async def rounds() -> None:
    """Let the loop go round until nothing is left to do."""
    for _ in range(10):
        await asyncio.sleep(0)


def written(app: App, *requests: bytes) -> Written:
    """Return what the app's answers made of the transport."""

    async def serve() -> Written:
        transport = Written()
        protocol = connected(app, transport)
        for request in requests:
            protocol.data_received(request)
            await rounds()
        protocol.connection_lost(None)
        return transport

    return asyncio.run(serve())


def answering(*parts: bytes, status: int = 200, headers: Any = ()) -> App:

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": status, "headers": list(headers)})
        for number, part in enumerate(parts, 1):
            more = number < len(parts)
            await send({"type": "http.response.body", "body": part, "more_body": more})

    return app


def of_length(body: bytes) -> App:
    return answering(body, headers=[(LENGTH, b"%d" % len(body))])


def head_of(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body)


def test_an_answer_is_one_write_also_the_second_of_a_connection() -> None:
    assert written(of_length(b"{}"), GET, GET).writes == [head_of(b"{}") + b"{}"] * 2


def test_answers_to_requests_that_came_together_stand_in_their_order() -> None:
    bodies = iter([b"1", b"22", b"333"])

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await of_length(next(bodies))(scope, receive, send)

    found = b"".join(written(app, GET * 3).writes)
    assert found == b"".join(head_of(b) + b for b in (b"1", b"22", b"333"))


def test_a_big_body_is_not_copied() -> None:
    assert written(of_length(BIG), GET).writes == [head_of(BIG), BIG]


@pytest.mark.parametrize(
    ("app", "request_"),
    [(of_length(b"{}"), HEAD), (answering(b"", status=204), GET), (of_length(b""), GET)],
)
def test_an_answer_without_body_is_complete(app: App, request_: bytes) -> None:
    (only,) = written(app, request_).writes
    assert only.startswith(b"HTTP/1.1 20")
    assert only.endswith(b"\r\n\r\n")


def test_parts_of_a_body_go_out_as_they_come() -> None:
    come = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"a", "more_body": True})
        await come.wait()
        await send({"type": "http.response.body", "body": b"b"})

    async def serve() -> tuple[list[bytes], list[bytes]]:
        transport = Written()
        connected(app, transport).data_received(GET)
        await rounds()
        before = list(transport.writes)
        come.set()
        await rounds()
        return before, transport.writes[len(before) :]

    (first,), (second,) = asyncio.run(serve())
    assert first.endswith(b"\r\n\r\n1\r\na\r\n")
    assert second == b"1\r\nb\r\n0\r\n\r\n"


def test_an_empty_first_part_lets_the_head_out() -> None:
    come = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        await come.wait()

    (begun,) = written(app, GET).writes
    assert begun.endswith(b"\r\n\r\n")


def test_the_word_to_go_on_is_not_held_back() -> None:
    asks = b"POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 2\r\nexpect: 100-continue\r\n\r\n"

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await of_length(b"{}")(scope, receive, send)

    assert written(app, asks, b"{}").writes == [
        b"HTTP/1.1 100 Continue\r\n\r\n",
        head_of(b"{}") + b"{}",
    ]


def test_an_app_that_fails_after_the_head_leaves_no_half_of_it() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(LENGTH, b"2")]})
        raise ValueError("in the middle")

    transport = written(app, GET)
    assert transport.writes == [head_of(b"{}")]
    assert transport.closed


def test_an_app_that_fails_before_the_head_is_told_of() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise ValueError("at once")

    (only,) = written(app, GET).writes
    assert only.startswith(b"HTTP/1.1 500 ")
    assert only.endswith(b"Internal Server Error")


def test_a_client_that_is_gone_gets_no_head() -> None:
    gone = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(LENGTH, b"2")]})
        await gone.wait()
        raise ValueError("too late")

    async def serve() -> Written:
        transport = Written()
        protocol = connected(app, transport)
        protocol.data_received(GET)
        await rounds()
        protocol.connection_lost(ConnectionResetError())
        gone.set()
        await rounds()
        return transport

    transport = asyncio.run(serve())
    assert transport.writes == []
    assert transport.closed


def test_a_connection_that_is_gone_leaves_nothing_behind() -> None:
    async def serve() -> weakref.ref[FastPathProtocol]:
        transport = Written()
        protocol = connected(of_length(b"{}"), transport)
        protocol.data_received(GET)
        await rounds()
        protocol.connection_lost(None)
        assert transport.writes
        return weakref.ref(protocol)

    gc.disable()
    try:
        assert asyncio.run(serve())() is None, "only the collector would find it"
    finally:
        gc.enable()
