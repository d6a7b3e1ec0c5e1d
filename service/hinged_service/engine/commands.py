"""Commands of a model: entries of its log that change how it goes on."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from typing import Any

import msgspec

from hinged_service.engine.catch_up import LogFollower
from hinged_service.engine.freshness import Freshness
from hinged_service.engine.model_checkpoints import ModelCheckpoints
from hinged_service.errors import Conflict, ModelGone, NotFound, SetAside, Unavailable
from hinged_service.retry import retry
from hinged_service.store.checkpoints import Checkpoint
from hinged_service.store.log_types import Commanded
from hinged_service.wire.position import Position
from hinged_service.wire.progress import OnProgress, no_progress

__all__ = ["CommandLog"]


class CommandLog:
    """The way of commands into a model's log."""

    def __init__(
        self,
        follower: LogFollower,
        freshness: Freshness,
        checkpoints: ModelCheckpoints,
        producer: str,
        sequence: itertools.count[int],
    ) -> None:
        self._follower = follower
        self._freshness = freshness
        self._checkpoints = checkpoints
        self._producer = producer
        self._sequence = sequence
        self._timeout_s = follower.settings.append_timeout_ms / 1000
        self._one_at_a_time = asyncio.Lock()
        self._loop = asyncio.get_running_loop()

    async def append(self, command: Mapping[str, Any]) -> Position:
        """Append a command to the log; return the position at which it was carried out.

        It is as `ModelState.obey` takes it, or `{"do": "restore", "checkpoint": uid}`.

        Raises
        ------
        NotFound
            There is no such checkpoint.
        ModelGone, Unavailable
            As for `LiveModel.learn`.

        """
        async with self._one_at_a_time:  # sequences of one producer arrive in their order
            reply = await self._send(command)
        if reply.kind == "missing":
            raise NotFound("There is no such checkpoint. Choose another one.")
        if reply.kind == "gone":
            raise ModelGone
        if reply.kind == "other":
            await self._freshness.read()  # it raises why, and that this replica is outdated
        if reply.position is None:
            raise Unavailable("The command came too late. Try again.", retry_after_s=1)
        deadline_s = self._loop.time() + self._timeout_s
        position = reply.position  # it is in the log: do not let it be sent again
        await retry(lambda: self._freshness.wait_for_position(position), deadline_s)
        return position

    async def restore(
        self, checkpoint: Checkpoint, on_progress: OnProgress = no_progress
    ) -> Position:
        """Go back to a checkpoint's state by a command in the log; return as `append` does.

        Raises
        ------
        Conflict
            The checkpoint cannot be read; nothing was commanded.
        NotFound, ModelGone, Unavailable
            As for `append`.

        """
        try:
            state = await self._checkpoints.read(checkpoint, on_progress)
        except SetAside as error:  # in the log it would set the model aside permanently
            raise Conflict(f"Nothing was changed. {error.detail}") from error
        with self._follower.restoring(checkpoint.uid, state):
            return await self.append({"do": "restore", "checkpoint": checkpoint.uid})

    async def _send(self, command: Mapping[str, Any]) -> Commanded:
        payload = msgspec.json.encode({"model": self._follower.entry.uid, **command})
        sequence = next(self._sequence)
        deadline_s = self._loop.time() + self._timeout_s
        return await retry(
            lambda: self._follower.log.command(
                self._producer, sequence, payload, command.get("checkpoint")
            ),
            deadline_s,
        )
