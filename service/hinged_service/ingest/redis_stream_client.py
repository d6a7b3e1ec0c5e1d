"""A foreign Redis stream, read through a consumer group; errors in the service's terms."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple

import redis.asyncio as aioredis
from redis import exceptions
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from hinged_service.errors import StartupError, Unavailable
from hinged_service.ingest.predictions import Output, Predicted
from hinged_service.ingest.target import Failed
from hinged_service.store.transport.address import public_address
from hinged_service.wire.position import EntryId

__all__ = ["Entry", "ForeignStream", "GroupState", "NoGroup", "Pending", "PredictionStream"]

_TIMEOUT_S = 5.0
_LEAVE_S = 1.0
_PASSED = "equal or smaller than the target stream top item"

Entry = tuple[str, dict[bytes, bytes]]
"""An entry's id and fields."""


class NoGroup(Exception):
    """The stream or its group is not there (any more)."""


class Pending(NamedTuple):
    """An entry that was delivered and not acknowledged."""

    id: str
    consumer: str
    idle_ms: int
    deliveries: int


class GroupState(NamedTuple):
    """The place of a group in its stream.

    Attributes
    ----------
    last
        Id of the last entry that was delivered.
    lag
        Number of entries that were not; `None` if the server cannot count them.
    length, newest
        Number of the stream's entries, id of the last one that it ever got.
    consumers
        Number of the group's consumers.

    """

    last: str
    lag: int | None
    length: int
    newest: str
    consumers: int


class ForeignStream:
    """One consumer of a group of a stream; ids are exclusive bounds.

    Every call raises `Unavailable` if the server does not answer or refuses, and `NoGroup` if
    stream or group are missing. `address` is for messages.
    """

    def __init__(self, url: str, key: str, group: str, consumer: str) -> None:
        self._redis = _client(url)
        self._redis.set_response_callback("XREADGROUP", _of_one_stream)
        self.consumer = consumer
        self.address = public_address(url)
        self._key = key
        self._group = group

    async def aclose(self) -> None:
        """Close the connections."""
        await self._redis.aclose()

    async def leave(self) -> None:
        """Remove this consumer from its group, unless entries are pending for it."""
        async with _translated(_LEAVE_S - _TIMEOUT_S):
            if not await self._redis.xpending_range(
                self._key, self._group, "-", "+", 1, consumername=self.consumer
            ):
                await self._redis.xgroup_delconsumer(self._key, self._group, self.consumer)

    async def create_group(self, after: str) -> None:
        """Make the group, to read the entries after an id (`$`: from now on)."""
        async with _translated():
            try:
                await self._redis.xgroup_create(self._key, self._group, after, mkstream=True)
            except exceptions.ResponseError as error:
                if not str(error).startswith("BUSYGROUP"):
                    raise

    async def state(self) -> GroupState:
        """Return where stream and group stand."""
        async with _translated():
            groups = await self._redis.xinfo_groups(self._key)
            about = await self._redis.xinfo_stream(self._key)
        for group in groups:
            if group["name"] == self._group.encode():
                last, lag = group["last-delivered-id"].decode(), group.get("lag")
                newest = about["last-generated-id"].decode()
                return GroupState(last, lag, about["length"], newest, group["consumers"])
        raise NoGroup

    async def forget_idle(self, idle_s: float) -> None:
        """Remove other consumers with nothing pending that were idle for this time.

        One that still lives is made again when it reads.
        """
        async with _translated():
            for one in await self._redis.xinfo_consumers(self._key, self._group):
                mine = one["name"] == self.consumer.encode()
                if not (mine or one["pending"]) and one["idle"] >= idle_s * 1000:
                    await self._redis.xgroup_delconsumer(self._key, self._group, one["name"])

    async def pending(self, after: str, upto: str, count: int) -> list[Pending]:
        """Return the first pending entries of all consumers after one id, up to another."""
        async with _translated():
            found = await self._redis.xpending_range(
                self._key, self._group, f"({after}", upto, count
            )
        return [
            Pending(
                one["message_id"].decode(),
                one["consumer"].decode(),
                one["time_since_delivered"],
                one["times_delivered"],
            )
            for one in found
        ]

    async def claim(self, ids: Sequence[str]) -> None:
        """Make pending entries this consumer's, and count one more delivery of each."""
        async with _translated():
            await self._redis.xclaim(self._key, self._group, self.consumer, 0, list(ids))

    async def between(self, after: str, before: str, count: int) -> list[Entry]:
        """Return entries after an id and before another (`+`: to the end)."""
        async with _translated():
            found = await self._redis.xrange(self._key, f"({after}", before, count)
        return [(entry_id.decode(), fields) for entry_id, fields in found]

    async def new(self, count: int, block_ms: int) -> list[Entry]:
        """Return entries that no consumer of the group has got yet; wait for some."""
        async with _translated(block_ms / 1000):
            found: list[Entry] = await self._redis.xreadgroup(
                self._group, self.consumer, {self._key: ">"}, count, block_ms
            )
        return found

    async def following(self, done: Sequence[str], after: str, count: int) -> list[Entry]:
        """Acknowledge entries, and return the entries after an id.

        One round trip for what `done`, `pending`, `new` and `between` take four for. If anything
        else comes after that id none are returned; `pending` has them then.
        """
        key, group = self._key, self._group
        async with _translated():
            pipe = self._redis.pipeline(transaction=False)
            if done:
                pipe.xack(key, group, *done)
            pipe.xpending_range(key, group, f"({after}", "+", 1)
            pipe.xrange(key, f"({after}", "+", 1)
            pipe.xreadgroup(group, self.consumer, {key: ">"}, count)
            pending, first, found = (await pipe.execute())[-3:]
        follows = first and found and first[0][0].decode() == found[0][0]
        return found if follows and not pending else []

    async def done(self, ids: Sequence[str]) -> None:
        """Acknowledge entries of any consumer."""
        async with _translated():
            await self._redis.xack(self._key, self._group, *ids)


class PredictionStream(Output):
    """A stream of predictions, whose ids come from the log: it takes none of them twice."""

    def __init__(self, url: str, key: str) -> None:
        self.name = f"The Redis of the predictions at {public_address(url)}"
        self._redis = _client(url)
        self._key = key

    async def put(self, rows: Sequence[Predicted]) -> None:
        """Add those that are not there; `Failed` if another writer adds entries to the stream."""
        async with _translated():
            pipe = self._redis.pipeline(transaction=False)
            for row in rows:
                fields = {"prediction": row.json()} | ({} if row.id is None else {"id": row.id})
                pipe.xadd(self._key, fields, id=row.entry_id)
            found = await pipe.execute(raise_on_error=False)
            for row, answer in zip(rows, found, strict=True):
                if not isinstance(answer, Exception):
                    continue
                if not (isinstance(answer, exceptions.ResponseError) and _PASSED in str(answer)):
                    raise answer
                if not await self._redis.xrange(self._key, row.entry_id, row.entry_id):
                    about = await self._redis.xinfo_stream(self._key)
                    first, trimmed = about["first-entry"], about["entries-added"] > about["length"]
                    if trimmed and (
                        not first or EntryId.of(row.entry_id) < EntryId.of(first[0].decode())
                    ):
                        continue  # it was there
                    raise Failed(
                        f"The stream {self._key!r} has entries past {row.entry_id}, where a "
                        "prediction must go: another writes to it. Give each run its own stream."
                    )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._redis.aclose()


def _client(url: str) -> Any:
    try:
        # No socket timeout: it would cut blocking reads; each call is bounded by itself.
        return aioredis.Redis.from_url(
            url,
            socket_timeout=None,
            socket_connect_timeout=_TIMEOUT_S,
            retry=Retry(NoBackoff(), 0),
            protocol=2,
        )
    except ValueError:  # it may hold a part of the password
        raise StartupError(
            "The address of the source is wrong: it must be redis://[USER:PASSWORD@]HOST:PORT, "
            "rediss:// for TLS or unix:///PATH."
        ) from None


def _of_one_stream(response: Any, **_: object) -> list[Entry]:
    """Return the entries of a reply; redis-py's own way takes 0.5 µs more for each."""
    return [
        (
            entry_id.decode(),
            {flat[0]: flat[1]} if len(flat) == 2 else dict(zip(flat[::2], flat[1::2], strict=True)),
        )
        for entry_id, flat in (response[0][1] if response else ())
    ]


@contextlib.asynccontextmanager
async def _translated(more_s: float = 0.0) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(_TIMEOUT_S + more_s):
            yield
    except (TimeoutError, exceptions.ConnectionError, exceptions.TimeoutError, OSError) as error:
        raise Unavailable("The Redis of the source does not answer.") from error
    except exceptions.ResponseError as error:
        if str(error).startswith("NOGROUP") or "no such key" in str(error):
            raise NoGroup from error
        raise Unavailable(f"The Redis of the source refuses: {error}.") from error
