"""One worker's connections to Redis: commands, scripts, and errors in the service's terms."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any

import hiredis
import redis.asyncio as aioredis
from redis import exceptions
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from hinged_service.codec import DamagedState
from hinged_service.errors import StartupError, Unavailable
from hinged_service.observing.observer import Observer
from hinged_service.scripts import Script, load
from hinged_service.settings import Settings
from hinged_service.store.answering import Answering

__all__ = ["Connection"]

logger = logging.getLogger(__name__)

_READY = load("ready")
_REFUSED = (
    exceptions.AuthenticationError,
    exceptions.AuthorizationError,
    exceptions.NoPermissionError,
)


class Connection:
    """A bounded pool of connections, each command sent at most once.

    redis-py repeats a command whose answer it missed; most of ours must not run
    twice without being asked, so repeating is left to the callers, who know
    what they sent.

    Parameters
    ----------
    url
        Address of the Redis, with credentials if it wants any.
    settings
        Pool size and timeouts.
    observer
        Counts what the worker does; one of its own if left out.

    Attributes
    ----------
    observer
        As given.

    """

    def __init__(self, url: str, settings: Settings, observer: Observer | None = None) -> None:
        self.observer = observer or Observer()
        self._answering = Answering(self.observer)
        self._timeout_s = timeout_s = settings.redis_timeout_ms / 1000
        try:
            pool = aioredis.BlockingConnectionPool.from_url(
                url,
                max_connections=settings.redis_connections,
                timeout=timeout_s,
                socket_timeout=None,  # _bounded bounds the whole; a second bound costs 20 µs a call
                socket_connect_timeout=timeout_s,
                retry=Retry(NoBackoff(), 0),
                protocol=2,
            )
        except ValueError as error:
            raise StartupError(f"The Redis URL is wrong: {error}") from error
        self._redis = aioredis.Redis(connection_pool=pool)
        self._pool = pool
        self._spare: list[AbstractConnection] = []
        self._max_spare = settings.redis_connections // 2
        self._checked = False

    async def aclose(self) -> None:
        """Close every connection."""
        await self._redis.aclose(close_connection_pool=True)

    async def run(
        self,
        script: Script,
        keys: list[str],
        *args: str | bytes | int,
        timeout_s: float | None = None,
    ) -> Any:
        """Run a script; load it if Redis has forgotten it.

        Parameters
        ----------
        script
            The script.
        keys, args
            Its KEYS and ARGV.
        timeout_s
            Longest that it may take, in seconds; the settings' bound if left out.

        Raises
        ------
        Unavailable
            If Redis cannot be reached, is not writable, or did not answer in
            time; then the script may or may not have run.

        """
        rest = (len(keys), *keys, *args)
        try:
            async with asyncio.timeout(self._timeout_s if timeout_s is None else timeout_s):
                connection = await self._borrowed()
                try:
                    await _revive(connection)
                    try:
                        reply = await _asked(connection, "EVALSHA", script.sha, *rest)
                    except exceptions.NoScriptError:
                        reply = await _asked(connection, "EVAL", script.source, *rest)
                finally:
                    await self._give_back(connection)
        except Exception:
            with _translated(self._answering):
                raise
        if self._answering.lost:
            self._answering.answered()
        return reply

    async def _borrowed(self) -> AbstractConnection:
        """Lend a connection, one that an earlier script used if possible.

        To take one from redis-py's pool and give it back costs as much as the
        whole exchange with Redis. Half of the pool stays with the other commands.
        """
        if self._spare:
            return self._spare.pop()
        lent: AbstractConnection = await self._pool.get_connection()  # type: ignore[no-untyped-call]
        return lent

    async def _give_back(self, connection: AbstractConnection) -> None:
        if len(self._spare) < self._max_spare:
            self._spare.append(connection)
        else:
            await self._pool.release(connection)

    async def hgetall(self, key: str) -> dict[str, str]:
        """Return a small hash whole."""
        async with self._bounded():
            found = await self._redis.hgetall(key)
        return {_text(field): _text(value) for field, value in found.items()}

    async def hget(self, key: str, field: str) -> str | None:
        """Return one field of a hash."""
        async with self._bounded():
            found = await self._redis.hget(key, field)
        return None if found is None else _text(found)

    async def hdel(self, key: str, field: str) -> None:
        """Remove one field of a hash."""
        async with self._bounded():
            await self._redis.hdel(key, field)

    async def hscan(self, key: str, count: int) -> AsyncIterator[list[tuple[str, str]]]:
        """Yield a big hash in pieces of about `count` fields; a field may come twice."""
        cursor = 0
        while True:
            async with self._bounded():
                reply: Any = await self._redis.hscan(key, cursor, count=count)
            cursor, found = reply
            yield [(_text(field), _text(value)) for field, value in found.items()]
            if cursor == 0:
                return

    async def entry(self, log: str, entry_id: str) -> dict[bytes, bytes] | None:
        """Return the fields of one log entry, `None` if the log does not hold it."""
        async with self._bounded():
            found: Any = await self._redis.xrange(log, entry_id, entry_id)
        return found[0][1] if found else None

    async def newest(
        self, log: str, count: int, before: str | None
    ) -> list[tuple[bytes, dict[bytes, bytes]]]:
        """Return the last entries of a log, or those before an id, the newest first."""
        bound = "+" if before is None else f"({before}"
        async with self._bounded():
            found: Any = await self._redis.xrevrange(log, bound, count=count)
        return list(found)

    async def first_id(self, log: str) -> str | None:
        """Return the id of the oldest entry of a log."""
        async with self._bounded():
            found: Any = await self._redis.xrange(log, count=1)
        return _text(found[0][0]) if found else None

    async def any_in(self, streams: list[str]) -> list[bool]:
        """Tell for each stream whether there is an entry in it, or a key that is no stream."""
        async with self._bounded(), self._redis.pipeline(transaction=False) as asked:
            for stream in streams:
                asked.xlen(stream)
            found = await asked.execute(raise_on_error=False)
        return [bool(length) for length in found]

    @contextlib.asynccontextmanager
    async def _bounded(self) -> AsyncIterator[None]:
        """Bound waiting for a connection, making it and the answer together; translate errors."""
        with _translated(self._answering):
            async with asyncio.timeout(self._timeout_s):
                yield
        if self._answering.lost:
            self._answering.answered()

    async def check_writable(self) -> None:
        """Raise `Unavailable` unless a write would be accepted now."""
        await self.run(_READY, [])

    async def ensure_checked(self) -> None:
        """Check the server once; what is wrong with it is `Unavailable`."""
        if not self._checked:
            try:
                await self.check_server()
            except StartupError as error:
                raise Unavailable(str(error), retry_after_s=60) from error

    async def check_server(self) -> None:
        """Refuse a Redis that would lose the log.

        Raises
        ------
        StartupError
            If it is too old or may evict the log; the message says what to set.
        Unavailable
            If it cannot be asked now.

        """
        async with self._bounded():
            info = await self._redis.info()
        valkey = "valkey_version" in info
        name = "Valkey" if valkey else "Redis"
        version = str(info.get("valkey_version") or info["redis_version"])
        least = (7, 2) if valkey else (7, 0)
        if tuple(int(part) for part in version.split(".")[:2]) < least:
            raise StartupError(
                f"{name} {version} is too old: use Redis 7.0 or Valkey 7.2, or newer."
            )
        policy = str(info.get("maxmemory_policy", "noeviction"))
        if policy.startswith("allkeys"):
            raise StartupError(
                f"{name} has maxmemory-policy {policy}, which would evict the event log: "
                "set it to noeviction."
            )
        self._checked = True
        if not int(info.get("aof_enabled", 0)):
            logger.warning(
                "%s has no append-only file: what it learned since its last dump is lost when it "
                "stops. Set appendonly yes.",
                name,
            )


async def _asked(connection: AbstractConnection, *command: str | bytes | int) -> Any:
    words: Any = command  # hiredis's stub knows only one word; it packs in a fifth of the time
    await connection.send_packed_command(hiredis.pack_command(words))
    return await connection.read_response()


async def _revive(connection: AbstractConnection) -> None:
    """Connect anew if the connection was cut while nobody used it."""
    try:
        cut = connection.is_connected and await connection.can_read()
    except (OSError, exceptions.ConnectionError):
        cut = True
    if cut:
        await connection.disconnect(nowait=True)
    await connection.connect()  # type: ignore[no-untyped-call]


@contextlib.contextmanager
def _translated(answering: Answering) -> Iterator[None]:
    try:
        yield
    except exceptions.BusyLoadingError as error:
        raise answering.failed("loading", "Redis is still loading its data.") from error
    except _REFUSED as error:
        text = f"Redis refuses the user or the password of the configured address: {error}"
        raise answering.failed("refused", text) from error
    except (TimeoutError, exceptions.ConnectionError, exceptions.TimeoutError, OSError) as error:
        timed_out = isinstance(error, (TimeoutError, exceptions.TimeoutError))
        kind = "timeout" if timed_out else "connection"
        raise answering.failed(kind, "Redis does not answer.") from error
    except RuntimeError as error:  # uvloop's word for writing to a connection just cut
        if "handler is closed" not in str(error):
            raise
        raise answering.failed("connection", "Redis does not answer.") from error
    except (exceptions.OutOfMemoryError, exceptions.ReadOnlyError) as error:
        raise answering.failed("no_writes", f"Redis takes no writes: {error}.") from error
    except exceptions.ResponseError as error:
        refused = str(error).split(" ", 1)[0]
        if refused in {"OOM", "MISCONF", "READONLY", "NOREPLICAS", "MASTERDOWN", "LOADING"}:
            raise answering.failed("no_writes", f"Redis takes no writes: {error}.") from error
        if refused == "WRONGTYPE":
            raise DamagedState("a stored key is of another type") from error
        raise


def _text(value: bytes | str) -> str:
    try:
        return value.decode("utf-8") if isinstance(value, bytes) else value
    except UnicodeDecodeError as error:
        raise DamagedState("stored text is not UTF-8") from error
