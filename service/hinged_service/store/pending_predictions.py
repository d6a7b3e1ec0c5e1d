"""Pending predictions, which wait for their labels: kept, given up, counted."""

from __future__ import annotations

import asyncio
import functools
import itertools
import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any

import msgspec

from hinged_service.errors import ModelGone
from hinged_service.retry import retry
from hinged_service.store.connection import Connection
from hinged_service.store.keys import ModelKeys, StreamKeys
from hinged_service.store.scripts import load
from hinged_service.store.transport.shared_connection import Word
from hinged_service.tasks import Answer

__all__ = [
    "COUNTS",
    "KeepAnswer",
    "KeepRefusal",
    "PendingPredictions",
    "counts",
    "counts_in",
    "retire",
    "words_of",
]

_KEEP = load("keep_predictions")
_EXPIRE = load("expire_predictions")
_PACK = msgspec.msgpack.Encoder()

_RETIRED_AT_ONCE = 500
_RETIRED_BYTES = 2**20
_MOST_TURNS = 400
_FEW = 3  # callers that are not worth two requests
_ROUNDS = 4
_SHARE = 2 / 3
_MOST_ON_WAY = 2
_WORDS = 3
_MOST_WORDS = 2_000 * _WORDS
_BEGINNING = b"\x94\xae"  # in msgpack: an array of 4, a text of 14 bytes

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

    words: Sequence[Word]
    deadline_s: float
    answer: KeepAnswer


class PendingPredictions:
    """Keeper of a model's predictions, two requests in flight; those of other callers go together.

    A request leaves as soon as two thirds of the known callers are in it: Redis keeps their
    predictions while the worker makes those of the others. With fewer it waits for some rounds of
    the loop, for callers just answered to come back: larger requests cost less. It needs no task
    unless it has to be sent again.

    Parameters
    ----------
    connection, keys
        The worker's connection, the model's keys.

    """

    def __init__(self, connection: Connection, keys: ModelKeys) -> None:
        self._connection = connection
        self._uid = keys.uid
        self._keys = [*keys.on.followed, *keys.on.seen, *keys.on.pending]
        self._queue: deque[_KeepRequest] = deque()
        self._on_way: list[int] = []
        """Sizes of the requests whose answers are awaited."""
        self._enough = 1
        self._gathers = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        mine = secrets.token_hex(8)
        self._requests = (f"{mine}{number}" for number in itertools.count())

    def keep(self, words: Sequence[Word], timeout_s: float, answer: KeepAnswer) -> None:
        """Keep predictions, all of them or none, with the next request to Redis.

        Parameters
        ----------
        words
            Of each what `words_of` returns, one after the other.
        timeout_s
            Longest that Redis may be away, in seconds.
        answer
            Gets the result; `ModelGone` or `Unavailable` if the model was deleted or Redis does
            not answer.

        """
        self._queue.append(_KeepRequest(words, self._loop.time() + timeout_s, answer))
        self._see_to_queue()

    def _see_to_queue(self) -> None:
        """Send waiting predictions if enough; else after some rounds if no answer is awaited."""
        if len(self._queue) >= self._enough and len(self._on_way) < _MOST_ON_WAY:
            self._next()
        elif self._queue and not (self._gathers or self._on_way):
            self._gathers = True
            self._loop.call_soon(self._gather, _ROUNDS)

    def _gather(self, rounds: int) -> None:
        if self._on_way or not self._queue:
            self._gathers = False
        elif rounds:
            self._loop.call_soon(self._gather, rounds - 1)
        else:
            self._gathers = False
            self._next()

    def _next(self) -> None:
        """Send the waiting predictions."""
        taken: list[_KeepRequest] = []
        count = 0
        while self._queue and count < _MOST_WORDS:
            taken.append(self._queue.popleft())
            count += len(taken[-1].words)
        self._on_way.append(len(taken))
        try:
            self._send(taken)
        except Exception as error:  # noqa: BLE001 - the callers get it
            self._came_back(taken)
            _fail(taken, error)

    def _send(self, taken: Sequence[_KeepRequest]) -> None:
        words = [word for one in taken for word in one.words]
        beginnings: Any = words[1::_WORDS]
        call = (
            *(_KEEP, self._keys, self._uid),
            next(self._requests),  # by this name it is known if it is sent again
            _PACK.encode([len(one.words) // _WORDS for one in taken]),
            *(*words[::_WORDS], *beginnings, *words[2::_WORDS]),
        )
        size = sum(map(len, beginnings))
        then = functools.partial(self._sent, taken, call, size)
        self._connection.begin(*call, size=size, then=then)

    def _sent(
        self,
        taken: Sequence[_KeepRequest],
        call: tuple[Any, ...],
        size: int,
        sent: asyncio.Future[Any],
    ) -> None:
        """Answer the callers, or send the same again if it may be lost."""
        if sent.cancelled() or sent.exception() is not None:
            again = functools.partial(self._connection.share, *call, changes=True, size=size)
            task = self._loop.create_task(self._send_again(taken, again))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            self._answer(taken, sent.result()[0])

    async def _send_again(
        self, taken: Sequence[_KeepRequest], again: Callable[[], Awaitable[tuple[Any, Any]]]
    ) -> None:
        try:
            reply, _ = await retry(again, taken[0].deadline_s)
        except Exception as error:  # noqa: BLE001 - the callers get it
            self._came_back(taken)
            _fail(taken, error)
        else:
            self._answer(taken, reply)

    def _answer(self, taken: Sequence[_KeepRequest], reply: Any) -> None:
        """Answer the callers, who may have more for the next request."""
        self._came_back(taken)
        if reply[0] == b"gone":
            _fail(taken, ModelGone())
            return
        for one, found in zip(taken, reply[1], strict=True):
            if not one.answer.done():
                one.answer.set_result(None if found == 0 else (found[0], KeepRefusal(found[1])))

    def _came_back(self, taken: Sequence[_KeepRequest]) -> None:
        """Note that a request is answered, or given up; see to those who wait."""
        callers = len(self._queue) + sum(self._on_way)
        self._on_way.remove(len(taken))
        self._enough = callers if callers <= _FEW else round(callers * _SHARE)
        self._see_to_queue()


def _fail(taken: Sequence[_KeepRequest], error: Exception) -> None:
    for one in taken:
        if not one.answer.done():
            one.answer.set_exception(error)
            one.answer.exception()  # the caller has it


def words_of(event_id: str, digest: str, x: str, label: bytes) -> tuple[Word, Word, Word]:
    """Return the words of a prediction for the script.

    Parameters
    ----------
    event_id
        Its id.
    digest
        The digest of its features.
    x, label
        JSON of these and of the predicted label.

    """
    return event_id, _BEGINNING + digest.encode() + _PACK.encode(x), label


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
