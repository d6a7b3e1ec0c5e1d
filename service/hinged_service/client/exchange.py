"""Attempts of one call: answers are read, repetitions decided. No I/O."""

from __future__ import annotations

import contextlib
import math
import random
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Final, Generic, TypeVar

import httpx
import msgspec

from hinged_service.client.calls import Call
from hinged_service.client.errors import (
    BadAnswer,
    Busy,
    ClientError,
    Unavailable,
    Unreachable,
    error_class,
)
from hinged_service.wire.faults import DECODE_ERRORS
from hinged_service.wire.responses import Problem

__all__ = ["Exchange", "Retries"]

T = TypeVar("T")

_PASSING: Final = (
    Busy,
    Unavailable,
    httpx.TimeoutException,
    httpx.NetworkError,
    httpx.RemoteProtocolError,
    httpx.ProxyError,
)
_QUOTED_CHARS: Final = 200

_DICE = random.Random()  # noqa: S311 - no secrets; the global one is its user's


@dataclass(frozen=True, slots=True)
class Retries:
    """Rules for sending a call again: one answered 408, 429, 502, 503 or 504, or not at all.

    It is safe: every event has an id and counts once.

    Parameters
    ----------
    deadline_s
        No attempt starts later than this after the first; 0 for only one attempt. A
        wait that would pass it, even if the service asked for it, is not begun: the
        error is raised at once.
    first_pause_s
        Longest wait before the second attempt; it doubles from there on. The wait is drawn
        from its upper half, and is never shorter than the service asks for (`Retry-After`).
    longest_pause_s
        The end of the doubling.

    """

    deadline_s: float = 30.0
    first_pause_s: float = 0.05
    longest_pause_s: float = 2.0

    def __post_init__(self) -> None:
        if not self.deadline_s >= 0:
            raise ValueError(f"deadline_s must be at least 0, not {self.deadline_s}")
        if not 0 < self.first_pause_s <= self.longest_pause_s < math.inf:
            raise ValueError("0 < first_pause_s <= longest_pause_s < infinity must hold")


class Exchange(Generic[T]):
    """The attempts of one call; its deadline counts from now."""

    def __init__(self, call: Call[T], retries: Retries) -> None:
        self._call, self._retries = call, retries
        self._deadline = time.monotonic() + retries.deadline_s
        self._failures = 0

    def read(self, answer: httpx.Response) -> T:
        """Return the result of the call; raise `ClientError` if the answer is none."""
        done = self._call.gone_is_done and self._failures > 0 and answer.status_code == 404
        if not (answer.is_success or done):
            raise self._refusal(answer)
        try:
            return self._call.read(answer.content)
        except DECODE_ERRORS as error:
            detail = f"{answer.url} sent an answer that this client cannot read: {error}."
        except BadAnswer as error:
            detail = error.detail
        raise BadAnswer(detail, status=answer.status_code, event_ids=self._call.event_ids)

    def pause_s(self, failure: ClientError | httpx.RequestError) -> float:
        """Return the pause before the next attempt; raise `ClientError` if there is none."""
        if isinstance(failure, ClientError):
            error, asked_s = failure, failure.retry_after_s or 0.0
        else:
            error, asked_s = self._unreachable(failure), 0.0
        retries = self._retries
        most_s = min(
            retries.longest_pause_s, retries.first_pause_s * 2.0 ** min(self._failures, 60)
        )
        pause_s = max(asked_s, 0.0) + most_s * _DICE.uniform(0.5, 1.0)
        self._failures += 1
        over = time.monotonic() + pause_s > self._deadline
        if over or not self._call.repeated or not isinstance(failure, _PASSING):
            raise error from (None if error is failure else failure)
        return pause_s

    def renew(self, *, forget_failures: bool) -> None:
        """Let the deadline begin now: an attempt got through."""
        self._deadline = time.monotonic() + self._retries.deadline_s
        if forget_failures:
            self._failures = 0

    def _refusal(self, answer: httpx.Response) -> ClientError:
        try:
            problem = msgspec.json.decode(answer.content, type=Problem)
        except DECODE_ERRORS:
            text = answer.text[:_QUOTED_CHARS] or answer.reason_phrase
            problem = Problem(detail=f"{answer.url} answered {answer.status_code}: {text}")
        return error_class(answer.status_code)(
            problem.detail,
            status=answer.status_code,
            errors=[fault.moved(self._call.first) for fault in problem.errors],
            retry_after_s=_retry_after_s(answer.headers.get("retry-after")),
            logged=problem.logged,
            event_ids=self._call.event_ids,
        )

    def _unreachable(self, failure: httpx.RequestError) -> Unreachable:
        why = str(failure) or type(failure).__name__
        ids = self._call.event_ids
        fate = " Whether it counted is unknown: send it again under the same id." if ids else ""
        return Unreachable(f"No answer to {self._call.path} ({why}).{fate}", event_ids=ids)


def _retry_after_s(value: str | None) -> float | None:
    """Return the seconds of a Retry-After field, which holds a number or a date."""
    if value is None:
        return None
    if value.strip().isdecimal():
        return float(value)
    with contextlib.suppress(ValueError):
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    return None
