"""The window of a rolling metric: the newest items."""

from __future__ import annotations

import collections
from typing import Any

__all__ = ["Window"]


class Window:
    """The newest `size` items; nothing is kept if that is `None`."""

    def __init__(self, size: int | None) -> None:
        self._size = size
        self.items: collections.deque[Any] = collections.deque()

    def push(self, item: Any) -> Any | None:
        """Add an item; return the one that leaves, `None` if none does."""
        if self._size is None:
            return None
        old = self.items.popleft() if len(self.items) == self._size else None
        self.items.append(item)
        return old

    def get_state(self) -> list[Any]:
        """Return the items, the oldest first."""
        return list(self.items)

    def refill(self, items: Any) -> None:
        """Take over the items of a state."""
        if not isinstance(items, list) or len(items) > (self._size or 0):
            raise ValueError("the window is no list of its size")
        self.items = collections.deque(items)
