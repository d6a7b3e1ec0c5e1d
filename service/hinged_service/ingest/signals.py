"""Stop on a request of the user or the system, after the batch in flight."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Iterator
from types import FrameType
from typing import TypeVar

from hinged_service.retry import backoff, retry
from hinged_service.tasks import cancel

__all__ = ["Stop", "Stopped"]

T = TypeVar("T")

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 2.0


class Stopped(Exception):
    """The user wants an end; nothing is in flight."""


class Stop:
    """The request to stop: SIGINT or SIGTERM. A second one ends the process at once.

    `signal` is the signal's number; `None` while none came.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._loop = asyncio.get_running_loop()
        self._came = asyncio.Event()
        self._blocking = False

    def listen(self) -> None:
        """Take the signals over."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._note)

    def check(self) -> None:
        """Raise `Stopped` if it is time."""
        if self.signal is not None:
            raise Stopped

    async def wait(self, seconds: float) -> None:
        """Let time pass; raise `Stopped` if it is time."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._came.wait(), seconds)
        self.check()

    async def unless(self, work: Awaitable[T]) -> T:
        """Return the result of work; give it up and raise `Stopped` on a request to stop."""
        task, came = asyncio.ensure_future(work), asyncio.ensure_future(self._came.wait())
        try:
            await asyncio.wait([task, came], return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                self.check()
            return await task
        finally:
            await cancel(task, came)

    async def retry(
        self,
        step: Callable[[], Awaitable[T]],
        failures: type[Exception] | tuple[type[Exception], ...],
        failed: Callable[[Exception, bool], None],
        going_on: Callable[[], None],
    ) -> T:
        """Return the result of a step, repeated after longer and longer pauses while it fails.

        `failed` is called with each failure, and whether it is the first; it may raise.
        `going_on` is called if the step succeeds after failures.
        """
        count = 0

        def note(error: Exception) -> None:
            nonlocal count
            count += 1
            failed(error, count == 1)

        pauses = backoff(_FIRST_PAUSE_S, _LONGEST_PAUSE_S, 0.5)
        done = await retry(step, pauses=pauses, on=failures, failed=note, wait=self.wait)
        if count:
            going_on()
        return done

    @contextlib.contextmanager
    def blocking(self) -> Iterator[None]:
        """Within this a signal raises `Stopped`: for reads that may block without end."""
        self.check()
        self._blocking = True
        try:
            yield
        finally:
            self._blocking = False

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.signal = number
        signal.signal(number, signal.SIG_DFL)
        self._loop.call_soon_threadsafe(self._came.set)
        if self._blocking:
            raise Stopped
