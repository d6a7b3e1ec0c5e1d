"""Delayed labels of a model: predictions that wait for them, their expiry and counts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from hinged_service.engine.refusals import refused_prediction
from hinged_service.errors import ServiceError, Unavailable
from hinged_service.store import pending_predictions
from hinged_service.store.connection import Connection
from hinged_service.store.keys import ModelKeys
from hinged_service.store.pending_predictions import (
    KeepAnswer,
    KeepRefusal,
    PendingPredictions,
    words_of,
)
from hinged_service.store.transport.shared_connection import Word
from hinged_service.tasks import cancel
from hinged_service.wire.dedup import features_digest
from hinged_service.wire.events import Question

__all__ = ["DelayedLabels"]

_json = msgspec.json.Encoder().encode


class DelayedLabels:
    """Predictions of a model that wait for their labels.

    Attributes
    ----------
    in_use
        True if predictions wait on the stream, as last read.

    """

    __slots__ = ("_connection", "_counts", "_expiry", "_keys", "_pending", "_timeout_s", "in_use")

    def __init__(self, connection: Connection, keys: ModelKeys, timeout_s: float) -> None:
        self.in_use = False
        self._connection = connection
        self._keys = keys
        self._timeout_s = timeout_s
        self._pending: PendingPredictions | None = None
        self._expiry: asyncio.Task[None] | None = None
        self._counts: dict[str, int] | None = None

    async def keep(
        self, questions: Sequence[Question], sent: Sequence[str], labels: Sequence[Any]
    ) -> None:
        """Keep predictions until their labels come: those with an id, all of them or none.

        `sent` is the JSON of their features, `labels` are the predicted labels.

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
        answer: asyncio.Future[tuple[int, KeepRefusal] | None]
        answer = asyncio.get_running_loop().create_future()
        self.keep_now(questions, sent, labels, answer)
        refused = await answer
        if refused is not None:
            number, why = refused
            index = [i for i, question in enumerate(questions) if question.id is not None][number]
            raise refused_prediction(index, why)

    def keep_now(
        self,
        questions: Sequence[Question],
        sent: Sequence[str],
        labels: Sequence[Any],
        answer: KeepAnswer,
    ) -> None:
        """Keep predictions as `keep` does; `answer` gets the result among those with an id."""
        self.in_use = True
        if self._pending is None:
            self._pending = PendingPredictions(self._connection, self._keys)
        words: list[Word] = []
        for question, x, label in zip(questions, sent, labels, strict=True):
            if question.id is not None:
                words += words_of(question.id, features_digest(question.x), x, _json(label))
        self._pending.keep(words, self._timeout_s, answer)

    def expire_soon(self) -> None:
        """Give up predictions that waited too long, in a task of its own."""
        if self.in_use and self._expiry is None:
            self._expiry = asyncio.get_running_loop().create_task(self._expire())

    async def _expire(self) -> None:
        try:
            await pending_predictions.retire(self._connection, self._keys.on)
        except ServiceError:
            pass  # Redis is away; the next round finds the same
        finally:
            self._expiry = None

    async def counts(self) -> dict[str, int] | None:
        """Return the stream's counts of predictions and labels, `None` if there are none.

        While Redis does not answer: the last ones read.
        """
        try:
            self._counts = await pending_predictions.counts(self._connection, self._keys.on)
        except Unavailable:
            return self._counts
        self.in_use = self.in_use or self._counts is not None
        return self._counts

    async def aclose(self) -> None:
        """Stop the expiry under way."""
        await cancel(self._expiry)
