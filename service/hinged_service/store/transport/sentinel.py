"""A primary that Sentinels watch: every connection leads to the one that they name."""

from __future__ import annotations

import asyncio
import functools
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from redis import exceptions
from redis.asyncio.connection import AbstractConnection

from hinged_service.store.transport.address import Address, Place
from hinged_service.store.transport.connection_factory import ConnectionFactory
from hinged_service.store.transport.connection_pool import ConnectionPool, NoPrimary, mendable
from hinged_service.store.transport.shared_connection import Command, Seen, SharedConnection, Word
from hinged_service.tasks import cancel

__all__ = ["Sentinels"]

T = TypeVar("T")

_AT_A_SENTINEL = 2
"""Connections to each."""
_LOOK_S = 1.0


class Sentinels:
    """The server that Sentinels call the primary, looked up for each new connection.

    A failover cuts connections, or the old primary answers READONLY, which cuts them here; so
    the next command finds the new one. An old primary that is cut off from the Sentinels goes
    on and loses it all later: so they are asked every second too, while commands are sent. All
    are asked at once, since one that hangs would use up the time of the others; the answer of
    most is tried first. A server counts only if it calls itself a primary.

    Parameters
    ----------
    address
        The Sentinels, and their name for the primary.
    most
        Most connections to the primary.
    timeout_s
        Longest that a command may take, in seconds.

    """

    def __init__(self, address: Address, most: int, timeout_s: float) -> None:
        self._service = address.service
        self._bound_s = timeout_s / 3
        sentinels = ConnectionFactory(address, self._bound_s, address.sentinel_login)
        self._sentinels = [
            ConnectionPool(
                functools.partial(sentinels.opened, place),
                _AT_A_SENTINEL,
                functools.partial(sentinels.shared, place),
            )
            for place in address.places
        ]
        self._make = ConnectionFactory(address, timeout_s)
        self._primary = ConnectionPool(self._opened, most, self._shared)
        self._at: Place | None = None
        self._look_at_s = 0.0
        self._looking: asyncio.Task[list[Place]] | None = None
        self._asking: set[asyncio.Task[Place | None]] = set()
        self._refusal: Exception | None = None

    async def ask(self, key: str, *command: Word) -> Any:
        """Send a command, which runs at most once, and return its answer."""
        if time.monotonic() >= self._look_at_s:
            self._look()
        return await self._primary.ask(*command)

    def share(self, key: str, command: Command, changes: bool) -> Awaitable[tuple[Any, Seen]]:
        """Send a command over the connection that all share, as `SharedConnection.ask` does."""
        if time.monotonic() >= self._look_at_s:
            self._look()
        return self._primary.shared.ask(key, command, changes)

    async def ask_each(self, commands: Mapping[str, Command]) -> Sequence[Any]:
        """Send a command for each key, at most once; an error stands in its answer's place."""
        if time.monotonic() >= self._look_at_s:
            self._look()
        return await self._primary.ask_each(list(commands.values()))

    async def primaries(self) -> Sequence[ConnectionPool]:
        """Return the primary."""
        return [self._primary]

    async def aclose(self) -> None:
        """Close every connection."""
        await cancel(self._looking, *self._asking)
        for pool in (self._primary, *self._sentinels):
            await pool.aclose()

    async def _opened(self) -> AbstractConnection:
        """Return a connection to the primary of this moment."""
        return await self._to_primary(self._connection_at)

    async def _shared(self) -> SharedConnection:
        """Return a connection to it that all share."""
        return await self._to_primary(self._shared_at)

    async def _connection_at(self, place: Place) -> AbstractConnection | None:
        connection = await self._make.opened(place)
        await connection.send_command("ROLE")
        if (await connection.read_response())[0] == b"master":
            return connection
        await connection.disconnect(nowait=True)
        return None

    async def _shared_at(self, place: Place) -> SharedConnection | None:
        shared = await self._make.shared(place)
        if shared.primary:
            return shared
        shared.cut()
        return None

    async def _to_primary(self, connect: Callable[[Place], Awaitable[T | None]]) -> T:
        """Return a function that connects to the first of the named servers that is a primary."""
        places = await asyncio.shield(self._look())
        failure = self._refusal
        for place in places:
            try:
                connection = await connect(place)
            except (OSError, exceptions.ConnectionError, exceptions.TimeoutError) as error:
                failure = error
                continue
            if connection is not None:
                self._at = place
                return connection
        if failure is not None:
            raise failure
        raise NoPrimary(f"No Sentinel names a server of {self._service!r} that is a primary.")

    def _look(self) -> asyncio.Task[list[Place]]:
        """Ask the Sentinels; concurrent callers share one answer."""
        if self._looking is None:
            self._look_at_s = time.monotonic() + _LOOK_S
            self._looking = asyncio.create_task(self._named())
            self._looking.add_done_callback(self._looked)
        return self._looking

    def _looked(self, _: asyncio.Task[list[Place]]) -> None:
        self._looking = None

    async def _named(self) -> list[Place]:
        """Return the primaries that the Sentinels name; drop the present one if most differ."""
        votes: Counter[Place] = Counter()
        asked = [asyncio.create_task(self._say(one)) for one in self._sentinels]
        for task in asked:  # one that is slow ends by itself
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)
        for answer in asyncio.as_completed(asked):
            place = await answer
            if place is None:
                continue
            votes[place] += 1
            if votes[place] * 2 > len(asked):
                if self._at not in {None, place}:
                    self._at = None
                    await self._primary.cut()
                break
        return [place for place, _ in votes.most_common()]

    async def _say(self, sentinel: ConnectionPool) -> Place | None:
        try:
            async with asyncio.timeout(self._bound_s):
                named = await sentinel.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._service)
        except (OSError, TimeoutError, exceptions.RedisError, RuntimeError) as error:
            if mendable(error):  # else it is away; the others know
                self._refusal = error
        else:
            self._refusal = None
            if named is not None:
                return named[0].decode(), int(named[1])
        return None
