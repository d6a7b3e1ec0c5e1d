"""A cluster: each key's slot belongs to one of its primaries, which may change at any time."""

from __future__ import annotations

import asyncio
import functools
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import chain
from typing import Any, TypeVar

from redis import exceptions
from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot

from hinged_service.errors import StartupError
from hinged_service.store.transport.address import Address, Place
from hinged_service.store.transport.connection_factory import ConnectionFactory
from hinged_service.store.transport.connection_pool import (
    REFUSED,
    ConnectionPool,
    NoPrimary,
    mendable,
)
from hinged_service.store.transport.shared_connection import Command, Pulse, Seen, Word
from hinged_service.tasks import cancel

__all__ = ["Cluster"]

T = TypeVar("T")

_DICE = random.Random()  # noqa: S311 - spreads workers; the global one is its user's
_TRIES = 10
_PAUSE_S = 0.03
_LOOK_PAUSE_S = 0.1
_ELSEWHERE = (exceptions.AskError, exceptions.TryAgainError, exceptions.ClusterDownError)
"""A node's words for not having run a command. MOVED is a kind of ASK to redis-py."""


class Cluster:
    """The primaries of a cluster, each command sent to the one that holds its key.

    A command is sent again only if a node answers that it did not run it: MOVED, ASK,
    TRYAGAIN, CLUSTERDOWN. When a node does not answer, the map of the slots is read again in
    the background, so that later commands find the new primary. redis-py's own client may
    send ASKING over another connection than the command, and fails at once when all
    connections are busy.

    Parameters
    ----------
    address
        Some nodes of it.
    most
        How many connections there may be to each node.
    timeout_s
        Longest that a command may take, in seconds.

    """

    def __init__(self, address: Address, most: int, timeout_s: float) -> None:
        self._make = ConnectionFactory(address, timeout_s)
        self._most = most
        self._bound_s = timeout_s / 4
        self._seeds = address.places
        self._pools: dict[Place, ConnectionPool] = {}
        self._owners: list[Place | None] = [None] * REDIS_CLUSTER_HASH_SLOTS
        self._looking: asyncio.Task[Exception | None] | None = None
        self._not_before_s = 0.0
        self._closed = False

    async def ask(self, key: str, *command: Word) -> Any:
        """Send a command, which runs at most once, and return its answer."""
        return await self._at_owner(key, command, lambda pool: pool.ask(*command), lambda a: a)

    async def share(self, key: str, command: Command, changes: bool) -> tuple[Any, Seen]:
        """Send a command over the connection that all share, as `SharedConnection.ask` does.

        A key of a slot on its way to another node is read there, which does not report changes.
        """
        seen = Seen(Pulse(asyncio.get_running_loop().time()))
        return await self._at_owner(
            key, command, lambda pool: pool.shared.ask(key, command, changes), lambda a: (a, seen)
        )

    async def _at_owner(
        self,
        key: str,
        command: Command,
        send: Callable[[ConnectionPool], Awaitable[T]],
        found_there: Callable[[Any], T],
    ) -> T:
        """Return the result of `send` to the node that holds the key, wherever that goes."""
        slot = key_slot(key.encode())
        place = self._owners[slot] or await self._owner(slot)
        asking = False
        for tried in range(1, _TRIES + 1):
            try:
                if asking:
                    return found_there(await self._ask_there(place, command))
                return await send(self._pool(place))
            except _ELSEWHERE as error:
                if tried == _TRIES:
                    raise
                asking = type(error) is exceptions.AskError
                if isinstance(error, exceptions.AskError):
                    self._pool(place).shared.doubt()
                    place = (error.host or place[0], error.port)
                    if not asking:
                        self._owners[slot] = place
                        self._look_soon()
                else:
                    await asyncio.sleep(_PAUSE_S)
                    self._look_soon()
                    place = self._owners[slot] or await self._owner(slot)
            except exceptions.ResponseError:
                raise
            except BaseException:  # also a cancellation: it bounds how long a node may hang
                self._look_soon()
                raise
        raise AssertionError("the last try raises or returns")

    async def ask_each(self, commands: Mapping[str, Command]) -> Sequence[Any]:
        """Send a command for each key, at most once; an error stands in its answer's place.

        What lies on a node that does not answer gets the error, unless none does.
        """
        there: dict[Place, list[str]] = {}
        for key in commands:
            slot = key_slot(key.encode())
            there.setdefault(self._owners[slot] or await self._owner(slot), []).append(key)
        parts = await asyncio.gather(
            *(self._each_at(at, [commands[k] for k in keys]) for at, keys in there.items()),
            return_exceptions=True,
        )
        failures = [part for part in parts if isinstance(part, BaseException)]
        if failures:
            self._look_soon()
            if len(failures) == len(parts):
                raise failures[0]
        answers: dict[str, Any] = {}
        for keys, part in zip(there.values(), parts, strict=True):
            each = [part] * len(keys) if isinstance(part, BaseException) else part
            answers |= zip(keys, each, strict=True)
        moved = [key for key in commands if isinstance(answers[key], exceptions.AskError)]
        again = await asyncio.gather(
            *(self.ask(key, *commands[key]) for key in moved), return_exceptions=True
        )
        answers |= zip(moved, again, strict=True)
        return [answers[key] for key in commands]

    async def _each_at(self, place: Place, commands: Sequence[Command]) -> Sequence[Any]:
        """Send commands to a node, in less time than a round has: others may answer."""
        async with asyncio.timeout(3 * self._bound_s):
            return await self._pool(place).ask_each(commands)

    async def primaries(self) -> Sequence[ConnectionPool]:
        """Return the nodes that hold slots; `StartupError` if the server is no cluster."""
        trouble = await asyncio.shield(self._look())
        if isinstance(trouble, exceptions.ResponseError) and not isinstance(trouble, REFUSED):
            raise StartupError(
                f"The Redis URL says redis+cluster://, but the server is not a cluster: {trouble}"
            )
        if trouble is not None:
            raise trouble
        return [self._pool(place) for place in dict.fromkeys(self._owners) if place is not None]

    async def aclose(self) -> None:
        """Close every connection; no further call reaches a node."""
        self._closed = True
        await cancel(self._looking)
        for pool in self._pools.values():
            await pool.aclose()

    async def _ask_there(self, place: Place, command: Command) -> Any:
        """Ask a node for a key of a slot that is on its way to it."""
        _, answer = await self._pool(place).ask_each([("ASKING",), command])
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _pool(self, place: Place) -> ConnectionPool:
        pool = self._pools.get(place)
        if pool is None:
            opened = functools.partial(self._make.opened, place)
            shared = functools.partial(self._make.shared, place)
            pool = self._pools[place] = ConnectionPool(opened, self._most, shared)
            pool.closed = self._closed
        return pool

    async def _owner(self, slot: int) -> Place:
        trouble = await asyncio.shield(self._look())
        if trouble is not None:
            raise trouble
        place = self._owners[slot]
        if place is None:
            raise exceptions.ClusterDownError(f"no node serves the slot {slot}")
        return place

    def _look_soon(self) -> None:
        """Read the map of the slots beside, unless that was done just now."""
        if asyncio.get_running_loop().time() >= self._not_before_s:
            self._look()

    def _look(self) -> asyncio.Task[Exception | None]:
        if self._looking is None:
            self._not_before_s = asyncio.get_running_loop().time() + _LOOK_PAUSE_S
            self._looking = asyncio.create_task(self._read_map())
            self._looking.add_done_callback(self._looked)
        return self._looking

    def _looked(self, _: asyncio.Task[Exception | None]) -> None:
        self._looking = None

    async def _read_map(self) -> Exception | None:
        """Ask one node after the other until one knows the slots; return why none does."""
        nodes = _DICE.sample(list(self._pools), len(self._pools))
        trouble: Exception = NoPrimary("No node of the cluster answers.")
        for place in dict.fromkeys(chain(nodes, self._seeds)):
            try:
                async with asyncio.timeout(self._bound_s):
                    ranges = await self._pool(place).ask("CLUSTER", "SLOTS")
            except (OSError, TimeoutError, exceptions.RedisError, RuntimeError) as error:
                if isinstance(error, exceptions.ResponseError) or mendable(error):
                    trouble = error  # an operator must mend that: it counts more than silence
                continue
            if ranges:
                owners = _owners(ranges, place)
                if owners != self._owners:
                    for pool in self._pools.values():
                        pool.shared.doubt()
                self._owners = owners
                await self._forget_others()
                return None
        return trouble

    async def _forget_others(self) -> None:
        """Close the connections to nodes that hold no slots, unless one is just being used."""
        kept = set(self._owners)
        for place, pool in list(self._pools.items()):
            if place not in kept and not pool.busy:
                del self._pools[place]
                await pool.cut()


def _owners(ranges: Sequence[Any], asked: Place) -> list[Place | None]:
    """Return each slot's primary from an answer to CLUSTER SLOTS."""
    owners: list[Place | None] = [None] * REDIS_CLUSTER_HASH_SLOTS
    for first, last, primary, *_ in ranges:
        host = primary[0].decode() if primary[0] else ""
        place = (asked[0] if host in {"", "?"} else host, int(primary[1]))
        owners[first : last + 1] = [place] * (last + 1 - first)
    return owners
