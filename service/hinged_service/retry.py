"""Retry with back-off."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Awaitable, Callable, Iterator
from typing import Final, TypeVar

from hinged_service.errors import Unavailable

__all__ = ["RETRY_S", "backoff", "retry"]

T = TypeVar("T")

RETRY_S: Final = 0.02
"""Pause before a command that Redis did not answer is sent again."""
_DICE = random.Random()  # noqa: S311 - spreads callers; the global one is its user's


def backoff(first_s: float, longest_s: float, least: float = 1.0) -> Iterator[float]:
    """Yield pauses in seconds: each twice the one before, up to the longest.

    Parameters
    ----------
    first_s, longest_s
        The first pause, and the longest.
    least
        Each pause is multiplied by a random factor between this and 1.

    """
    pause_s = first_s
    while True:
        yield pause_s * _DICE.uniform(least, 1.0)
        pause_s = min(2 * pause_s, longest_s)


async def retry(
    step: Callable[[], Awaitable[T]],
    deadline_s: float = math.inf,
    pauses: Iterator[float] | None = None,
    on: type[Exception] | tuple[type[Exception], ...] = Unavailable,
    failed: Callable[[Exception], None] | None = None,
    wait: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> T:
    """Repeat a step until it succeeds; return its result.

    Parameters
    ----------
    step
        Starts an attempt, which may safely be repeated.
    deadline_s
        Time of the loop's clock at which no further attempt is begun.
    pauses
        Pauses between attempts, in seconds; `RETRY_S` each if left out.
    on
        Errors after which it is repeated. The last one is raised at the deadline.
    failed
        Called with each of them before the pause.
    wait
        Waits for so many seconds.

    """
    loop, pauses = asyncio.get_running_loop(), pauses or backoff(RETRY_S, RETRY_S)
    while True:
        try:
            return await step()
        except on as error:
            pause_s = next(pauses)
            if loop.time() + pause_s >= deadline_s:
                raise
            if failed is not None:
                failed(error)
        await wait(pause_s)
