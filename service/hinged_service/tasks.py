"""End of asyncio tasks."""

from __future__ import annotations

import asyncio
from typing import Any, Final

__all__ = ["cancel"]

_AGAIN_S: Final = 0.1


async def cancel(*tasks: asyncio.Future[Any] | None) -> None:
    """Cancel tasks and wait until all of them have ended.

    A cancel is lost if the awaited result arrives in the same loop iteration, so it is repeated
    until the task ends.

    Parameters
    ----------
    tasks
        Tasks of the running loop, or `None`. Their results and exceptions are not looked at.

    """
    left = {task for task in tasks if task is not None and not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=_AGAIN_S)
