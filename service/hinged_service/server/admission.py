"""Admission control: bounds on the requests of a worker, and on the bodies that they hold.

The queue of a model bounds the writes that wait for that model. This bounds all requests of the
worker together, of any kind and at any speed.
"""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.types import Scope

from hinged_service.errors import Busy
from hinged_service.settings import Settings

__all__ = ["HELD", "AdmissionControl", "RequestLease"]

HELD: Final = "hinged.held"
"""Key of the lease in the scope of a request."""
_ALWAYS: Final = frozenset({"/healthz", "/readyz", "/metrics"})
"""Calls of monitoring: never refused."""


class AdmissionControl:
    """Bounds of a worker, and their use by its requests.

    Attributes
    ----------
    requests, most_requests
        Requests under way, and their bound.
    bytes, most_bytes
        Bytes of bodies and of large answers in memory, and their bound.
    answer_bytes, most_answer_bytes
        Those of large answers alone, and their bound: half of the other one, so that clients
        that do not read what they asked for leave room for the bodies of others.
    body_timeout_s
        Longest time for a small body to arrive.

    """

    def __init__(self, settings: Settings) -> None:
        self.most_requests = settings.max_requests
        self.most_bytes = settings.max_held_bytes
        self.body_timeout_s = settings.body_timeout_ms / 1000
        self.most_answer_bytes = self.most_bytes // 2
        self._turn = asyncio.Lock()
        self.requests = 0
        self.bytes = self.answer_bytes = 0

    async def take_turn(self) -> None:
        """Wait for a round of the loop in which no other part of a large answer begins."""
        async with self._turn:  # what a part waits for then, as its model, holds up no other
            await asyncio.sleep(0)

    def enter(self, scope: Scope) -> RequestLease:
        """Begin a request, which has to leave in the end; `Busy` if there are too many."""
        if self.requests >= self.most_requests and scope["path"] not in _ALWAYS:
            raise Busy(
                f"The worker has {self.requests} requests under way, as many as max_requests "
                "allows; nothing of this one was taken. Try again.",
                retry_after_s=1,
            )
        held = scope[HELD] = RequestLease(self)
        return held


class RequestLease:
    """Share of one request in the bounds; `whole` once its whole body was read."""

    __slots__ = ("answer_bytes", "bytes", "control", "counted", "left", "whole")

    def __init__(self, control: AdmissionControl) -> None:
        self.control = control
        self.bytes = self.answer_bytes = self.counted = 0
        self.whole = self.left = False
        control.requests += 1

    def add(self, size: int) -> None:
        """Hold `size` bytes more of the body until the answer; `Busy` if all hold too much.

        A body that is alone is taken at any size.
        """
        control = self.control
        if control.bytes + size > control.most_bytes and control.bytes > self.bytes:
            raise Busy(
                "The bodies of the worker's requests hold as much as max_held_bytes allows; "
                "nothing of this one was taken. Try again.",
                retry_after_s=1,
            )
        control.bytes += size
        self.bytes += size

    def add_answer(self, size: int) -> None:
        """Hold an answer of `size` bytes until it was sent; `Busy` if all answers hold too much.

        An answer that is alone is made at any size.
        """
        control = self.control
        others = control.answer_bytes > self.answer_bytes
        if others and control.answer_bytes + size > control.most_answer_bytes:
            raise Busy(
                "Large answers that wait for their clients hold half of what max_held_bytes "
                "allows; nothing of this request was taken. Try again.",
                retry_after_s=1,
            )
        self.hold_answer(size)

    def hold_answer(self, size: int) -> None:
        """Count an answer that was made already, also beyond the bound."""
        control = self.control
        control.answer_bytes += size
        self.answer_bytes += size
        counted = min(size, control.most_answer_bytes)  # a larger one leaves room for bodies, too
        control.bytes += counted
        self.counted += counted

    def drop_body(self) -> None:
        """Hold the body no more: the answer was made."""
        self.control.bytes -= self.bytes
        self.bytes = 0

    def leave(self) -> None:
        """End the request in any state; a second call does nothing."""
        if not self.left:
            self.left = True
            self.control.requests -= 1
            self.control.bytes -= self.bytes + self.counted
            self.control.answer_bytes -= self.answer_bytes
