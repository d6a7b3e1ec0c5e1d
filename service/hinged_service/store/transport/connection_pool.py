"""Connections to one server: bounded, kept, each command sent at most once."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Awaitable, Callable, Sequence
from itertools import chain
from typing import Any

import hiredis
from redis import exceptions
from redis.asyncio.connection import AbstractConnection

from hinged_service.store.transport.shared_connection import (
    Command,
    SharedConnection,
    SharedLink,
    Word,
)

__all__ = ["REFUSED", "ConnectionPool", "NoPrimary", "mendable", "refused"]

REFUSED = (
    exceptions.AuthenticationError,
    exceptions.AuthorizationError,
    exceptions.NoPermissionError,
)
"""Errors of a user without the right, or with a wrong password."""


class NoPrimary(exceptions.ConnectionError):
    """None of the servers is, or names, the primary; the message is for people."""


_IN_SCRIPT = re.compile("ACL failure in script|The user executing the script can't")
_CLOSED = "The connections were closed."
_LARGE_BYTES = 2**15
_NOT_PRIMARY = (exceptions.ReadOnlyError, exceptions.MasterDownError)


def refused(error: BaseException) -> bool:
    """Return whether an error is of a user without the right, or with a wrong password."""
    in_script = isinstance(error, exceptions.ResponseError) and _IN_SCRIPT.search(str(error))
    return bool(in_script) or isinstance(error, REFUSED)


def mendable(error: BaseException) -> str:
    """Return the fault that an operator must mend before this error ends; empty if unknown."""
    if refused(error):
        return f"Redis refuses the user or the password of the configured address: {error}"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            reason = cause.verify_message if isinstance(cause, ssl.SSLCertVerificationError) else ""
            return f"Redis and the service do not agree on TLS: {reason or cause.reason or cause}."
        cause = cause.__cause__ or cause.__context__
    return ""


def _packed(connection: AbstractConnection, command: Command) -> list[bytes]:
    """Return a command as it is sent; large words stay as they are.

    hiredis copies these several times: 300 kB take it 60 to 400 µs, and redis-py 9.
    """
    if any(len(word) > _LARGE_BYTES for word in command if isinstance(word, bytes)):
        return connection.pack_command(*command)
    words: Any = command  # hiredis's stub knows only one word
    return [hiredis.pack_command(words)]


class ConnectionPool:
    """A bounded number of connections to one server; further commands wait.

    Callers bound the time for that and for the answer, by a cancellation. A connection whose
    answer was not read is cut, so that no other caller gets it. redis-py's own pool costs as
    much as the whole exchange with Redis, and its clients repeat a command whose answer they
    missed.

    Parameters
    ----------
    opened
        Makes a connection.
    most
        The most of them.
    shared
        Makes the connection that callers share, beside these.

    Attributes
    ----------
    closed
        True once no connection is opened any more.
    shared
        The connection that callers share.

    """

    def __init__(
        self,
        opened: Callable[[], Awaitable[AbstractConnection]],
        most: int,
        shared: Callable[[], Awaitable[SharedConnection]],
    ) -> None:
        self._opened = opened
        self._shared_opened = shared
        self.shared = SharedLink(self._new_shared)
        self.closed = False
        self._slots = asyncio.Semaphore(most)
        self._idle: list[AbstractConnection] = []
        self._used: set[AbstractConnection] = set()

    @property
    def busy(self) -> bool:
        """True while one of its connections is in use."""
        return bool(self._used) or self._slots.locked() or self.shared.busy

    async def ask(self, *command: Word) -> Any:
        """Send a command and return its answer; an error reply is raised as redis-py does."""
        async with self._slots:
            connection = await self._usable()
            try:
                await connection.send_packed_command(_packed(connection, command))
                return await connection.read_response()
            except _NOT_PRIMARY:
                await self._drop(connection, *self._idle)
                self.shared.cut()
                raise
            finally:
                self._give_back(connection)

    async def ask_each(self, commands: Sequence[Command]) -> list[Any]:
        """Send commands together over one connection; an error reply stands in its place."""
        async with self._slots:
            connection = await self._usable()
            try:
                parts = chain.from_iterable([_packed(connection, one) for one in commands])
                await connection.send_packed_command(list(parts))
                answers: list[Any] = []
                for _ in commands:
                    try:
                        answers.append(await connection.read_response())
                    except exceptions.ResponseError as error:
                        answers.append(error)
                if any(isinstance(answer, _NOT_PRIMARY) for answer in answers):
                    await self._drop(connection, *self._idle)
                return answers
            finally:
                self._give_back(connection)

    async def aclose(self) -> None:
        """Close every connection; what is asked later fails, as when the server is away."""
        self.closed = True
        await self.cut()

    async def cut(self) -> None:
        """Close every connection, also those in use; what is asked later opens new ones."""
        cut = [one.disconnect() for one in (*self._idle, *self._used)]
        self._idle.clear()
        self.shared.cut()
        closed = asyncio.sleep(0)  # for the loop to close that one, too
        await asyncio.gather(closed, *cut, return_exceptions=True)  # some may hang

    async def _new_shared(self) -> SharedConnection:
        self._check_open()
        return await self._shared_opened()

    async def _usable(self) -> AbstractConnection:
        """Lend a connection; one that was cut while it was idle is dropped."""
        while self._idle:
            connection = self._idle.pop()
            try:
                if connection.is_connected and not await connection.can_read():
                    break
            except (OSError, exceptions.ConnectionError):
                pass
            await self._drop(connection)
        else:
            self._check_open()
            connection = await self._opened()
            if self.closed:
                await self._drop(connection)
                self._check_open()
        self._used.add(connection)
        return connection

    def _check_open(self) -> None:
        if self.closed:
            raise exceptions.ConnectionError(_CLOSED)

    def _give_back(self, connection: AbstractConnection) -> None:
        self._used.discard(connection)
        if connection.is_connected:
            self._idle.append(connection)

    async def _drop(self, *connections: AbstractConnection) -> None:
        for one in connections:
            await one.disconnect(nowait=True)
