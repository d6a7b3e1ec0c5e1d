"""Answers to a body of lines: a line per line, or one summary of them all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from starlette.types import Send

from hinged_service.api.problems import GUARDS, problem
from hinged_service.errors import Detail, ServiceError
from hinged_service.model.predictor import Label, label_text
from hinged_service.wire.faults import MAX_DETAILS

__all__ = [
    "Answer",
    "DuplicateLine",
    "EarlyLine",
    "LearnedLine",
    "LearnedLines",
    "LineAnswer",
    "PredictedLine",
    "PredictedLines",
    "RejectedLine",
    "WeightlessLine",
]

Number = Annotated[int, Meta(description="The line's number in the body, from 1.", examples=[1])]


class LearnedLine(msgspec.Struct, gc=False):
    """A line that was learned; the fields beside `line` as in `Learned`."""

    line: Number
    y_pred: Label | None
    score: float
    mistake: bool
    updated: bool
    hinge_loss: float
    position: str
    duplicate: bool = False


class WeightlessLine(LearnedLine, gc=False):
    """A line of weight 0, which counts in no accuracy; it reads as the others do."""


class DuplicateLine(msgspec.Struct, gc=False):
    """A line whose event had counted before; the fields beside `line` as in `Duplicate`."""

    line: Number
    position: str
    duplicate: Annotated[bool, Meta(examples=[True])] = True


class EarlyLine(msgspec.Struct, gc=False):
    """A label that came before its prediction; the fields beside `line` as in `Early`."""

    line: Number
    position: str
    early: Annotated[bool, Meta(examples=[True])] = True


class PredictedLine(msgspec.Struct, gc=False, omit_defaults=True):
    """A line's prediction; the fields beside `line` as in `Predicted`."""

    line: Number
    y: Label | None
    score: float
    proba: dict[str, float]
    position: str
    stale_s: float | None = None


class LineFault(msgspec.Struct, gc=False):
    """One fault of a line: its field, and the condition that must hold there."""

    field: str
    reason: str


class RejectedLine(msgspec.Struct, gc=False, omit_defaults=True):
    """A line that was not taken, and why; the others are.

    Parameters
    ----------
    line
        Its number.
    status, title, detail, errors
        As a problem document would have it for the line alone.
    logged
        Whether it is in the log all the same, its id used up.

    """

    line: Number
    status: Annotated[int, Meta(examples=[422])]
    title: str
    detail: str
    errors: list[LineFault] = []
    logged: bool = False

    @classmethod
    def of(cls, line: int, error: ServiceError) -> RejectedLine:
        """Return the answer for a line with an error."""
        errors = [LineFault(_within(d), d.reason) for d in error.errors[:MAX_DETAILS]]
        return cls(line, error.status, error.title, error.detail[:1000], errors, error.logged)


def _within(detail: Detail) -> str:
    """Return the field at fault as the line has it: it is no array."""
    return detail.field.removeprefix("[0].")


LineAnswer = LearnedLine | DuplicateLine | EarlyLine | PredictedLine | RejectedLine


class LearnedLines(msgspec.Struct):
    """Summary of a body of events.

    Parameters
    ----------
    lines
        Lines that were not blank; the sum of the next four.
    learned
        Events that were learned now.
    duplicates
        Events that had counted before.
    early
        Labels that came before their predictions and wait for them.
    rejected
        Lines that were not taken.
    judged
        Learned events of weight above 0 for which there was a prediction (a multiclass model
        that knows no class yet has none).
    mistakes
        Judged events whose label, predicted before, was wrong.
    accuracy
        `1 - mistakes / judged`; null without one.
    position
        The place in the log at which all of it is in the model; null if there is none.
    faults
        The first 20 rejected lines.

    """

    lines: int = 0
    learned: int = 0
    duplicates: int = 0
    early: int = 0
    rejected: int = 0
    judged: int = 0
    mistakes: int = 0
    accuracy: float | None = None
    position: str | None = None
    faults: list[RejectedLine] = msgspec.field(default_factory=list)

    def add(self, answers: Iterable[Any]) -> None:
        """Count the answers for some lines."""
        for answer in answers:
            self.lines += 1
            kind = type(answer)
            if kind is RejectedLine:
                self.rejected += 1
                if len(self.faults) < MAX_DETAILS:
                    self.faults.append(answer)
                continue
            self.position = answer.position
            if isinstance(answer, LearnedLine):
                self.learned += 1
                self.judged += kind is LearnedLine and answer.y_pred is not None
                self.mistakes += answer.mistake
            elif kind is EarlyLine:
                self.early += 1
            else:
                self.duplicates += 1
        if self.judged:
            self.accuracy = (self.judged - self.mistakes) / self.judged


class PredictedLines(msgspec.Struct):
    """Summary of the predictions for a body of lines.

    Parameters
    ----------
    lines
        Lines that were not blank; the sum of the next two.
    predicted
        Lines with a prediction.
    rejected
        Lines without.
    labels
        How often each label was predicted, by its text.
    position
        The place in the log up to which the model had learned at the last of them.
    faults
        The first 20 rejected lines.

    """

    lines: int = 0
    predicted: int = 0
    rejected: int = 0
    labels: dict[str, int] = msgspec.field(default_factory=dict)
    position: str | None = None
    faults: list[RejectedLine] = msgspec.field(default_factory=list)

    def add(self, answers: Iterable[Any]) -> None:
        """Count the answers for some lines."""
        for answer in answers:
            self.lines += 1
            if type(answer) is RejectedLine:
                self.rejected += 1
                if len(self.faults) < MAX_DETAILS:
                    self.faults.append(answer)
                continue
            self.predicted += 1
            self.position = answer.position
            if answer.y is not None:
                label = label_text(answer.y)
                self.labels[label] = self.labels.get(label, 0) + 1


_ENCODER = msgspec.json.Encoder()
_LINES = [(b"content-type", b"application/x-ndjson"), (b"x-accel-buffering", b"no"), *GUARDS]
_JSON = [(b"content-type", b"application/json"), *GUARDS]


class Answer:
    """The answer to a body of lines, written in parts; waits for a client that does not read.

    Each line is answered, or an empty summary is filled and written in the end.
    """

    def __init__(
        self,
        send: Send,
        results: Literal["each", "summary"],
        summary: LearnedLines | PredictedLines,
    ) -> None:
        self._send = send
        self._summary = None if results == "each" else summary
        self._begun = False

    async def add(self, answers: list[LineAnswer]) -> None:
        """Answer some lines, in order."""
        if self._summary is not None:
            self._summary.add(answers)
        elif answers:
            await self._write(_ENCODER.encode_lines(answers))

    async def finish(self) -> None:
        """End the answer: all lines were read."""
        if self._summary is not None:
            await self._whole(200, _JSON, _ENCODER.encode(self._summary) + b"\n")
        else:
            await self._write(b"", more=False)

    async def give_up(self, error: ServiceError, line: int | None) -> None:
        """End the answer before the body's end, for an error.

        `line` is the first one that is not answered, `None` if the body was not looked at.
        """
        status, headers, body = problem(error)
        if line is None:
            await self._whole(status, headers, body)
            return
        document = msgspec.json.decode(body)
        if self._begun:
            await self._write(
                _ENCODER.encode({"line": line, "error": document}) + b"\n", more=False
            )
            return
        document["line"] = line
        if self._summary is not None:
            document["summary"] = self._summary
        await self._whole(status, headers, _ENCODER.encode(document) + b"\n")

    async def _whole(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        length = (b"content-length", b"%d" % len(body))
        await self._start(status, [length, *headers])
        await self._send({"type": "http.response.body", "body": body})

    async def _write(self, body: bytes, more: bool = True) -> None:
        if not self._begun:
            await self._start(200, _LINES)
        await self._send({"type": "http.response.body", "body": body, "more_body": more})

    async def _start(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self._begun = True
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
