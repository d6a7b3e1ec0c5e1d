"""An outage of a server that a source needs, and its longest duration."""

from __future__ import annotations

import time

from hinged_service.ingest.target import Failed

__all__ = ["Outage"]


class Outage:
    """The time since a server answered last, with a limit.

    Parameters
    ----------
    server
        The server, with its address: the subject of a sentence.
    limit_s
        The limit in seconds; `None` to wait without limit.

    """

    def __init__(self, server: str, limit_s: float | None) -> None:
        self._server = server
        self._limit_s = limit_s
        self._since_s: float | None = None

    def failed(self, why: str) -> None:
        """Note that the server did not answer; raise `Failed` after the limit."""
        now_s = time.monotonic()
        if self._since_s is None:
            self._since_s = now_s
        if self._limit_s is not None and now_s - self._since_s >= self._limit_s:
            raise Failed(f"{self._server} gave no answer for {self._limit_s:g} seconds: {why}")

    def answered(self) -> None:
        """Note that the server answers."""
        self._since_s = None
