"""Rate limits of API keys: a sliding window per key, counted by each worker for itself."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable

from limits import RateLimitItem, parse
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import SlidingWindowCounterRateLimiter

from hinged_service.api.api_keys import Key
from hinged_service.errors import Busy

__all__ = ["Rates"]


class Rates:
    """The calls of this worker's keys that have a rate; others have no limit."""

    def __init__(self, keys: Iterable[Key]) -> None:
        self._limits: dict[str, RateLimitItem] = {
            key.name: parse(key.rate) for key in keys if key.rate is not None
        }
        self._limiter = SlidingWindowCounterRateLimiter(MemoryStorage())

    def limit(self, key: Key) -> RateLimitItem | None:
        """Return the limit of a key, `None` if it has none."""
        return self._limits.get(key.name)

    async def take(self, key: Key, limit: RateLimitItem) -> None:
        """Count a call; raise `Busy` if it is one too many, which does not count."""
        if await self._limiter.hit(limit, key.name):
            return
        window = await self._limiter.get_window_stats(limit, key.name)
        raise Busy(
            f"The limit of the API key {key.name!r} is {key.rate}. Nothing of this call was taken.",
            retry_after_s=max(1, math.ceil(window.reset_time - time.time())),
        )
