"""A live model: its log's traffic, commands, checkpoints, predictions that wait for labels."""

from __future__ import annotations

import asyncio
import functools
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from hinged_service.engine.catch_up import REBUILDS
from hinged_service.engine.group_commit import RETRY_S, GroupCommit
from hinged_service.engine.write_queue import AppendResult, SourceAppendResult
from hinged_service.errors import (
    Busy,
    Conflict,
    Detail,
    Expired,
    ModelGone,
    NotFound,
    ServiceError,
    SetAside,
    Unavailable,
)
from hinged_service.store import checkpoints, log, pending_predictions
from hinged_service.store import index as models
from hinged_service.store.checkpoints import Checkpoint
from hinged_service.wire.codec import Position
from hinged_service.wire.events import Question, features_digest

__all__ = ["AppendResult", "LiveModel", "SourceAppendResult"]


class LiveModel(GroupCommit):
    """A live model: learning and reading, and what else is done with it.

    The parameters and attributes are those of `GroupCommit`.

    """

    _retiring: asyncio.Task[None] | None = None
    _labels: dict[str, int] | None = None

    @functools.cached_property
    def _room(self) -> pending_predictions.PendingPredictions:
        return pending_predictions.PendingPredictions(self._connection, self.keys)

    @functools.cached_property
    def _commanding(self) -> asyncio.Lock:
        return asyncio.Lock()

    async def aclose(self) -> None:
        """Finish what was accepted and save; Redis being away is no obstacle."""
        if self._retiring is not None:
            self._retiring.cancel()
            await asyncio.wait([self._retiring])
        await super().aclose()

    async def keep(
        self, questions: Sequence[Question], sent: Sequence[str], labels: Sequence[Any]
    ) -> None:
        """Keep predictions until their labels come.

        Parameters
        ----------
        questions
            Those with an id are kept, all or none of them.
        sent
            The JSON of their features.
        labels
            The predicted labels.

        Raises
        ------
        Conflict
            An id has its label already, or other features wait under it.
        Expired
            An id's earlier prediction waited too long.
        Busy
            Too many predictions wait.
        ModelGone, Unavailable
            The model was deleted; Redis does not answer.

        """
        self.keeps = True
        words: list[str] = []
        for question, x, label in zip(questions, sent, labels, strict=True):
            if question.id is not None:
                words += question.id, features_digest(question.x), x, _json(label)
        refused = await self._room.keep(words, self._timeout_s)
        if refused is None:
            return
        number, why = refused
        index = [i for i, question in enumerate(questions) if question.id is not None][number]
        if why == 3:
            raise Busy("Too many predictions wait for their labels.", retry_after_s=1)
        if why == 4:
            raise Expired(
                "Nothing was predicted: see errors.",
                [Detail(f"[{index}].id", "names a prediction that waited too long")],
            )
        reason = (
            "other features wait under this id" if why == 1 else "names an event that has its label"
        )
        raise Conflict("Nothing was predicted: see errors.", [Detail(f"[{index}].id", reason)])

    def retire_soon(self) -> None:
        """Give up predictions that waited too long, in a task of its own."""
        if self.keeps and self._retiring is None:
            self._retiring = self._loop.create_task(self._retire_late())

    async def _retire_late(self) -> None:
        try:
            await pending_predictions.retire(self._connection, self.keys.on)
        except ServiceError:
            pass  # Redis is away; the next round finds the same
        finally:
            self._retiring = None

    async def labels(self) -> dict[str, int] | None:
        """Return the stream's counts of predictions and labels, `None` if there are none.

        While Redis does not answer: the last ones known.
        """
        try:
            self._labels = await pending_predictions.counts(self._connection, self.keys.on)
        except Unavailable:
            return self._labels
        self.keeps = self.keeps or self._labels is not None
        return self._labels

    async def command(self, command: Mapping[str, Any]) -> Position:
        """Append a command for this model to the log and carry it out.

        Parameters
        ----------
        command
            What to do, as `Fold.obey` takes it, or `{"do": "restore", "checkpoint": uid}`.

        Returns
        -------
        The position at which it was carried out.

        Raises
        ------
        NotFound
            There is no such checkpoint.
        ModelGone, Unavailable
            As for `learn`.

        """
        async with self._commanding:  # sequences of one producer arrive in their order
            reply = await self._send_command(command)
        if reply.kind == "missing":
            raise NotFound("There is no such checkpoint.")
        if reply.kind == "gone":
            raise ModelGone("The model was deleted.")
        if reply.kind == "other":
            await self.read()  # which tells why, and that this replica is of no use any more
        if reply.position is None:
            raise Unavailable("The command came too late.", retry_after_s=1)
        deadline_s = self._loop.time() + self._timeout_s
        while True:
            try:
                await self.wait_for_position(reply.position)
            except Unavailable as error:  # it is in the log: do not let it be sent again
                if type(error) is not Unavailable or self._loop.time() >= deadline_s:
                    raise
                await asyncio.sleep(RETRY_S)
            else:
                return reply.position

    async def restore(self, checkpoint: Checkpoint) -> Position:
        """Go back to a checkpoint's state by a command in the log.

        Returns
        -------
        The position at which it was carried out.

        Raises
        ------
        Conflict
            The checkpoint cannot be read; nothing was commanded.
        NotFound, ModelGone, Unavailable
            As for `command`.

        """
        try:
            self._read_ahead = checkpoint.uid, await self.read_checkpoint(checkpoint)
        except SetAside as error:  # in the log it would set the model aside for good
            raise Conflict(f"Nothing was changed. {error.detail}") from error
        try:
            return await self.command({"do": "restore", "checkpoint": checkpoint.uid})
        finally:
            self._read_ahead = None

    async def checkpoint(self, name: str | None) -> Checkpoint:
        """Keep the model's present state.

        Parameters
        ----------
        name
            The checkpoint's name for people, if any.

        Raises
        ------
        Conflict
            The stream has a checkpoint of that name, or too many of them.
        ModelGone, Unavailable
            Nothing was kept, or it is not known.

        """
        uid = secrets.token_hex(8)  # one for all attempts: it is made once
        deadline_s = self._loop.time() + self._timeout_s
        for _ in range(REBUILDS):
            replica = self.replica
            made = Checkpoint(
                uid=uid,
                name=name,
                model=self.name,
                spec=self.entry.spec,
                position=str(replica.position),
                created_ms=int(time.time() * 1000),
                events=replica.fold.events,
                mistakes=replica.fold.mistakes,
                judged=replica.fold.judged,
            )
            state, chunk = replica.whole_state(), self._settings.snapshot_chunk
            while True:
                try:
                    kept = await checkpoints.keep(
                        self._connection, self.keys.on, made, self.entry.uid, state, chunk
                    )
                    break
                except Unavailable:
                    if self._loop.time() + RETRY_S >= deadline_s:
                        raise
                    await asyncio.sleep(RETRY_S)
            if kept == "ok":
                return made
            await self.read()  # the log has another past: rebuild, and keep that
        raise Unavailable("The log keeps changing its past.", retry_after_s=1)

    async def checkpoints(self) -> list[Checkpoint]:
        """Return the checkpoints of the stream, oldest first."""
        return await checkpoints.listed(self._connection, self.keys.on)

    async def find_checkpoint(self, name: str) -> Checkpoint:
        """Return a checkpoint of the stream by its name or uid.

        Raises
        ------
        NotFound
            There is none.

        """
        return await checkpoints.find(self._connection, self.keys.on, name)

    async def read_checkpoint(self, checkpoint: Checkpoint) -> models.Loaded:
        """Return the state of a checkpoint.

        Raises
        ------
        SetAside
            It cannot be used here.

        """
        loaded = await self._checkpoint(checkpoint.uid)
        if loaded is None:
            raise NotFound("There is no such checkpoint any more.")
        return loaded

    async def drop_checkpoint(self, name: str) -> str | None:
        """Delete a checkpoint of the stream, or return the uid of a model that still needs it."""
        found = await self.find_checkpoint(name)
        return await checkpoints.drop(self._connection, self.keys.on, found)

    async def _send_command(self, command: Mapping[str, Any]) -> log.Commanded:
        payload = msgspec.json.encode({"model": self.entry.uid, **command})
        sequence = next(self._sequence)
        deadline_s = self._loop.time() + self._timeout_s
        while True:
            try:
                return await log.command(
                    self._connection,
                    self.keys.on,
                    self.entry.uid,
                    f"{self._producer}.commands",
                    sequence,
                    payload,
                    command.get("checkpoint"),
                )
            except Unavailable:
                if self._loop.time() + RETRY_S >= deadline_s:
                    raise
                await asyncio.sleep(RETRY_S)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
