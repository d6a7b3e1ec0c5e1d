"""Connections of a worker to Redis: commands, scripts, and errors in the service's terms.

One file, past 400 lines: each way to send has the same bounds of time and the same errors.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from redis import exceptions

from hinged_service.errors import StartupError, Unavailable
from hinged_service.settings import RedisSettings
from hinged_service.store import replies
from hinged_service.store.command_batches import CommandBatches
from hinged_service.store.disk_guard import Disk
from hinged_service.store.keys import INDEX, StreamKeys
from hinged_service.store.scripts import Script, load
from hinged_service.store.transport.address import Address, parse
from hinged_service.store.transport.availability import Answering
from hinged_service.store.transport.cluster import Cluster
from hinged_service.store.transport.errors import lost_part, translated
from hinged_service.store.transport.sentinel import Sentinels
from hinged_service.store.transport.server_check import Condition, inspect
from hinged_service.store.transport.server_watch import ServerWatch
from hinged_service.store.transport.shared_connection import UNSEEN, Command, Pulse, Seen, Word
from hinged_service.store.transport.standalone import Standalone, Topology
from hinged_service.tasks import cancel
from hinged_service.telemetry.observer import Observer
from hinged_service.wire.codec import DamagedState

__all__ = ["Connection"]

logger = logging.getLogger(__name__)

_CHECK_WRITABLE = load("check_writable")
_SHARED_BYTES = 2**16
_TOPOLOGIES: dict[str, Callable[[Address, int, float], Topology]] = {
    "one": Standalone,
    "sentinel": Sentinels,
    "cluster": Cluster,
}


class Connection:
    """Connections to a Redis of any topology, each command run at most once.

    A command whose answer is missed is not repeated: that is left to the callers, who know
    which of theirs may run twice.

    Parameters
    ----------
    url
        Address of the Redis, with credentials if it wants any.
    settings
        Number of connections and timeouts.
    observer
        Counters of the worker; new ones if left out.
    disk
        Watches the disk of an embedded server.
    notes
        Whether what is found is noted in Redis for other workers, and snapshots are held while they
        are read; false for who only reads.

    """

    def __init__(
        self,
        url: str,
        settings: RedisSettings,
        observer: Observer | None = None,
        disk: Callable[[], Disk | None] = lambda: None,
        *,
        notes: bool = True,
    ) -> None:
        self.notes = notes
        self.observer = observer or Observer()
        self._disk = disk
        self._answering = Answering(self.observer, self._why_no_writes)
        self._watch = ServerWatch(self.observer)
        self._timeout_s = settings.redis_timeout_ms / 1000
        address = parse(url, settings.redis_password_file)
        self._of_cluster = address.shape == "cluster"
        self._servers = _TOPOLOGIES[address.shape](
            address, settings.redis_connections, self._timeout_s
        )
        self._batches = CommandBatches(self._ask_batch)
        self._checked = False
        self._looks: dict[Pulse, asyncio.Task[None]] = {}

    async def aclose(self) -> None:
        """Close every connection."""
        await cancel(*self._looks.values())
        await self._batches.aclose()
        await self._servers.aclose()

    @property
    def lost(self) -> bool:
        """True while Redis does not answer."""
        return self._answering.lost

    @property
    def disk(self) -> Disk | None:
        """The disk of an embedded server; `None` of another one, whose disk cannot be seen."""
        return self._disk()

    async def run(
        self, script: Script, keys: list[str], *args: Word, timeout_s: float | None = None
    ) -> Any:
        """Run a script; load it if Redis has forgotten it.

        Parameters
        ----------
        script
            The script.
        keys, args
            Its KEYS, at least one, and ARGV.
        timeout_s
            Longest that it may take, in seconds; the settings' bound if left out.

        Raises
        ------
        Unavailable
            Redis cannot be reached, is not writable, or did not answer in time; then the
            script may or may not have run.

        """
        rest = (len(keys), *keys, *args)
        try:
            async with asyncio.timeout(self._timeout_s if timeout_s is None else timeout_s):
                try:
                    reply = await self._servers.ask(keys[0], script.by_sha, script.sha, *rest)
                except exceptions.NoScriptError:
                    reply = await self._servers.ask(keys[0], script.by_text, script.source, *rest)
        except Exception as error:
            self._log_lost_part(error, keys[0])
            with translated(self._answering):
                raise
        if self._answering.lost:
            self._answering.answered()
        return reply

    async def run_in_round(self, script: Script, keys: list[str], *args: Word) -> Any:
        """Run a script as `run` does, in one round trip with those of other models that wait.

        Its last key is no other model's.
        """
        rest = (len(keys), *keys, *args)
        try:
            return await self._batches.ask(keys[-1], "EVALSHA", script.sha, *rest)
        except exceptions.NoScriptError:
            return await self.run(script, keys, *args)
        except Exception as error:
            self._log_lost_part(error, keys[0])
            with translated(self._answering):
                raise

    async def hget_and_share(
        self, field: tuple[str, str], script: Script, keys: list[str], *args: Word
    ) -> tuple[bytes | None, Any, Seen]:
        """Return a field of a hash and what `share` returns of a reading script, in one round trip.

        The reply is `None` if the script ran into an error.
        """
        words, share = (len(keys), *keys, *args), self._servers.share
        async with self._bounded():
            answers: list[Any] = await asyncio.gather(
                share(field[0], ("HGET", *field), False),
                share(keys[0], ("EVALSHA", script.sha, *words), False),
                return_exceptions=True,
            )
            found, answer = answers
            if isinstance(answer, exceptions.NoScriptError):
                with contextlib.suppress(exceptions.ResponseError):
                    answer = await share(keys[0], ("EVAL", script.source, *words), False)
            if isinstance(found, BaseException):
                raise found
        reply, seen = (None, UNSEEN) if isinstance(answer, BaseException) else answer
        return found[0], reply, seen

    async def _ask_batch(self, commands: Mapping[str, Command]) -> Sequence[Any]:
        async with asyncio.timeout(self._timeout_s):
            answers = await self._servers.ask_each(commands)
        if self._answering.lost:
            self._answering.answered()
        return answers

    async def share(
        self,
        script: Script,
        keys: list[str],
        *args: Word,
        changes: bool = False,
        size: int = 0,
        timeout_s: float | None = None,
    ) -> tuple[Any, Seen]:
        """Run a script as `run` does, its connection shared with all others that come this way.

        Parameters
        ----------
        script, keys, args, timeout_s
            As for `run`.
        changes
            Whether the script may change the stream.
        size
            Bytes of what is sent, about; many go over a connection of their own, since on this one
            they would keep other models waiting.

        Returns
        -------
        The reply, and up to when its contents surely hold for the stream.

        """
        if size > _SHARED_BYTES:
            seen = Seen(Pulse(asyncio.get_running_loop().time()))
            return await self.run(script, keys, *args, timeout_s=timeout_s), seen
        key, rest, share = keys[0], (len(keys), *keys, *args), self._servers.share
        try:
            async with asyncio.timeout(self._timeout_s if timeout_s is None else timeout_s):
                try:
                    found = await share(key, ("EVALSHA", script.sha, *rest), changes)
                except exceptions.NoScriptError:
                    found = await share(key, ("EVAL", script.source, *rest), changes)
        except Exception as error:
            self._log_lost_part(error, key)
            with translated(self._answering):
                raise
        if self._answering.lost:
            self._answering.answered()
        return found

    def begin(
        self,
        script: Script,
        keys: list[str],
        *args: Word,
        size: int,
        then: Callable[[asyncio.Future[tuple[Any, Seen]]], None],
    ) -> None:
        """Begin what `share` does for a script that may change the stream; parameters as there.

        `then` gets the result, without a task if the connection is there. After any error the
        script may or may not have run: what `share` raises if called next is more precise.
        """
        if size > _SHARED_BYTES:
            task = asyncio.ensure_future(self.share(script, keys, *args, changes=True, size=size))
            task.add_done_callback(then)
            return
        command = ("EVALSHA", script.sha, len(keys), *keys, *args)
        sent = asyncio.ensure_future(self._servers.share(keys[0], command, True))
        timer = asyncio.get_running_loop().call_later(self._timeout_s, sent.cancel)

        def ended(sent: asyncio.Future[tuple[Any, Seen]]) -> None:
            timer.cancel()
            then(sent)

        sent.add_done_callback(ended)

    def look(self, pulse: Pulse, key: str, field: str) -> asyncio.Task[None]:
        """Return a look at a field where `share` asks, which brings the pulse of that server on.

        All who ask meanwhile get the same one, which they must not cancel.
        """
        task = self._looks.get(pulse)
        if task is None:
            task = self._looks[pulse] = asyncio.create_task(self._look(key, field))
            task.add_done_callback(lambda done: self._looked(pulse, done))
        return task

    async def _look(self, key: str, field: str) -> None:
        async with self._bounded():
            await self._servers.share(key, ("HGET", key, field), False)

    def _looked(self, pulse: Pulse, task: asyncio.Task[None]) -> None:
        del self._looks[pulse]
        if not task.cancelled():
            task.exception()  # taken note of: the callers that waited have it

    async def hgetall(self, key: str) -> dict[str, str]:
        """Return a small hash whole; bytes that are no UTF-8 come as escapes.

        A field that is damaged does not affect the others: its own reader finds it damaged.
        """
        return _small_hash(await self._ask(key, "HGETALL", key))

    async def hgetall_each(self, keys: Sequence[str]) -> list[dict[str, str] | DamagedState]:
        """Return small hashes as `hgetall` does, all in one round trip.

        In the place of a key of another type stands the error.
        """
        found: list[dict[str, str] | DamagedState] = []
        async with self._bounded():
            answers = await self._servers.ask_each({key: ("HGETALL", key) for key in keys})
            for answer in answers:
                try:
                    with translated(self._answering):
                        if isinstance(answer, Exception):
                            raise answer
                    found.append(_small_hash(answer))
                except DamagedState as error:
                    found.append(error)
        return found

    async def hget(self, key: str, field: str) -> str | None:
        """Return one field of a hash."""
        found = await self.hget_bytes(key, field)
        return None if found is None else replies.text(found)

    async def hget_bytes(self, key: str, field: str) -> bytes | None:
        """Return one field of a hash as it is stored."""
        found: bytes | None = await self._ask(key, "HGET", key, field)
        return found

    async def hlen(self, key: str) -> int:
        """Return the number of fields of a hash."""
        return int(await self._ask(key, "HLEN", key))

    async def hset(self, key: str, field: str, value: str) -> None:
        """Set one field of a hash."""
        await self._ask(key, "HSET", key, field, value)

    async def hdel(self, key: str, field: str) -> None:
        """Remove one field of a hash."""
        await self._ask(key, "HDEL", key, field)

    async def hscan(self, key: str, count: int) -> AsyncIterator[list[tuple[str, str]]]:
        """Yield a big hash in pieces of about `count` fields; a field may come twice."""
        async for found in self.hscan_bytes(key, count):
            yield list(replies.pairs(found))

    async def hscan_bytes(self, key: str, count: int) -> AsyncIterator[list[bytes]]:
        """Yield a big hash as `hscan` does, each piece a field, value list as it is stored."""
        cursor: Word = 0
        while True:
            cursor, found = await self._ask(key, "HSCAN", key, cursor, "COUNT", count)
            yield found
            if cursor == b"0":
                return

    async def entry(self, log: str, entry_id: str) -> dict[bytes, bytes] | None:
        """Return the fields of one log entry, `None` if the log does not hold it."""
        found = await self._ask(log, "XRANGE", log, entry_id, entry_id)
        return replies.fields(found[0][1]) if found else None

    async def newest(
        self, log: str, count: int, before: str | None
    ) -> list[tuple[bytes, dict[bytes, bytes]]]:
        """Return the last entries of a log, or those before an id, the newest first."""
        bound = "+" if before is None else f"({before}"
        found = await self._ask(log, "XREVRANGE", log, bound, "-", "COUNT", count)
        return [(entry_id, replies.fields(flat)) for entry_id, flat in found]

    async def first_id(self, log: str) -> str | None:
        """Return the id of the oldest entry of a log."""
        found = await self._ask(log, "XRANGE", log, "-", "+", "COUNT", 1)
        return replies.text(found[0][0]) if found else None

    async def ask_each(self, commands: Mapping[str, Command]) -> Sequence[Any]:
        """Return the answers to a reading command for each key, sent together in that order."""
        async with self._bounded():
            answers = await self._servers.ask_each(commands)
            for answer in answers:
                if isinstance(answer, Exception):
                    raise answer
            return answers

    async def any_in(self, streams: list[str]) -> list[bool]:
        """Return for each key whether its stream has an entry, or it is no stream."""
        async with self._bounded():
            found = await self._servers.ask_each({one: ("XLEN", one) for one in streams})
        return [bool(length) for length in found]

    async def check_writable(self) -> None:
        """Raise `Unavailable` unless a write would be accepted now, where the index is."""
        await self.run(_CHECK_WRITABLE, [INDEX, StreamKeys(INDEX).log])

    async def ensure_checked(self) -> None:
        """Check the server once; raise `Unavailable` if it would lose the log."""
        if not self._checked:
            await self.check_again()

    async def check_again(self) -> Sequence[str]:
        """Check the server as it is now, and return the risks to what it keeps.

        Raises
        ------
        Unavailable
            It would lose the log, or cannot be asked.

        """
        try:
            await self.check_server()
        except StartupError as error:
            raise Unavailable(str(error), retry_after_s=60) from error
        return self._watch.warnings

    async def check_server(self) -> None:
        """Refuse a Redis that would lose the log; of a cluster, each primary.

        Raises
        ------
        StartupError, Unavailable
            As for `server_check.inspect` and `ServerWatch.note`; it cannot be asked now.

        """
        self._watch.note(await self.conditions())
        self._checked = True

    async def conditions(self) -> Sequence[Condition]:
        """Return the condition of each primary, with the same errors."""
        async with self._bounded():
            primaries = await self._servers.primaries()
            return await asyncio.gather(*(inspect(one, self._of_cluster) for one in primaries))

    def _log_lost_part(self, error: Exception, key: str) -> None:
        """Log which part of a stream, of the key, a script missed, if it did."""
        if part := lost_part(error):
            self.observer.changes.enter(
                ("lost", key),
                logger,
                "Redis lost the %s of the stream that has %s: it takes no events any more",
                part,
                key,
                level=logging.ERROR,
            )

    def _why_no_writes(self) -> str | None:
        disk = self._disk()
        return None if disk is None or disk.writable else disk.warning

    async def _ask(self, key: str, *command: Word) -> Any:
        async with self._bounded():
            return await self._servers.ask(key, *command)

    @contextlib.asynccontextmanager
    async def _bounded(self) -> AsyncIterator[None]:
        """Bound waiting for a connection, making it and the answer together; translate errors."""
        with translated(self._answering):
            async with asyncio.timeout(self._timeout_s):
                yield
        if self._answering.lost:
            self._answering.answered()


def _small_hash(found: Sequence[bytes]) -> dict[str, str]:
    words = iter([word.decode(errors="backslashreplace") for word in found])
    return dict(zip(words, words, strict=True))
