"""Pending predictions, which wait for their labels: kept, given up, counted."""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections import deque
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

import msgspec

from hinged_service.errors import ModelGone
from hinged_service.retry import retry
from hinged_service.store.connection import Connection
from hinged_service.store.keys import ModelKeys, StreamKeys
from hinged_service.store.scripts import load
from hinged_service.tasks import Answer

__all__ = [
    "COUNTS",
    "KeepAnswer",
    "KeepRefusal",
    "PendingPredictions",
    "counts",
    "counts_in",
    "retire",
]

_KEEP = load("keep_predictions")
_EXPIRE = load("expire_predictions")
_PACK = msgspec.msgpack.Encoder()

_RETIRED_AT_ONCE = 500
_RETIRED_BYTES = 2**20
_MOST_TURNS = 400
_MOST_AT_ONCE = 2_000

COUNTS = {
    "predicted": "predicted",
    "waiting": "waiting",
    "joined": "labels_joined",
    "defaulted": "labels_defaulted",
    "expired": "labels_expired",
    "late": "labels_late",
    "unknown": "labels_unknown",
    "duplicates": "labels_repeated",
    "conflicts": "labels_conflicting",
    "early": "early_waiting",
    "unclaimed": "labels_unclaimed",
}
"""Counts of predictions and labels, with their fields in the stream's meta."""

_WORDS = 4
"""A prediction is four: id, digest of the features, features as JSON, predicted label as JSON."""


class KeepRefusal(IntEnum):
    """Reasons of `keep_predictions.lua` not to keep a prediction."""

    OTHER_FEATURES = 1
    LABELLED = 2
    TOO_MANY_WAIT = 3
    WAITED_TOO_LONG = 4


KeepAnswer = Answer[tuple[int, KeepRefusal] | None]
"""Gets `None`, or the index of the first prediction that cannot be kept, and the reason."""


class _KeepRequest(msgspec.Struct):
    """One caller's predictions, its deadline on the loop's clock, and its answer."""

    words: Sequence[str]
    deadline_s: float
    answer: KeepAnswer


class PendingPredictions:
    """Keeper of a model's predictions, one request in flight; those of other callers go together.

    Half of all callers go at a time: while Redis works for these, the worker answers the others
    (with 16 callers 9 % more than if all that wait go, often 1 caller and then 15).

    Parameters
    ----------
    connection, keys
        The worker's connection, the model's keys.

    """

    def __init__(self, connection: Connection, keys: ModelKeys) -> None:
        self._connection = connection
        self._keys = keys
        self._queue: deque[_KeepRequest] = deque()
        self._task: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        mine = secrets.token_hex(8)
        self._requests = (f"{mine}{number}" for number in itertools.count())

    def keep(self, words: Sequence[str], timeout_s: float, answer: KeepAnswer) -> None:
        """Keep predictions, all of them or none, with the next request to Redis.

        Parameters
        ----------
        words
            Of each its id, the digest of its features, these and the label as JSON.
        timeout_s
            Longest that Redis may be away, in seconds.
        answer
            Gets the result; `ModelGone` or `Unavailable` if the model was deleted or Redis does
            not answer.

        """
        self._queue.append(_KeepRequest(words, self._loop.time() + timeout_s, answer))
        if self._task is None:
            self._task = self._loop.create_task(self._work())

    async def _work(self) -> None:
        most = (len(self._queue) + 1) // 2
        while self._queue:
            taken = self._take(most)
            try:
                answers = await self._send([one.words for one in taken], taken[0].deadline_s)
            except Exception as error:  # noqa: BLE001 - the callers get it
                for one in taken:
                    if not one.answer.done():
                        one.answer.set_exception(error)
                        one.answer.exception()  # the caller has it
                most = max(1, len(self._queue))  # they have waited for as long
                continue
            most = (len(taken) + len(self._queue) + 1) // 2
            for one, found in zip(taken, answers, strict=True):
                if not one.answer.done():
                    one.answer.set_result(None if found == 0 else (found[0], KeepRefusal(found[1])))
            await asyncio.sleep(0)  # a caller just answered may have more
        self._task = None

    def _take(self, most: int) -> list[_KeepRequest]:
        """Remove and return the predictions of at most `most` callers, to go out together."""
        taken: list[_KeepRequest] = []
        count = 0
        while self._queue and len(taken) < most and count < _MOST_AT_ONCE:
            taken.append(self._queue.popleft())
            count += len(taken[-1].words) // _WORDS
        return taken

    async def _send(self, callers: Sequence[Sequence[str]], deadline_s: float) -> Sequence[Any]:
        on = self._keys.on
        packed = _PACK.encode(callers)
        request = next(self._requests)  # its name, by which it is known if it is sent again
        reply = await retry(
            lambda: self._connection.run(
                _KEEP,
                [*on.followed, *on.seen, *on.pending],
                self._keys.uid,
                packed,
                request,
            ),
            deadline_s,
        )
        if reply[0] == b"gone":
            raise ModelGone
        answers: Sequence[Any] = reply[1]
        return answers


async def retire(connection: Connection, keys: StreamKeys) -> None:
    """Give up the predictions that waited too long; label them if the stream has a default."""
    for _ in range(_MOST_TURNS):
        more = await connection.run(
            _EXPIRE,
            [keys.meta, keys.log, *keys.seen, *keys.pending],
            _RETIRED_AT_ONCE,
            _RETIRED_BYTES,
        )
        if not more:
            return


async def counts(connection: Connection, keys: StreamKeys) -> dict[str, int] | None:
    """Return how many predictions were made, wait, got a label, and how; `None` before any."""
    return counts_in(await connection.hgetall(keys.meta))


def counts_in(meta: Mapping[str, str]) -> dict[str, int] | None:
    """Return the same counts from a stream's meta."""
    if "predicted" not in meta:
        return None
    return {name: int(meta.get(field, 0)) for name, field in COUNTS.items()}
