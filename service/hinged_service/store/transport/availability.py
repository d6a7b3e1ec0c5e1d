"""Whether Redis answers: failures counted by kind, told of once when they begin and end."""

from __future__ import annotations

import logging
import time

from hinged_service.errors import Unavailable
from hinged_service.telemetry.observer import Observer

__all__ = ["Answering"]

logger = logging.getLogger(__name__)

_STEADY_S = 1.0


class Answering:
    """What a worker knows of whether Redis answers.

    Parameters
    ----------
    observer
        Counts and tells.

    Attributes
    ----------
    lost
        Whether it was told that Redis is away, and not yet that it is back.

    """

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self.lost = False
        self._failed_at_s = 0.0

    def failed(self, kind: str, text: str) -> Unavailable:
        """Count a command that was not carried out; return what to raise.

        Parameters
        ----------
        kind
            What was in the way, a word.
        text
            The same for people.

        """
        self._observer.redis_failed(kind)
        self._failed_at_s = time.monotonic()
        if not self.lost:
            self.lost = True
            logger.warning("%s Predictions go on from memory, learning waits.", text)
        return Unavailable(text, retry_after_s=1)

    def answered(self) -> None:
        """Take note of an answer while it is `lost`; a second without a failure, and it is back."""
        if time.monotonic() - self._failed_at_s >= _STEADY_S:
            self.lost = False
            logger.warning("Redis is back.")
