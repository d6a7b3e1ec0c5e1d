"""A subscriber to a live feed: a bounded queue of encoded messages."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

from hinged_service.engine.name_access import NameAccess
from hinged_service.insights.live_feed.messages import message
from hinged_service.wire.live_feed import LiveEnd

__all__ = ["Subscriber"]

_KEEP_ALIVE_S = 10.0
_MAX_CHUNKS = 50
_MAX_BYTES = 2**21


class Subscriber:
    """A subscriber to the live feed of one name: a bounded queue of encoded messages.

    Parameters
    ----------
    features
        Whether outcomes come with the features of their events.
    weights
        Whether the largest weights are sent.
    access
        The models that the subscriber may see.
    on_slow
        Called when the subscriber is dropped because it did not keep up.
    on_leave
        Called with the subscriber when it stops watching.

    Attributes
    ----------
    ended
        Whether nothing more will be put into the queue.
    slow
        Set when the subscriber was dropped because it did not keep up.

    """

    def __init__(
        self,
        features: bool,
        weights: bool,
        access: NameAccess,
        on_slow: Callable[[], None],
        on_leave: Callable[[Subscriber], None],
    ) -> None:
        self.features = features
        self.weights = weights
        self.access = access
        self.ended = False
        self.slow = asyncio.Event()
        self._on_slow = on_slow
        self._on_leave = on_leave
        self._chunks: deque[bytes] = deque()
        self._bytes = 0
        self._some = asyncio.Event()

    def put(self, chunk: bytes) -> None:
        """Queue a chunk; one too many, and the subscriber is dropped."""
        if self.ended or not chunk:
            return
        behind = len(self._chunks) >= _MAX_CHUNKS or self._bytes > _MAX_BYTES
        if behind:
            self._chunks.clear()
            self._bytes = 0
            self._on_slow()
            self.end("slow")
            self.slow.set()
            return
        self._chunks.append(chunk)
        self._bytes += len(chunk)
        self._some.set()

    def end(self, reason: str) -> None:
        """Queue the last message."""
        if not self.ended:
            self.ended = True
            self._chunks.append(message("end", LiveEnd(reason)))
            self._some.set()

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the messages to send until the end, comments while there are none."""
        while True:
            while self._chunks:
                chunk = self._chunks.popleft()
                self._bytes = max(0, self._bytes - len(chunk))
                yield chunk
            if self.ended:
                return
            self._some.clear()
            try:
                await asyncio.wait_for(self._some.wait(), _KEEP_ALIVE_S)
            except TimeoutError:
                yield b": still here\n\n"

    def leave(self) -> None:
        """Stop watching; call it once, also after an error."""
        self.ended = True
        self._chunks.clear()
        self._on_leave(self)
