"""Access to the state of a model: the loop has it, or one piece of long work."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Callable
from typing import Final, NoReturn, TypeVar, cast

from hinged_service.engine.long_work import in_thread
from hinged_service.errors import Unavailable
from hinged_service.model.state import ModelState

__all__ = ["CALL_WAIT_S", "SUMMARY_WAIT_S", "TAKEN_STATE", "StateAccess"]

T = TypeVar("T")

SUMMARY_WAIT_S: Final = 1.0
"""Longest that a summary of many models waits for long work on one of them, in seconds."""
CALL_WAIT_S: Final = 30.0
"""Longest that a call waits for long work of others on its model, in seconds."""


def _busy() -> Unavailable:
    return Unavailable("The model is busy. Try again.", retry_after_s=1)


class _TakenState:
    """Placeholder for a state that long work has taken."""

    __slots__ = ()

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # of no state: Python itself asks
            raise AttributeError(name)
        raise _busy()


TAKEN_STATE: Final = cast("ModelState", _TakenState())
"""Stand-in for a state that was taken: any use of it raises `Unavailable`."""


class StateAccess:
    """The state of a model, and the one rule of access to it.

    Code of the loop may touch `state` until its next `await`. Long work takes it: until it gives
    it back, the state is `TAKEN_STATE`; a caller that needs it waits in `at_rest`.

    Attributes
    ----------
    state
        The state, or `TAKEN_STATE`.
    taken
        True while long work has the state.

    """

    __slots__ = ("_turns", "state", "taken")

    def __init__(self, state: ModelState) -> None:
        self.state: ModelState = state
        self.taken = False
        self._turns: asyncio.Lock | None = None  # before long work takes the state

    @property
    def spoiled(self) -> bool:
        """True if work that changed the state did not end: the state is lost."""
        return self.state is TAKEN_STATE and not self.taken

    def check_whole(self) -> None:
        """Raise `Unavailable` if the state is spoiled."""
        if self.spoiled:
            raise _busy()

    async def at_rest(self, wait_s: float | None = CALL_WAIT_S) -> None:
        """Return when no long work has the state: it is there until the caller waits again.

        Raises
        ------
        Unavailable
            The work takes longer than the caller's patience.

        """
        if self.taken and self._turns is not None:
            try:
                async with asyncio.timeout(wait_s), self._turns:
                    pass
            except TimeoutError:
                raise _busy() from None

    async def look(self, look: Callable[[ModelState], T], quick: Callable[[], bool]) -> T:
        """Return the result of `look` at the state: at once if `quick`, else by the thread."""
        await self.at_rest(None)
        if quick():
            return look(self.state)
        async with self.take(changes=False) as state:
            return await in_thread(functools.partial(look, state))

    @contextlib.asynccontextmanager
    async def take(self, *, changes: bool) -> AsyncIterator[ModelState]:
        """Take the state for long work, after the work under way, and give it back at the end.

        Work that `changes` the state and does not end leaves it `TAKEN_STATE` permanently: a state
        that is changed in part is neither read nor saved.
        """
        if self._turns is None:
            self._turns = asyncio.Lock()
        async with self._turns:
            state, whole = self.state, not changes
            self.state, self.taken = TAKEN_STATE, True
            try:
                yield state
                whole = True
            finally:
                self.taken = False
                if whole:
                    self.state = state
