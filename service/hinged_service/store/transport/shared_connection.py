"""One connection to a server that many callers share, and that tells what others change."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final
from weakref import WeakValueDictionary

import hiredis
import msgspec
from redis import exceptions
from redis.asyncio.connection import DefaultParser

__all__ = ["UNSEEN", "Command", "Pulse", "Seen", "SharedConnection", "SharedLink", "Word"]

logger = logging.getLogger(__name__)

Word = str | bytes | int
Command = tuple[Word, ...]

_INCOMPLETE: Final = object()
_LOST: Final = "The connection was lost."
_NOT_PRIMARY = (exceptions.ReadOnlyError, exceptions.MasterDownError)


class Pulse(msgspec.Struct, gc=False, eq=False):
    """The moment, on the loop's clock, up to which a server has reported all changes.

    Attributes
    ----------
    at_s
        The moment: a command sent then was answered, and changes come in order with answers.

    """

    at_s: float


class Seen(msgspec.Struct, eq=False, weakref=True):
    """The moment up to which what was read of a stream is known to hold: that of its pulse.

    Attributes
    ----------
    pulse
        The server's while it would tell of a change, so that an unchanged stream stays known
        without a read of its own; else one that stands still.
    notified
        Whether the server would tell.

    """

    pulse: Pulse
    notified: bool = False

    def end(self) -> None:
        """Let it stand still, as the server reported a change or is not connected any more."""
        self.pulse, self.notified = Pulse(self.pulse.at_s), False


UNSEEN: Final = Seen(Pulse(-1e9))
"""The pulse of a stream that was never read, or may be another's."""


class SharedConnection(asyncio.Protocol):
    """A connection whose commands do not wait for each other's answers.

    A command leaves at once if no answer is awaited, else in one write with others of its round of
    the loop; answers that come together are read together. The server remembers what was read here
    (client-side caching by RESP3) and tells once when another connection changes it, before any
    later answer.

    Parameters
    ----------
    timeout_s
        Silence, in seconds, after which the next command ends it.

    Attributes
    ----------
    open
        Whether it is connected.
    primary
        Whether the server called itself a primary.

    """

    def __init__(self, timeout_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._timeout_s = timeout_s
        self._reader = hiredis.Reader(
            replyError=DefaultParser.parse_error, notEnoughData=_INCOMPLETE
        )
        self._transport: asyncio.Transport
        self._sent: deque[tuple[asyncio.Future[Any], float, bytes, bool]] = deque()
        self._pulse = Pulse(-1e9)
        self._seen: WeakValueDictionary[bytes, Seen] = WeakValueDictionary()
        self._notifies = False
        self._out: list[bytes] = []
        self.open = False
        self.primary = False

    @property
    def busy(self) -> bool:
        """True while an answer is awaited."""
        return bool(self._sent)

    async def greet(self, login: Mapping[str, Any]) -> None:
        """Log in and ask the server to tell of changes.

        One that does not, or by the rights of the user may not, is used all the same.
        """
        words: Command = ()
        pushes = True
        if "password" in login:
            words = ("AUTH", login.get("username", "default"), login["password"])
        try:
            hello, _ = await self.ask("", ("HELLO", 3, *words))
            self.primary = hello[b"role"] == b"master"
        except exceptions.AuthenticationError:
            raise
        except exceptions.ResponseError:  # of a proxy that knows no RESP3
            pushes = False
            if words:
                await self.ask("", words)
        if database := login.get("db"):
            await self.ask("", ("SELECT", database))
        if not pushes:  # Redis would accept the next command, and tell nothing
            logger.warning("Redis does not tell of changes: it knows no RESP3")
            return
        try:
            await self.ask("", ("CLIENT", "TRACKING", "ON", "NOLOOP"))
            self._notifies = True
        except exceptions.ResponseError as error:
            logger.warning("Redis does not tell of changes: %s", error)

    def ask(
        self, key: str, command: Command, changes: bool = False
    ) -> asyncio.Future[tuple[Any, Seen]]:
        """Send a command; return its answer, to be awaited, and up to when that holds.

        Parameters
        ----------
        key
            The key, or one of the stream's, that it reads.
        command
            The command; an error reply is raised as redis-py does.
        changes
            Whether it may change the stream: of that the server tells only others.

        """
        answer: asyncio.Future[tuple[Any, Seen]] = self._loop.create_future()
        now_s, stream = self._loop.time(), key.encode().partition(b"}")[0]
        self._sent.append((answer, now_s, stream, changes))
        if not self.open or now_s - self._sent[0][1] > self._timeout_s:
            self.cut()
            return answer
        words: Any = command  # hiredis's stub knows only one word
        packed = hiredis.pack_command(words)
        if len(self._sent) == 1:
            self._transport.write(packed)
            return answer
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out.append(packed)
        return answer

    def _flush(self) -> None:
        if self.open:
            self._transport.write(b"".join(self._out))
        self._out.clear()

    def cut(self) -> None:
        """Close the connection; waiting callers get an error, as when it was lost."""
        if self.open:
            self._transport.abort()
        self.connection_lost(None)

    def doubt(self) -> None:
        """Let all that was read here count as changed."""
        for seen in list(self._seen.values()):
            seen.end()
        self._seen.clear()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin; called by the loop, as the next two."""
        self._transport = transport
        self.open = True

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell all callers that wait."""
        self.open = False
        self.doubt()
        for answer, *_ in self._sent:
            if not answer.done():
                answer.set_exception(exceptions.ConnectionError(_LOST))
        self._sent.clear()

    def data_received(self, data: bytes) -> None:
        """Hand out answers, and take note of changes, in the order in which they came."""
        self._reader.feed(data)
        try:
            while (found := self._reader.gets()) is not _INCOMPLETE:
                if type(found) is hiredis.PushNotification:
                    self._note_change(found)
                    continue
                answer, sent_at_s, stream, changes = self._sent.popleft()
                # Only here do other readers of the stream learn of it.
                if changes and (old := self._seen.pop(stream, None)) is not None:
                    old.end()
                if isinstance(found, Exception):
                    self._fail(answer, found)
                    continue
                self._pulse.at_s = sent_at_s
                seen = self._seen.get(stream)
                if not self._notifies:
                    seen = Seen(Pulse(sent_at_s))
                elif seen is None:
                    seen = self._seen[stream] = Seen(self._pulse, True)
                if not answer.done():
                    answer.set_result((found, seen))
        except (exceptions.InvalidResponse, hiredis.ProtocolError, IndexError):
            self.cut()  # no server of this protocol

    def _fail(self, answer: asyncio.Future[Any], error: Exception) -> None:
        if not answer.done():
            answer.set_exception(error)
        if isinstance(error, _NOT_PRIMARY):
            self.cut()

    def _note_change(self, found: Sequence[Any]) -> None:
        """Take note of a change of keys, or of all if none is named."""
        if found[0] != b"invalidate":
            return
        if found[1] is None:
            self.doubt()
            return
        for key in found[1]:
            if (old := self._seen.pop(key.partition(b"}")[0], None)) is not None:
                old.end()


class SharedLink:
    """The shared connection to one server: made at its first use, and anew once it is lost.

    Parameters
    ----------
    opened
        Makes a connection.

    """

    def __init__(self, opened: Callable[[], Awaitable[SharedConnection]]) -> None:
        self._opened = opened
        self._connection: SharedConnection | None = None
        self._one_opens = asyncio.Lock()
        self._cuts = 0

    @property
    def busy(self) -> bool:
        """True while it is made or an answer is awaited."""
        connection = self._connection
        return self._one_opens.locked() or (connection is not None and connection.busy)

    def ask(self, key: str, command: Command, changes: bool) -> Awaitable[tuple[Any, Seen]]:
        """Send a command as `SharedConnection.ask` does."""
        connection = self._connection
        if connection is not None and connection.open:
            return connection.ask(key, command, changes)
        return self._ask_anew(key, command, changes)

    async def _ask_anew(self, key: str, command: Command, changes: bool) -> tuple[Any, Seen]:
        async with self._one_opens:
            if self._connection is None or not self._connection.open:
                cuts, connection = self._cuts, await self._opened()
                if self._cuts != cuts:  # meanwhile: it may be of a server that is left
                    connection.cut()
                    raise exceptions.ConnectionError(_LOST)
                self._connection = connection
        return await self._connection.ask(key, command, changes)

    def cut(self) -> None:
        """Close the connection, also one that is just being made; the next command makes one."""
        self._cuts += 1
        if self._connection is not None:
            self._connection.cut()

    def doubt(self) -> None:
        """Let all that was read over it count as changed."""
        if self._connection is not None:
            self._connection.doubt()
