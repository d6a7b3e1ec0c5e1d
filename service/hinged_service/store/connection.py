"""One worker's connections to Redis: commands, scripts, and errors in the service's terms."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any

import redis.asyncio as aioredis
from redis import exceptions
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from hinged_service.codec import DamagedState
from hinged_service.errors import StartupError, Unavailable
from hinged_service.scripts import Script, load
from hinged_service.settings import Settings

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

    """

    def __init__(self, url: str, settings: Settings) -> None:
        self._timeout_s = timeout_s = settings.redis_timeout_ms / 1000
        try:
            pool = aioredis.BlockingConnectionPool.from_url(
                url,
                max_connections=settings.redis_connections,
                timeout=timeout_s,
                socket_timeout=timeout_s,
                socket_connect_timeout=timeout_s,
                retry=Retry(NoBackoff(), 0),
                protocol=2,
            )
        except ValueError as error:
            raise StartupError(f"The Redis URL is wrong: {error}") from error
        self._redis = aioredis.Redis(connection_pool=pool)
        self._checked = False

    async def aclose(self) -> None:
        """Close every connection."""
        await self._redis.aclose(close_connection_pool=True)

    async def run(self, script: Script, keys: list[str], *args: str | bytes | int) -> Any:
        """Run a script; load it if Redis has forgotten it.

        Raises
        ------
        Unavailable
            If Redis cannot be reached, is not writable, or did not answer in
            time; then the script may or may not have run.

        """
        async with _bounded(self._timeout_s):
            try:
                return await self._redis.evalsha(script.sha, len(keys), *keys, *args)
            except exceptions.NoScriptError:
                return await self._redis.eval(script.source, len(keys), *keys, *args)

    async def hgetall(self, key: str) -> dict[str, str]:
        """Return a small hash whole."""
        async with _bounded(self._timeout_s):
            found = await self._redis.hgetall(key)
        return {_text(field): _text(value) for field, value in found.items()}

    async def hget(self, key: str, field: str) -> str | None:
        """Return one field of a hash."""
        async with _bounded(self._timeout_s):
            found = await self._redis.hget(key, field)
        return None if found is None else _text(found)

    async def hscan(self, key: str, count: int) -> AsyncIterator[list[tuple[str, str]]]:
        """Yield a big hash in pieces of about `count` fields; a field may come twice."""
        cursor = 0
        while True:
            async with _bounded(self._timeout_s):
                reply: Any = await self._redis.hscan(key, cursor, count=count)
            cursor, found = reply
            yield [(_text(field), _text(value)) for field, value in found.items()]
            if cursor == 0:
                return

    async def entry(self, log: str, entry_id: str) -> dict[bytes, bytes] | None:
        """Return the fields of one log entry, `None` if the log does not hold it."""
        async with _bounded(self._timeout_s):
            found: Any = await self._redis.xrange(log, entry_id, entry_id)
        return found[0][1] if found else None

    async def first_id(self, log: str) -> str | None:
        """Return the id of the oldest entry of a log."""
        async with _bounded(self._timeout_s):
            found: Any = await self._redis.xrange(log, count=1)
        return _text(found[0][0]) if found else None

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
        async with _bounded(self._timeout_s):
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


@contextlib.asynccontextmanager
async def _bounded(timeout_s: float) -> AsyncIterator[None]:
    """Bound waiting for a connection, making it and the answer together; translate errors."""
    with _translated():
        async with asyncio.timeout(timeout_s):
            yield


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except exceptions.BusyLoadingError as error:
        raise Unavailable("Redis is still loading its data.", retry_after_s=1) from error
    except _REFUSED as error:
        text = f"Redis refuses the user or the password of the configured address: {error}"
        raise Unavailable(text, retry_after_s=1) from error
    except (TimeoutError, exceptions.ConnectionError, exceptions.TimeoutError, OSError) as error:
        raise Unavailable("Redis does not answer.", retry_after_s=1) from error
    except (exceptions.OutOfMemoryError, exceptions.ReadOnlyError) as error:
        raise Unavailable(f"Redis takes no writes: {error}", retry_after_s=1) from error
    except exceptions.ResponseError as error:
        refused = str(error).split(" ", 1)[0]
        if refused in {"OOM", "MISCONF", "READONLY", "NOREPLICAS", "MASTERDOWN", "LOADING"}:
            raise Unavailable(f"Redis takes no writes: {error}", retry_after_s=1) from error
        if refused == "WRONGTYPE":
            raise DamagedState("a stored key is of another type") from error
        raise


def _text(value: bytes | str) -> str:
    try:
        return value.decode("utf-8") if isinstance(value, bytes) else value
    except UnicodeDecodeError as error:
        raise DamagedState("stored text is not UTF-8") from error
