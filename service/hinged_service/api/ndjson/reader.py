"""A request body as lines: split, decoded and handed out in batches as they come, never held.

One batch is read ahead while the one before is being worked on; when it is full nothing more
is received, and the client has to wait.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec
from starlette.types import Receive

from hinged.kernel import read_events
from hinged_service.errors import Malformed, ServiceError, TooLarge, Unavailable
from hinged_service.wire.decoding import parse_events, parse_questions
from hinged_service.wire.encodings import other_encoding, without_marks
from hinged_service.wire.events import (
    Event,
    Json,
    MixedEvent,
    MixedQuestion,
    Question,
)
from hinged_service.wire.faults import DECODE_ERRORS

__all__ = ["Batch", "LineReader", "Parser", "event_parser", "question_parser"]

MAX_LINES = 500
_MAX_BYTES = 2**20
_TURNS = 4
_REST_S = 1.0
_SPACE = b" \t\r\n"

T = TypeVar("T", Event, Question)


@dataclass(frozen=True, slots=True)
class Parser(Generic[T]):
    """Parser of a line.

    Parameters
    ----------
    many
        Reads some lines at once; `None` if one of them is not plain.
    fast
        Decodes one line, or raises msgspec's errors.
    slow
        Decodes what that does not, and returns its JSON too and whether it was an array; or
        raises a `ServiceError` that names every fault.

    """

    many: Callable[[list[bytes]], list[T] | None]
    fast: Callable[[bytes], T]
    slow: Callable[[bytes], tuple[list[T], Json, bool]]

    def explain(self, line: bytes) -> tuple[T, bytes] | ServiceError:
        """Return the kind of the line and its JSON, or its fault."""
        try:
            found, text, many = self.slow(line)
        except ServiceError as error:
            error.detail = error.detail.replace("The body", "The line")
            return error
        if many:
            return Malformed("The line is an array: send one object per line.")
        return found[0], bytes(text)


_EVENTS: tuple[Any, ...] = tuple(msgspec.json.Decoder(t).decode for t in (Event, MixedEvent))
_QUESTIONS: tuple[Any, ...] = tuple(
    msgspec.json.Decoder(t).decode for t in (Question, MixedQuestion)
)


def event_parser(mixed: bool, gathered: bool) -> Parser[Event]:
    """Return the parser of labelled events; parameters as for `parse_events`."""
    return Parser(
        lambda lines: read_events(lines, Event, True) if gathered else None,
        _EVENTS[mixed],
        lambda line: parse_events(line, MAX_LINES, mixed),
    )


def question_parser(mixed: bool, gathered: bool) -> Parser[Question]:
    """Return the parser of events without label; parameters as for `parse_questions`."""
    return Parser(
        lambda lines: read_events(lines, Question, False) if gathered else None,
        _QUESTIONS[mixed],
        lambda line: parse_questions(line, MAX_LINES, mixed),
    )


@dataclass(slots=True)
class Batch(Generic[T]):
    """Some lines that follow one another.

    Parameters
    ----------
    start, end
        How many lines of the body come before it, and up to its end, blank ones included.
    numbers, texts, items
        Of each good line its number from 1, its JSON as it was taken, and what it stands for.
    faults
        The bad lines by number.
    lines
        All lines as sent, without their ends; `None` for one that was too long.

    """

    start: int
    end: int
    numbers: list[int] = field(default_factory=list)
    texts: list[bytes] = field(default_factory=list)
    items: list[T] = field(default_factory=list)
    faults: dict[int, ServiceError] = field(default_factory=dict)
    lines: list[bytes | None] = field(default_factory=list)

    def split(self, at: int) -> tuple[Batch[T], Batch[T]]:
        """Return the part up to line number `at`, and the rest; either may be empty."""
        at = min(at, self.end)
        good, lines = bisect_right(self.numbers, at), at - self.start
        faults: tuple[dict[int, ServiceError], ...] = ({}, {})
        for number, error in self.faults.items():
            faults[number > at][number] = error
        numbers, texts, items = self.numbers, self.texts, self.items
        return (
            Batch(
                *(self.start, at, numbers[:good], texts[:good], items[:good]),
                *(faults[0], self.lines[:lines]),
            ),
            Batch(
                *(at, self.end, numbers[good:], texts[good:], items[good:]),
                *(faults[1], self.lines[lines:]),
            ),
        )


class _Splitter:
    """Chunks of bytes in, lines out: they end at byte 0A and nowhere else."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._size = 0
        self._begun = False

    def feed(self, chunk: bytes) -> list[bytes | None]:
        """Return the lines that the chunk completes."""
        first, *more = chunk.split(b"\n")
        self._hold(first)
        if not more:
            return []
        lines = [self._taken()]
        last = more.pop()
        if len(chunk) > self._max_bytes:
            lines += [line if len(line) <= self._max_bytes else None for line in more]
        else:
            lines += more
        self._hold(last)
        return lines

    def end(self) -> list[bytes | None]:
        """Return the last line if nothing ended it."""
        return [self._taken()] if self._size else []

    def _hold(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._max_bytes:
            self._parts.clear()
        elif part:
            self._parts.append(part)

    def _taken(self) -> bytes | None:
        line = b"".join(self._parts) if self._size <= self._max_bytes else None
        self._parts.clear()
        self._size = 0
        if not self._begun:
            self._begun = True
            if line is not None:
                if (encoding := other_encoding(line)) is not None:
                    raise Malformed(f"The lines are {encoding}: send UTF-8.")
                line = without_marks(line)
        return line


class LineReader(Generic[T]):
    """The lines of a request body, read in a task of its own; `close` it in the end.

    A line longer than `max_line_bytes` is a fault and never held.

    Attributes
    ----------
    hung_up
        True if the client hung up before the body's end.
    stopped
        True if it was asked to stop before the body's end.

    """

    def __init__(self, receive: Receive, parser: Parser[T], max_line_bytes: int) -> None:
        self.hung_up = self.stopped = False
        self._receive = receive
        self._parser: Parser[T] = parser
        self._max_line_bytes = max_line_bytes
        self._batch: Batch[T] = Batch(0, 0)
        self._size = 0
        self._ended = False
        self._come = asyncio.Event()
        self._room = asyncio.Event()
        self._task = asyncio.create_task(self._read())

    async def next(self) -> Batch[T] | None:
        """Return the lines that have come, at least one of them; `None` at the end.

        While more keep coming it waits until the batch is full: few large appends cost less
        than many small ones.

        """
        quiet = 0
        while not (self._ended or self._is_full()):
            end = self._batch.end
            if end == self._batch.start:
                self._come.clear()
                await self._come.wait()
            elif quiet < _TURNS:
                await asyncio.sleep(0)
                quiet = quiet + 1 if self._batch.end == end else 0
            else:
                break
        if self._ended and self._task.done():
            self._task.result()
        batch = self._batch
        if self.hung_up or batch.end == batch.start:
            return None
        self._batch, self._size = Batch(batch.end, batch.end), 0
        self._room.set()
        return batch

    def stop(self) -> None:
        """Take no further line: lines already received are handed out, the rest is discarded."""
        if not self._ended:
            self.stopped = self._ended = True
            self._come.set()
            self._room.set()

    async def end(self) -> None:
        """Return unless there was a request to stop before the body's end.

        Raises
        ------
        Unavailable
            Something did. A client that sends on had a moment to come to its end before, as
            many read answers only then.

        """
        if self.stopped:
            await asyncio.wait([self._task], timeout=_REST_S)
            raise Unavailable(
                "The worker is stopping, and took no line from this one on. Send them again.",
                retry_after_s=1,
            )

    def close(self) -> None:
        """Stop reading."""
        self._task.cancel()

    def _is_full(self) -> bool:
        return self._batch.end - self._batch.start >= MAX_LINES or self._size >= _MAX_BYTES

    async def _read(self) -> None:
        try:
            splitter = _Splitter(self._max_line_bytes)
            more = True
            while more:
                message = await self._receive()
                if message["type"] != "http.request":
                    self.hung_up = True
                    return
                more = message.get("more_body", False)
                if self.stopped:
                    continue
                await self._add(splitter.feed(message.get("body", b"")))
            if not self.stopped:
                await self._add(splitter.end())
        finally:
            self._ended = True
            self._come.set()

    async def _add(self, lines: list[bytes | None]) -> None:
        at = 0
        while at < len(lines):
            while self._is_full() and not self.stopped:
                self._room.clear()
                await self._room.wait()
            if self.stopped:
                return
            at += self._fill(lines[at : at + MAX_LINES - (self._batch.end - self._batch.start)])
            self._come.set()

    def _fill(self, lines: Sequence[bytes | None]) -> int:
        """Add lines to the batch until it is full; return how many."""
        batch, first = self._batch, self._batch.end + 1
        for count, line in enumerate(lines, 1):
            self._size += len(line or b"")
            if self._size >= _MAX_BYTES:
                lines = lines[:count]
                break
        texts = [None if line is None else line.strip(_SPACE) for line in lines]
        items = self._parser.many([text for text in texts if text])
        if items is None or None in texts:
            for number, text in enumerate(texts, first):
                self._add_one(number, text)
        else:
            batch.numbers += [number for number, text in enumerate(texts, first) if text]
            batch.texts += filter(None, texts)
            batch.items += items
        batch.lines += lines
        batch.end += len(lines)
        return len(lines)

    def _add_one(self, number: int, text: bytes | None) -> None:
        """Add a line without the space around it, unless it is blank; `None` is one too long."""
        batch = self._batch
        if text is None:
            reason = f"The line is longer than {self._max_line_bytes} bytes."
            batch.faults[number] = TooLarge(reason)
        elif text:
            try:
                item = self._parser.fast(text)
            except DECODE_ERRORS:
                explained = self._parser.explain(text)
                if isinstance(explained, ServiceError):
                    batch.faults[number] = explained
                    return
                item, text = explained
            batch.numbers.append(number)
            batch.texts.append(text)
            batch.items.append(item)
