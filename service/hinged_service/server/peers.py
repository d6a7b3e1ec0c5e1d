"""Connections between the workers of one service: calls for another worker, and their answers.

Each worker listens on a unix socket in a private directory, and connects to the sockets of the
others. A frame is its length in four bytes and a message in MessagePack; frames of one round of
the loop leave in one write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from hinged_service.tasks import Answer

__all__ = ["NOT_TAKEN", "Greeting", "Link", "Lost", "PeerAnswer", "PeerCall", "Serving"]

NOT_TAKEN: Final = 0
"""Status of an answer: the worker did nothing about the call."""
_LENGTH_BYTES: Final = 4
_PING: Final = 0
_LOOKS: Final = 4
"""Pings to a silent worker before it counts as stalled."""

_encode = msgspec.msgpack.Encoder().encode


class Greeting(msgspec.Struct, array_like=True):
    """First frame of a worker to each that connects.

    Attributes
    ----------
    name
        The worker.
    group
        The same for workers that may call each other: version and settings.

    """

    name: str
    group: str


class PeerCall(msgspec.Struct, array_like=True, gc=False):
    """A learn call for another worker, which the sender has admitted.

    Attributes
    ----------
    number
        Of this connection; 0 asks for a sign of life.
    model, uid
        Name and uid of the model as the sender knows it.
    request_id
        The client's, if it gave one.
    body
        JSON as it came.

    """

    number: int
    model: str
    uid: str
    request_id: bytes
    body: bytes


class PeerAnswer(msgspec.Struct, array_like=True, gc=False):
    """The answer to a call; the newline at the end of a good one is left to the receiver."""

    number: int
    status: int
    headers: list[tuple[bytes, bytes]] = []
    body: bytes = b""


class Lost(Exception):
    """The connection broke before the answer came: the call may have been carried out."""


class Taking(Protocol):
    """Takes a call, and calls `Serving.answer` once, now or later."""

    def __call__(self, call: PeerCall, peer: Serving, /) -> None: ...


class _Framed(asyncio.Protocol):
    """A connection that carries frames."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport
        self._unread: list[bytes] = []
        self._missing = 0
        self.open = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin; called by the loop, as the next two."""
        self._transport = transport
        self.open = True

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self.open = False

    def data_received(self, data: bytes) -> None:
        """Take the frames that are whole."""
        self._missing -= len(data)
        if self._unread:
            self._unread.append(data)
            if self._missing > 0:
                return
            data = b"".join(self._unread)
        at, size = 0, len(data)
        try:
            while size - at >= _LENGTH_BYTES:
                start = at + _LENGTH_BYTES
                end = start + int.from_bytes(data[at:start], "big")
                if end > size:
                    break
                self._take(data[start:end])
                at = end
        except msgspec.MsgspecError:
            self.cut()  # no worker of this version
            return
        rest = data[at:]
        self._unread = [rest] if rest else []
        self._missing = (end - size) if len(rest) >= _LENGTH_BYTES else 0

    def _take(self, frame: bytes) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Close the connection once all is written."""
        if self.open:
            self._transport.close()

    def cut(self) -> None:
        """Close the connection at once."""
        if self.open:
            self._transport.abort()
        self.connection_lost(None)

    def _send(self, message: msgspec.Struct) -> None:
        frame = _encode(message)
        if self.open:
            self._transport.write(len(frame).to_bytes(_LENGTH_BYTES, "big") + frame)


class Link(_Framed):
    """A connection to another worker, to call it.

    Parameters
    ----------
    group
        The worker is called only if it greets with the same.
    timeout_s
        Time, in seconds, in which a silent worker is asked for signs of life; its calls count as
        lost soon after.
    changed
        Called when `live` changes.

    Attributes
    ----------
    name
        Name of the worker, once it greeted.
    live
        Whether it may be called.

    """

    _decode = msgspec.msgpack.Decoder(PeerAnswer).decode
    _decode_greeting = msgspec.msgpack.Decoder(Greeting).decode

    def __init__(self, group: str, timeout_s: float, changed: Callable[[], None]) -> None:
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self.name = ""
        self.live = False
        self._group = group
        self._timeout_s = timeout_s
        self._changed = changed
        self._waiting: dict[int, Answer[PeerAnswer]] = {}
        self._number = _PING
        self._silent = 0
        self._timer: asyncio.TimerHandle | None = None

    def call(
        self, model: str, uid: str, request_id: bytes, body: bytes, answer: Answer[PeerAnswer]
    ) -> None:
        """Send a call, with the fields of `PeerCall`; `answer` gets `Lost` if none comes."""
        self._number += 1
        self._waiting[self._number] = answer
        self._send(PeerCall(self._number, model, uid, request_id, body))
        if self._timer is None:
            self._silent = 0
            self._look_later()

    def _look_later(self) -> None:
        self._timer = self._loop.call_later(self._timeout_s / _LOOKS, self._look)

    def _look(self) -> None:
        """End the connection if the worker is silent; else ask for a sign of life.

        Looks are counted, not seconds: while this worker stands still itself, it asks nothing.
        """
        self._timer = None
        if not self._waiting:
            return
        if self._silent == _LOOKS:
            self.cut()
            return
        self._silent += 1
        self._send(PeerCall(_PING, "", "", b"", b""))
        self._look_later()

    def data_received(self, data: bytes) -> None:
        """Take the bytes that the worker sends."""
        self._silent = 0
        super().data_received(data)

    def _take(self, frame: bytes) -> None:
        if not self.name:
            greeting = Link._decode_greeting(frame)
            self.name = greeting.name
            self._be(greeting.group == self._group)
            return
        peer_answer = Link._decode(frame)
        if peer_answer.number == _PING:
            if peer_answer.status == NOT_TAKEN:
                self._be(False)  # it stops
            return
        answer = self._waiting.pop(peer_answer.number, None)
        if answer is not None and not answer.done():
            answer.set_result(peer_answer)

    def _be(self, live: bool) -> None:
        if live is not self.live:
            self.live = live
            self._changed()

    def connection_lost(self, exc: Exception | None) -> None:
        """End; all callers that wait get `Lost`."""
        super().connection_lost(exc)
        self._be(False)
        if self._timer is not None:
            self._timer.cancel()
        waiting, self._waiting = self._waiting, {}
        for answer in waiting.values():
            if not answer.done():
                answer.set_exception(Lost())


class Serving(_Framed):
    """A connection from another worker, which calls this one."""

    _decode = msgspec.msgpack.Decoder(PeerCall).decode

    def __init__(self, greeting: Greeting, take: Taking, serving: set[Serving]) -> None:
        super().__init__()
        self._greeting = greeting
        self._taking = take
        self._serving = serving

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Greet."""
        super().connection_made(transport)
        self._serving.add(self)
        self._send(self._greeting)

    def connection_lost(self, exc: Exception | None) -> None:
        """End; calls under way go on, and their answers are dropped."""
        super().connection_lost(exc)
        self._serving.discard(self)

    def _take(self, frame: bytes) -> None:
        call = Serving._decode(frame)
        if call.number == _PING:
            self._send(PeerAnswer(_PING, 200))
        else:
            self._taking(call, self)

    def answer(self, peer_answer: PeerAnswer) -> None:
        """Answer a call."""
        self._send(peer_answer)

    def leave(self) -> None:
        """Ask for no further calls; answers are still sent."""
        self._send(PeerAnswer(_PING, NOT_TAKEN))
