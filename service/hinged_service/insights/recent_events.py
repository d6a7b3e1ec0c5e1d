"""The newest events of a model's stream, and the model's answers to them now."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import hinged
from hinged_service.engine.live_model import LiveModel
from hinged_service.model.state import ModelState
from hinged_service.store.connection import Connection
from hinged_service.store.log import backwards
from hinged_service.store.log_types import Entry
from hinged_service.wire.decoding import completed, parse_joined, parse_log
from hinged_service.wire.events import Event

__all__ = ["Recent", "recent"]

_MAX_BYTES = 2**20
_EVENTS_AT_A_TIME = 50


class Recent(NamedTuple):
    """A labelled event, and the model's answer at this moment.

    Attributes
    ----------
    position, number, at_ms
        Its entry in the log, its place in it, and when it arrived, in ms since 1970.
    id, x, y, w
        The event.
    y_pred, score
        The model's answer now that it has learned from it.

    """

    position: str
    number: int
    at_ms: int
    id: str | None
    x: Mapping[str, Any]
    y: Any
    w: float
    y_pred: Any
    score: float


async def recent(connection: Connection, live_model: LiveModel, most: int) -> list[Recent]:
    """Return at most `most` events of the stream that the model can take, the newest first.

    Events that were trimmed, or that lie behind a MB of newer ones, are left out.

    Raises
    ------
    Unavailable
        Redis does not answer.

    """
    found: list[Recent] = []
    read = 0
    async for entry in backwards(connection, live_model.keys.on):
        for one in _of(live_model.state, entry):
            found.append(one)
            if len(found) == most:
                return found
            if len(found) % _EVENTS_AT_A_TIME == 0:
                await asyncio.sleep(0)
        read += len(entry.payload or b"")
        if read > _MAX_BYTES:
            break
    return found


def _of(fold: ModelState, entry: Entry) -> Iterator[Recent]:
    if entry.payload is None:
        return
    joined = parse_joined(entry.joined) if entry.joined else {}
    events = completed(parse_log(entry.payload), joined)
    for number, event in reversed(list(enumerate(events))):
        if event is None or number in entry.skip or fold.answers.target(event.y) is None:
            continue
        answer = _answer(fold, event)
        if answer is not None:
            yield Recent(
                str(entry.position),
                number,
                entry.position.order[0],
                event.id,
                event.x,
                event.y,
                event.w,
                *answer,
            )


def _answer(fold: ModelState, event: Event) -> tuple[Any, float] | None:
    """Return the label and score, `None` for features that the model cannot take."""
    if not fold.accepts_non_numeric and not all(type(v) in (int, float) for v in event.x.values()):
        return None
    try:
        answer = fold.predict(event.x, 0)
    except hinged.InvalidEvent:
        return None
    return answer.y, answer.score
