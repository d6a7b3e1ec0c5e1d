"""Batches of commands: those of many models share a round trip."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from hinged_service.store.transport.shared_connection import Command
from hinged_service.tasks import cancel

__all__ = ["CommandBatches"]

_COMMANDS = 32
_BYTES = 2**18
"""Bounds of a batch, which blocks Redis for other clients."""


class CommandBatches:
    """Commands sent together: those that wait when a batch is answered go with the next.

    Parameters
    ----------
    send
        Sends a command for each key and returns the answers, an error in its answer's place.

    """

    def __init__(self, send: Callable[[Mapping[str, Command]], Awaitable[Sequence[Any]]]) -> None:
        self._send = send
        self._waiting: dict[str, tuple[Command, asyncio.Future[Any]]] = {}
        self._task: asyncio.Task[None] | None = None

    async def ask(self, key: str, *command: str | bytes | int) -> Any:
        """Send a command with those of other keys, and return its answer or raise its error."""
        while key in self._waiting:
            await asyncio.wait([self._waiting[key][1]])
        answer = asyncio.get_running_loop().create_future()
        self._waiting[key] = command, answer
        if self._task is None:
            self._task = asyncio.create_task(self._work())
        return await answer

    async def aclose(self) -> None:
        """Stop the batch under way; its callers are cancelled."""
        await cancel(self._task)

    async def _work(self) -> None:
        taken: list[asyncio.Future[Any]] = []
        try:
            while self._waiting:
                await asyncio.sleep(0)  # more may come within this round of the loop
                commands, taken = self._take()
                try:
                    answers = await self._send(commands)
                except Exception as error:  # noqa: BLE001 - raised where the answer is awaited
                    answers = [error] * len(taken)
                for future, answer in zip(taken, answers, strict=True):
                    if future.done():
                        continue
                    if isinstance(answer, Exception):
                        future.set_exception(answer)
                    else:
                        future.set_result(answer)
        finally:
            self._task = None
            for future in (*taken, *(future for _, future in self._waiting.values())):
                future.cancel()
            self._waiting.clear()

    def _take(self) -> tuple[dict[str, Command], list[asyncio.Future[Any]]]:
        commands: dict[str, Command] = {}
        taken: list[asyncio.Future[Any]] = []
        size = 0
        while self._waiting and len(taken) < _COMMANDS and size < _BYTES:
            key = next(iter(self._waiting))
            commands[key], future = self._waiting.pop(key)
            taken.append(future)
            size += sum(len(word) for word in commands[key] if not isinstance(word, int))
        return commands, taken
