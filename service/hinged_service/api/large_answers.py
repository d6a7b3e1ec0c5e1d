"""Answers of any size: counted before they are made, and sent in pieces as the client reads them.

A short answer is sent at once and is not counted: the connection holds as much in any case.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncIterable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from hinged_service.errors import TooLarge
from hinged_service.model.state import ModelState
from hinged_service.server.admission import HELD, RequestLease
from hinged_service.telemetry.state_log import StateChangeLog
from hinged_service.wire.events import Event

__all__ = [
    "PIECE_BYTES",
    "LargeAnswer",
    "outcome_bytes",
    "pieces_of",
    "pieces_of_array",
    "prediction_bytes",
    "predictions_at_once",
    "reserve",
    "send_pieces",
]

logger = logging.getLogger(__name__)

PIECE_BYTES: Final = 2**18
"""Bytes of a piece, about."""
_UNCOUNTED_BYTES: Final = 2**16
_LEAST_BYTES_PER_S: Final = 2**16
_FIELD_BYTES = 256
"""Bytes of the fields of an answer at most, without label and probabilities."""
_CHARACTER_BYTES = 6
_SCORES_AT_ONCE = 4_000
_PAIRS = 2_000
_LOG_EVERY_S = 60.0

_encode = msgspec.json.Encoder().encode
_changes = StateChangeLog()


def reserve(scope: Scope, size: int, most_bytes: int, advice: str) -> None:
    """Hold room for an answer of `size` bytes at most, before it is made.

    Raises
    ------
    TooLarge
        It may be larger than `most_bytes`; the text gives `advice`.
    Busy
        The answers of the worker hold too much.

    """
    if size > most_bytes:
        raise TooLarge(
            f"The answer may need {size} bytes, but max_answer_bytes allows {most_bytes}. {advice}"
        )
    if size > _UNCOUNTED_BYTES:
        scope[HELD].add_answer(size)


def prediction_bytes(state: ModelState, most: int) -> int:
    """Return how many bytes a prediction with the `most` largest probabilities may have."""
    return _FIELD_BYTES + state.answers.answer_bytes(most)


def outcome_bytes(state: ModelState, events: Sequence[Event]) -> int:
    """Return how many bytes the outcome of one of the events may have."""
    sizes = (len(event.y) for event in events if isinstance(event.y, str))
    label_bytes = state.answers.answer_bytes(0)
    return _FIELD_BYTES + max(label_bytes, _CHARACTER_BYTES * max(sizes, default=0))


def predictions_at_once(state: ModelState, each_bytes: int) -> int:
    """Return how many predictions make one piece, each of `each_bytes`."""
    classes = len(state.answers.classes())
    return max(1, min(PIECE_BYTES // each_bytes, _SCORES_AT_ONCE // max(1, classes)))


def pieces_of_array(items: Sequence[object], each_bytes: int) -> list[bytes]:
    """Return the JSON of an array in pieces; an item has `each_bytes` at most."""
    count = max(1, PIECE_BYTES // each_bytes)
    pieces = [
        (b"," if start else b"[") + _encode(items[start : start + count])[1:-1]
        for start in range(0, len(items), count)
    ]
    return [*pieces, b"]"]


def pieces_of(value: Any) -> Iterator[bytes]:
    """Yield the JSON of objects of objects, arrays and scalars in pieces."""
    parts, size = [], 0
    for part in _parts(value):
        parts.append(part)
        size += len(part)
        if size >= PIECE_BYTES:
            yield b"".join(parts)
            parts, size = [], 0
    yield b"".join(parts)


def _parts(value: Any) -> Iterator[bytes]:
    if isinstance(value, list):
        for number, part in enumerate(value):
            yield b"," if number else b"["
            yield from _parts(part)
        yield b"]" if value else b"[]"
    elif not isinstance(value, dict) or not value:
        yield _encode(value)
    elif any(isinstance(part, (dict, list)) for part in value.values()):
        for number, (name, part) in enumerate(value.items()):
            yield (b"," if number else b"{") + _encode(name) + b":"
            yield from _parts(part)
        yield b"}"
    else:
        pairs, between = iter(value.items()), b"{"
        while some := dict(itertools.islice(pairs, _PAIRS)):
            yield between + _encode(some)[1:-1]
            between = b","
        yield b"}"


async def send_pieces(
    scope: Scope, send: Send, pieces: Iterable[bytes] | AsyncIterable[bytes]
) -> None:
    """Send the body of an answer piece by piece, each once the client has read those before.

    A newline ends it, as it ends every JSON answer.

    A client that reads too slowly loses the connection, and the answer is held no more.
    """
    held: RequestLease = scope[HELD]
    held.drop_body()
    if isinstance(pieces, list):
        pieces = _emptied(pieces)
    allowed_s = held.control.body_timeout_s + held.answer_bytes / _LEAST_BYTES_PER_S
    try:
        async with asyncio.timeout(allowed_s):
            if isinstance(pieces, AsyncIterable):
                async for piece in pieces:
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            else:
                for piece in pieces:
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                    await asyncio.sleep(0)
            await send({"type": "http.response.body", "body": b"\n", "more_body": False})
    except TimeoutError:  # the server closes a connection whose answer is not complete
        _changes.enter(
            "slow", logger, "a client did not take its answer in time", every_s=_LOG_EVERY_S
        )


def _emptied(pieces: list[bytes]) -> Iterator[bytes]:
    pieces.reverse()
    while pieces:
        yield pieces.pop()


class LargeAnswer(Response):
    """An answer of JSON that is made and sent in pieces."""

    def __init__(
        self,
        pieces: Iterable[bytes] | AsyncIterable[bytes],
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(headers=headers, media_type="application/json")
        del self.headers["content-length"]
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer."""
        headers = self.raw_headers
        await send({"type": "http.response.start", "status": self.status_code, "headers": headers})
        await send_pieces(scope, send, self._pieces)
