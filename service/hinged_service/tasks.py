"""End of asyncio tasks; receivers of later results."""

from __future__ import annotations

import asyncio
from typing import Any, Final, Protocol, TypeVar

__all__ = ["Answer", "cancel"]

_AGAIN_S: Final = 0.1
_Result = TypeVar("_Result", contravariant=True)


class Answer(Protocol[_Result]):
    """Destination of a result: the part of a future that its giver sees."""

    def done(self) -> bool:
        """Return whether there is a result, or its caller waits no more."""
        ...

    def set_result(self, result: _Result, /) -> None:
        """Give the result."""
        ...

    def set_exception(self, exception: BaseException, /) -> None:
        """Give the failure instead."""
        ...

    def exception(self) -> BaseException | None:
        """Take note of the failure."""
        ...


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
