"""Availability of Redis: failures counted by kind, logged once when they begin and end."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from hinged_service.errors import Unavailable
from hinged_service.telemetry.observer import Observer

__all__ = ["Answering"]

logger = logging.getLogger(__name__)

_STEADY_S = 1.0


class Answering:
    """Availability of Redis to a worker; `lost` from a failure until a steady second.

    Parameters
    ----------
    observer
        Counters of the worker.
    why_no_writes
        Returns why an embedded server takes no writes, which it cannot report itself.

    """

    def __init__(
        self, observer: Observer, why_no_writes: Callable[[], str | None] = lambda: None
    ) -> None:
        self._observer = observer
        self._why_no_writes = why_no_writes
        self.lost = False
        self._failed_at_s = 0.0

    def failed(self, kind: str, text: str) -> Unavailable:
        """Count a failed command by the kind of failure; return the error to raise."""
        self._observer.redis_failed(kind)
        self._failed_at_s = time.monotonic()
        if kind == "no_writes":
            text = self._why_no_writes() or text
        if not self.lost:
            self.lost = True
            logger.warning("%s Predictions continue from memory, learning waits.", text)
        return Unavailable(text, retry_after_s=1)

    def answered(self) -> None:
        """Take note of an answer while it is `lost`; a second without a failure, and it is back."""
        if time.monotonic() - self._failed_at_s >= _STEADY_S:
            self.lost = False
            logger.warning("Redis is back.")
