"""Batches: a stream of any length cut into arrays of bounded count and bytes."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from hinged_service.client.errors import Fault, Invalid
from hinged_service.client.events import Encoded

__all__ = ["BATCH_BYTES", "BATCH_EVENTS", "AnyIterable", "Batch", "Batcher", "each"]

T = TypeVar("T")
AnyIterable = Iterable[T] | AsyncIterable[T]

BATCH_EVENTS = 1_000
BATCH_BYTES = 2**20


class Batch(NamedTuple):
    """Events of one call, none if nothing is due yet; `first` is the number of its first one."""

    first: int
    items: list[Encoded]


class Batcher:
    """Collector of encoded events, which hands out a batch whenever one is full.

    Parameters
    ----------
    encode
        Makes JSON of an item.
    batch_events
        Events in one batch at most.
    batch_bytes
        Bytes of its JSON array at most; a larger event goes alone.

    """

    def __init__(
        self, encode: Callable[[Any], Encoded], batch_events: int, batch_bytes: int
    ) -> None:
        if not batch_events >= 1:
            raise ValueError(f"batch_events must be at least 1, not {batch_events}")
        if not batch_bytes >= 1:
            raise ValueError(f"batch_bytes must be at least 1, not {batch_bytes}")
        self._encode = encode
        self._batch_events, self._batch_bytes = batch_events, batch_bytes
        self._items: list[Encoded] = []
        self._bytes = 1
        self._taken = 0

    def add(self, item: Any) -> Batch:
        """Take one item; return the batch that it completes, or that has no room for it.

        Raises `Invalid`, which names the item's number in the stream.
        """
        try:
            encoded = self._encode(item)
        except Invalid as error:
            raise Invalid(
                "Nothing of this batch was sent; the batches before it were.",
                errors=[Fault(f"[{self._taken}].{f.field}", f.reason) for f in error.errors],
            ) from None
        size = len(encoded.json) + 1
        full = self.rest() if self._bytes + size > self._batch_bytes else Batch(0, [])
        self._items.append(encoded)
        self._bytes += size
        self._taken += 1
        return full if full.items or len(self._items) < self._batch_events else self.rest()

    def rest(self) -> Batch:
        """Return the events collected so far, and start again."""
        batch = Batch(self._taken - len(self._items), self._items)
        self._items, self._bytes = [], 1
        return batch


async def each(items: AnyIterable[T]) -> AsyncIterator[T]:
    """Yield the items of either kind of iterable."""
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item
