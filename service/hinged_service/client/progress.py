"""Progress of a call: bytes sent and received, and the reports of the service. No I/O."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

import httpx
import msgspec

from hinged_service.client.errors import BadAnswer
from hinged_service.wire.faults import DECODE_ERRORS
from hinged_service.wire.progress import (
    PROGRESS_TYPE,
    SIZE_HEADER,
    AnswerHead,
    OnProgress,
    Progress,
)

__all__ = ["WatchedAnswer", "pieces"]

_PIECE_BYTES: Final = 2**16


def pieces(body: bytes, on_progress: OnProgress) -> Iterator[bytes]:
    """Yield a body in pieces, and report those that were sent; of a short body none."""
    if len(body) <= _PIECE_BYTES:
        yield body
        return
    for start in range(0, len(body), _PIECE_BYTES):
        on_progress(Progress("send", start, len(body)))
        yield body[start : start + _PIECE_BYTES]
    on_progress(Progress("send", len(body), len(body)))


class WatchedAnswer:
    """An answer that comes in pieces, behind lines of progress if the service sends any.

    Parameters
    ----------
    answer
        The head of the answer, whose body is read elsewhere and added.
    on_progress
        Takes note of progress.

    """

    def __init__(self, answer: httpx.Response, on_progress: OnProgress) -> None:
        self._url, self._on_progress = answer.url, on_progress
        self._in_lines = answer.headers.get("content-type") == PROGRESS_TYPE
        self._line = b""
        self._parts: list[bytes] = []
        self._size = 0
        self._begin(answer.status_code, answer.headers)

    def _begin(self, status: int, headers: httpx.Headers) -> None:
        self._status, self._total = status, 0
        self._headers = httpx.Headers(headers)
        self._headers.pop("content-encoding", None)  # the body comes decoded
        with contextlib.suppress(ValueError):
            self._total = int(headers.get(SIZE_HEADER, 0))

    def add(self, chunk: bytes) -> None:
        """Take a piece of the body; raise `BadAnswer` if it cannot be read."""
        while self._in_lines:
            line, end, chunk = (self._line + chunk).partition(b"\n")
            if not end:
                self._line = line
                return
            self._line = b""
            self._read(line)
        self._parts.append(chunk)
        self._size += len(chunk)
        if self._total:
            self._on_progress(Progress("receive", min(self._size, self._total), self._total))

    def _read(self, line: bytes) -> None:
        try:
            document = msgspec.json.decode(line, type=dict[str, object])
            if "status" not in document:
                self._on_progress(msgspec.convert(document, Progress))
                return
            head = msgspec.convert(document, AnswerHead)
        except DECODE_ERRORS as error:
            detail = f"{self._url} sent a line that this client cannot read: {error}."
            raise BadAnswer(detail) from error
        self._in_lines = False
        self._begin(head.status, httpx.Headers(head.headers))

    def whole(self, request: httpx.Request) -> httpx.Response:
        """Return the answer with its body; raise `BadAnswer` if it has not come."""
        if self._in_lines:
            raise BadAnswer(f"{self._url} sent lines of progress, but no answer.")
        body = b"".join(self._parts)
        return httpx.Response(self._status, headers=self._headers, content=body, request=request)
