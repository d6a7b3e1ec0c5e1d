"""The newest events of a model's stream, and the model's answers to them now."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Mapping
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
        size = len(entry.payload or b"")
        events = _events(entry)
        for first in range(0, len(events), _EVENTS_AT_A_TIME):
            some = events[first : first + _EVENTS_AT_A_TIME]
            look = functools.partial(_of, entry, some)
            answers, _ = await live_model.ask(look, size * len(some) // len(events))
            found += answers
            if len(found) >= most:
                return found[:most]
            await asyncio.sleep(0)
        read += size
        if read > _MAX_BYTES:
            break
    return found


def _events(entry: Entry) -> list[tuple[int, Event]]:
    """Return the events of an entry that count, with their numbers, the newest first."""
    if entry.payload is None:
        return []
    joined = parse_joined(entry.joined) if entry.joined else {}
    events = completed(parse_log(entry.payload), joined)
    return [
        (number, event)
        for number, event in reversed(list(enumerate(events)))
        if event is not None and number not in entry.skip
    ]


def _of(entry: Entry, events: list[tuple[int, Event]], fold: ModelState) -> list[Recent]:
    position, found = entry.position, []
    for number, event in events:
        if fold.answers.target(event.y) is None:
            continue
        answer = _answer(fold, event)
        if answer is not None:
            at, at_ms = str(position), position.order[0]
            one = Recent(at, number, at_ms, event.id, event.x, event.y, event.w, *answer)
            found.append(one)
    return found


def _answer(fold: ModelState, event: Event) -> tuple[Any, float] | None:
    """Return the label and score, `None` for features that the model cannot take."""
    if not fold.accepts_non_numeric and not all(type(v) in (int, float) for v in event.x.values()):
        return None
    try:
        answer = fold.predict(event.x, 0)
    except hinged.InvalidEvent:
        return None
    return answer.y, answer.score
