"""Checkpoints of a model: made, listed, found, read and dropped."""

from __future__ import annotations

import asyncio
import functools
import secrets
import time

from hinged_service.engine.catch_up import REBUILDS, LogFollower
from hinged_service.engine.freshness import Freshness
from hinged_service.engine.replica import Replica
from hinged_service.errors import NotFound, Unavailable
from hinged_service.model.state import ModelState
from hinged_service.retry import retry
from hinged_service.store import checkpoints
from hinged_service.store.checkpoints import Checkpoint
from hinged_service.store.snapshot import Loaded, Snapshot
from hinged_service.wire.progress import OnProgress, no_progress

__all__ = ["ModelCheckpoints"]


class ModelCheckpoints:
    """The checkpoints of a model's stream, and how the model makes one."""

    def __init__(self, follower: LogFollower, freshness: Freshness) -> None:
        self._connection = follower.connection
        self._follower = follower
        self._freshness = freshness
        self._chunk = follower.settings.snapshot_chunk
        self._timeout_s = follower.settings.append_timeout_ms / 1000
        self._keys = follower.keys.on
        self._loop = asyncio.get_running_loop()

    async def make(self, name: str | None, on_progress: OnProgress = no_progress) -> Checkpoint:
        """Store the model's present state, under a name for people if there is one.

        Raises
        ------
        Conflict
            The stream has a checkpoint of that name, or too many of them.
        ModelGone, Unavailable
            Nothing was kept, or Redis did not answer whether it was.

        """
        uid = secrets.token_hex(8)  # one for all attempts: it is made once
        deadline_s = self._loop.time() + self._timeout_s
        for _ in range(REBUILDS):
            replica = self._follower.replica
            made, whole = await replica.look(
                functools.partial(self._made, replica, uid, name),
                functools.partial(replica.saves_quickly, True),
            )
            keep = functools.partial(
                checkpoints.keep,
                self._connection,
                self._keys,
                made,
                self._follower.entry.uid,
                whole,
                self._chunk,
                on_progress,
            )
            if await retry(keep, deadline_s) == "ok":
                return made
            await self._freshness.read()  # the log has another past: rebuild, and keep that
        raise Unavailable(
            "The log was set back while the checkpoint was made. Try again.", retry_after_s=1
        )

    def _made(
        self, replica: Replica, uid: str, name: str | None, state: ModelState
    ) -> tuple[Checkpoint, Snapshot]:
        made = Checkpoint(
            uid=uid,
            name=name,
            model=self._follower.name,
            spec=self._follower.entry.spec,
            position=str(replica.position),
            created_ms=int(time.time() * 1000),
            events=state.events,
            mistakes=state.mistakes,
            judged=state.judged,
        )
        return made, replica.whole_state(state)

    async def listed(self) -> list[Checkpoint]:
        """Return the checkpoints of the stream, oldest first."""
        return await checkpoints.listed(self._connection, self._keys)

    async def find(self, name: str) -> Checkpoint:
        """Return a checkpoint of the stream by its name or uid.

        Raises
        ------
        NotFound
            There is none.

        """
        return await checkpoints.find(self._connection, self._keys, name)

    async def read(self, checkpoint: Checkpoint, on_progress: OnProgress = no_progress) -> Loaded:
        """Return the state of a checkpoint.

        Raises
        ------
        SetAside
            It cannot be used here.

        """
        loaded = await self._follower.read_checkpoint(checkpoint.uid, on_progress)
        if loaded is None:
            raise NotFound("The checkpoint was deleted. Choose another one.")
        return loaded

    async def drop(self, uid: str, name: str | None = None) -> str | None:
        """Delete a checkpoint of the stream, as `checkpoints.drop`."""
        return await checkpoints.drop(self._connection, self._keys, uid, name)
