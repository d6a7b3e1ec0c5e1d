"""Graceful shutdown: ends calls that would last, before the server waits for all of them."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

__all__ = ["Stopping"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopping:
    """Shutdown of a worker; `begun` after a request to stop."""

    def __init__(self) -> None:
        self.begun = False
        self._ends: set[Callable[[], object]] = set()
        self._handlers: dict[int, Any] = {}

    def listen(self) -> None:
        """Begin when a signal asks the server to stop.

        The server's own handlers are called as before. Without them, or outside the main
        thread, it begins at the application's end.
        """
        loop = asyncio.get_running_loop()

        def on_signal(number: int, frame: FrameType | None) -> None:
            loop.call_soon_threadsafe(self.begin)
            self._handlers[number](number, frame)

        for number in _SIGNALS:
            handler = signal.getsignal(number)
            if not callable(handler):
                continue
            try:
                signal.signal(number, on_signal)
            except ValueError:  # not the main thread
                return
            self._handlers[number] = handler
        self._on_signal = on_signal

    def listen_no_more(self) -> None:
        """Give the signals back to the server."""
        for number, handler in self._handlers.items():
            if signal.getsignal(number) == self._on_signal:
                signal.signal(number, handler)

    def begin(self) -> None:
        """End the calls that would last."""
        self.begun = True
        for end in tuple(self._ends):
            end()

    @contextlib.contextmanager
    def ending(self, end: Callable[[], object]) -> Iterator[None]:
        """Call `end` when it begins, or at once if it has begun."""
        self._ends.add(end)
        try:
            if self.begun:
                end()
            yield
        finally:
            self._ends.discard(end)
