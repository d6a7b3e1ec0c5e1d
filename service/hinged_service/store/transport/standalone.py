"""Interface of a Redis deployment (standalone, Sentinel, cluster), and the standalone one."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from typing import Any, Protocol

from hinged_service.store.transport.address import Address
from hinged_service.store.transport.connection_factory import ConnectionFactory
from hinged_service.store.transport.connection_pool import ConnectionPool
from hinged_service.store.transport.shared_connection import Command, Seen, Word

__all__ = ["Standalone", "Topology"]


class Topology(Protocol):
    """One or more servers that together hold the keys; a command's key leads to its server."""

    async def ask(self, key: str, *command: Word) -> Any:
        """Send a command, which runs at most once, and return its answer."""

    def share(self, key: str, command: Command, changes: bool) -> Awaitable[tuple[Any, Seen]]:
        """Send a command over the connection that all share, as `SharedConnection.ask` does."""

    async def ask_each(self, commands: Mapping[str, Command]) -> Sequence[Any]:
        """Send a command for each key, at most once; an error stands in its answer's place."""

    async def primaries(self) -> Sequence[ConnectionPool]:
        """Return the servers that hold keys."""

    async def aclose(self) -> None:
        """Close every connection."""


class Standalone:
    """A single server, with at most `most` connections."""

    def __init__(self, address: Address, most: int, timeout_s: float) -> None:
        place = address.places[0] if address.places else ("", 0)
        make = ConnectionFactory(address, timeout_s)
        self._pool = ConnectionPool(
            functools.partial(make.opened, place), most, functools.partial(make.shared, place)
        )
        self.share = self._pool.shared.ask

    def ask(self, key: str, *command: Word) -> Coroutine[Any, Any, Any]:
        """Send a command, which runs at most once, and return its answer; to be awaited."""
        return self._pool.ask(*command)

    async def ask_each(self, commands: Mapping[str, Command]) -> Sequence[Any]:
        """Send a command for each key, at most once; an error stands in its answer's place."""
        return await self._pool.ask_each(list(commands.values()))

    async def primaries(self) -> Sequence[ConnectionPool]:
        """Return the server."""
        return [self._pool]

    async def aclose(self) -> None:
        """Close every connection."""
        await self._pool.aclose()
