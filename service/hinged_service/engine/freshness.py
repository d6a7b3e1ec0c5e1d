"""Age of a replica, and waiting for its log."""

from __future__ import annotations

import asyncio

from hinged_service.engine.catch_up import LogFollower
from hinged_service.engine.group_commit import GroupCommit
from hinged_service.engine.replica import Replica
from hinged_service.engine.status import Status
from hinged_service.errors import Conflict, ModelGone, Unavailable
from hinged_service.retry import RETRY_S
from hinged_service.store.transport.shared_connection import UNSEEN
from hinged_service.wire.position import Position

__all__ = ["Freshness"]

_EARLY = 0.75
"""Part of the allowed age from which a replica is read again beside its predictions."""


class Freshness:
    """The age of a model's replica, and the reads that bring it up to date.

    Attributes
    ----------
    limit_s
        Age in seconds up to which the replica serves predictions unasked.
    early_s
        Age in seconds from which it is read again beside them, so that it does not reach the
        limit while there are predictions: none of them waits.

    """

    __slots__ = (
        *("_at_least_s", "_commit", "_follower", "_loop", "_read_wait_s", "_reading", "_status"),
        *("early_s", "limit_s"),
    )

    def __init__(self, follower: LogFollower, commit: GroupCommit) -> None:
        settings = follower.settings
        self._follower = follower
        self._commit = commit
        self._status = follower.status
        self.limit_s = settings.max_staleness_ms / 1000
        self.early_s = _EARLY * self.limit_s
        self._read_wait_s = settings.read_wait_ms / 1000
        self._at_least_s = settings.at_least_timeout_ms / 1000
        self._reading: asyncio.Future[None] | None = None
        self._loop = asyncio.get_running_loop()

    @property
    def busy(self) -> bool:
        """True while the log is read for predictions."""
        return self._reading is not None

    def age_s(self) -> float:
        """Return how old the replica's knowledge of the log is, in seconds."""
        return self._loop.time() - self._follower.seen.pulse.at_s

    def staleness_s(self) -> float | None:
        """Return the replica's age in seconds if it is older than allowed, else `None`."""
        age_s = self.age_s()
        return age_s if age_s > self.limit_s else None

    async def ensure_caught_up(self) -> None:
        """Return once the replica has seen the whole log, or raise.

        Raises
        ------
        Unavailable
            It is far behind; the text states how far.

        """
        if not self._status.caught_up:
            raise Unavailable(
                "The model is catching up with its stream; "
                f"{await self.progress():.0%} of the log is done.",
                retry_after_s=1,
            )

    def resume_catch_up(self) -> None:
        """Catch up further if Redis was away in between."""
        if not (self._status.caught_up or self._commit.busy):
            self.read_again(self._follower.replica)

    async def progress(self) -> float:
        """Return the share of the stream's log that was learned, 1 once its end was seen."""
        if self._status.caught_up:
            return 1.0
        self.resume_catch_up()
        total = int(await self._follower.connection.hget(self._follower.keys.on.meta, "bytes") or 0)
        return self._follower.replica.log_bytes / total if total else 0.0

    async def read(self) -> None:
        """Bring the replica up to the log's present end.

        Raises
        ------
        ModelGone, SetAside, Unavailable
            The replica stays where it is.

        """
        await self._follower.traced("catch up", self._commit.read())

    async def read_for(self, seconds: float) -> None:
        """Read the log as `read` does; if that takes longer, go on in the background."""
        reader = asyncio.ensure_future(self.read())
        await asyncio.wait([reader], timeout=seconds)
        if reader.done():
            reader.result()
        else:
            reader.add_done_callback(_ignore)

    async def refresh_if_stale(self) -> None:
        """Read the log if the replica is older than allowed; if Redis is slow or away, go on.

        Raises
        ------
        ModelGone
            The model was deleted.

        """
        if self.age_s() <= self.limit_s:
            return
        await self.ensure_caught_up()
        reader = self._reader()
        wait_s = 0.0 if self._status.now is Status.STALE else self._read_wait_s
        await asyncio.wait([reader], timeout=wait_s)
        if self._status.ended:
            raise ModelGone

    def refresh_early(self) -> None:
        """Begin to read the log, unless that is under way or Redis was away a moment ago."""
        if self._status.now is Status.LIVE:
            self._reader()

    def _reader(self) -> asyncio.Future[None]:
        """Return the read that is under way, begun now if there is none."""
        reader = self._reading
        if reader is None:
            traced = self._follower.traced("catch up", self._refresh())
            reader = self._reading = asyncio.ensure_future(traced)
            reader.add_done_callback(self._done_reading)
        return reader

    async def _refresh(self) -> None:
        """Read the log, unless its server reports that it did not change."""
        seen = self._follower.seen
        if seen.notified and self._status.now is not Status.STALE:
            try:
                if await self._follower.log.unchanged(seen):
                    return
            except Unavailable:
                if self._status.caught_up:
                    self._status.change(Status.STALE)
        await self._commit.read()

    def _done_reading(self, reader: asyncio.Future[None]) -> None:
        self._reading = None
        _ignore(reader)

    async def wait_for_position(self, position: Position) -> None:
        """Wait until the replica is at `position` or later.

        Raises
        ------
        Conflict
            The log holds another history than the one that led to `position`.
        Unavailable
            The log did not get there in time.

        """
        deadline_s = self._loop.time() + self._at_least_s
        while self._follower.replica.position.order < position.order:
            if self._loop.time() >= deadline_s:
                raise Unavailable(
                    "The log has not reached that position. After a failover it may never reach "
                    "it: then read without at_least.",
                    retry_after_s=1,
                )
            await self.read()
            await asyncio.sleep(RETRY_S)
        if not await self._follower.is_past(position):
            raise Conflict("The log's history contradicts that position. Use a newer one.")

    def read_again(self, replica: Replica) -> None:
        """Read the log again: a snapshot of `replica` was not of the log's past."""
        if replica is self._follower.replica:
            self._follower.seen = UNSEEN
            self._commit.read().add_done_callback(_ignore)


def _ignore(future: asyncio.Future[None]) -> None:
    if not future.cancelled():
        future.exception()
